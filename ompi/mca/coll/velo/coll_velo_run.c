/* Runs of calls: waited for, or as a request. */
#include <sched.h>

#include "coll_velo.h"
#include "ompi/runtime/mpiruntime.h"
#include "opal/runtime/opal_progress.h"

/* The schedule of a call. is_kept: the caller owns it. Ends the job if memory is short. */
static velo_goal_schedule *plan(mca_coll_velo_module_t *module, velo_goal_group *group, mca_coll_velo_call_t *call, bool is_kept)
{
    velo_goal_schedule *schedule;
    mca_coll_velo_lay_out(&call->send);
    mca_coll_velo_lay_out(&call->receive);
    if (OPAL_UNLIKELY(!module->nodes_are_known)) {
        mca_coll_velo_lie_on_nodes(module);
    }
    call->request.on_node = module->ranks_on_node;
    if (call->may_multicast && OPAL_UNLIKELY(0 != module->multicasts)) {
        mca_coll_velo_multicast(module, &call->request);
    }
    if (VELO_OK != (is_kept ? velo_goal_group_keep : velo_goal_group_schedule)(group, &call->request, &schedule)) {
        mca_common_velo_give_up("out of memory");
    }
    return schedule;
}

/* For one run. With threads, Open MPI may start another operation on the communicator meanwhile (MPI_Comm_idup
 * within progress) and evict the schedule from the cache, so the caller owns it. */
static velo_goal_schedule *plan_once(mca_coll_velo_module_t *module, velo_goal_group *group, mca_coll_velo_call_t *call)
{
    return plan(module, group, call, ompi_mpi_thread_multiple);
}

static void forget(velo_goal_schedule *schedule)
{
    if (OPAL_UNLIKELY(ompi_mpi_thread_multiple)) {
        velo_goal_schedule_free(schedule);
    }
}

static velo_goal_run *begin(velo_goal_group *group, velo_goal_schedule *schedule, mca_coll_velo_buffer_t *send,
                            mca_coll_velo_buffer_t *receive, velo_goal_start start)
{
    velo_goal_run *run;
    if (!mca_coll_velo_fill(send) || !mca_coll_velo_fill(receive)) {
        mca_common_velo_give_up("out of memory");
    }
    void *const arguments[] = {send->bytes, receive->bytes};
    start.arguments = arguments;
    start.argument_count = 2;
    if (VELO_OK != velo_goal_run_start(group, schedule, &start, &run)) {
        mca_common_velo_give_up("out of memory");
    }
    return run;
}

static int run_on_board(velo_board *board, mca_coll_velo_call_t *call)
{
    if (OPAL_LIKELY(mca_coll_velo_is_plain(&call->send) && mca_coll_velo_is_plain(&call->receive))) {
        return mca_coll_velo_error_of_board(
            velo_board_run(board, call->on_board, &call->request, call->send.bytes, call->receive.bytes));
    }
    mca_coll_velo_lay_out(&call->send);
    mca_coll_velo_lay_out(&call->receive);
    if (!mca_coll_velo_fill(&call->send) || !mca_coll_velo_fill(&call->receive)) {
        mca_common_velo_give_up("out of memory");
    }
    const velo_status status = velo_board_run(board, call->on_board, &call->request, call->send.bytes, call->receive.bytes);
    mca_coll_velo_empty(&call->receive, VELO_OK == status);
    mca_coll_velo_drop(&call->send);
    mca_coll_velo_drop(&call->receive);
    return mca_coll_velo_error_of_board(status);
}

static void combine_for_call(void *operands, const void *first, const void *second, void *result, uint64_t bytes)
{
    mca_coll_velo_combine(operands, first, second, result, bytes);
}

static void combine_for_request(void *request, const void *first, const void *second, void *result, uint64_t bytes)
{
    mca_coll_velo_combine(&((mca_coll_velo_request_t *) request)->operands, first, second, result, bytes);
}

int mca_coll_velo_run(mca_coll_velo_module_t *module, mca_coll_velo_call_t *call)
{
    enum { LOOKS = 16 }; /* before everything else that may wait for this process */
    velo_board *board = mca_coll_velo_board(module, call);
    if (NULL != board) {
        return run_on_board(board, call);
    }
    velo_goal_group *group = mca_coll_velo_group(module, MCA_COLL_VELO_WAITING);
    velo_goal_schedule *schedule = plan_once(module, group, call);
    velo_goal_run *run = begin(group, schedule, &call->send, &call->receive,
                               (velo_goal_start){.combine = combine_for_call, .context = &call->operands, .awaited = true});
    forget(schedule);
    for (unsigned looks = 0; !velo_goal_run_is_over(run); ++looks) {
        if (looks % LOOKS == LOOKS - 1) {
            opal_progress();
        } else if (0 >= velo_goal_progress(mca_coll_velo.performer) &&
                   opal_progress_yield_when_idle) {
            (void)sched_yield(); /* a look at a network takes as long */
        }
    }
    const int rc = mca_coll_velo_report(module, velo_goal_run_end(run));
    mca_coll_velo_empty(&call->receive, MPI_SUCCESS == rc);
    mca_coll_velo_drop(&call->send);
    mca_coll_velo_drop(&call->receive);
    return rc;
}

static void done(void *context, velo_goal_run *run)
{
    mca_coll_velo_request_t *request = (mca_coll_velo_request_t *) context;
    mca_coll_velo_end(request, mca_coll_velo_report(request->module, velo_goal_run_end(run)));
}

static void start(mca_coll_velo_request_t *request, velo_goal_schedule *schedule)
{
    mca_coll_velo_activate(request);
    (void) begin(request->module->groups[MCA_COLL_VELO_REQUESTS], schedule, &request->send, &request->receive,
                 (velo_goal_start){.done = done, .combine = combine_for_request, .context = request, .lane = request->lane, .lane_number = request->starts++});
}

static int request_start(size_t count, ompi_request_t **requests)
{
    for (size_t i = 0; i < count; ++i) {
        mca_coll_velo_request_t *request = (mca_coll_velo_request_t *) requests[i];
        if (NULL == request->schedule) {
            mca_coll_velo_restart_on_board(request);
        } else {
            start(request, request->schedule);
        }
    }
    return OMPI_SUCCESS;
}

int mca_coll_velo_start(mca_coll_velo_module_t *module, mca_coll_velo_call_t *call, ompi_communicator_t *comm,
                        ompi_request_t **request)
{
    *request = mca_coll_velo_start_on_board(module, call, comm);
    if (NULL != *request) {
        return OMPI_SUCCESS;
    }
    velo_goal_schedule *schedule = plan_once(module, mca_coll_velo_group(module, MCA_COLL_VELO_REQUESTS), call);
    mca_coll_velo_request_t *ours = mca_coll_velo_request_of(module, call, comm, false);
    start(ours, schedule);
    forget(schedule);
    *request = &ours->super.super;
    return OMPI_SUCCESS;
}

static int free_persistent(ompi_request_t **request)
{
    mca_coll_velo_request_t *ours = (mca_coll_velo_request_t *) *request;
    if (!REQUEST_COMPLETE(*request)) {
        return MPI_ERR_REQUEST;
    }
    ompi_communicator_t *kept = (*request)->req_mpi_object.comm;
    velo_goal_schedule_free(ours->schedule);
    mca_coll_velo_close_board(ours->module, &ours->on);
    if (NULL != ours->operands.op) {
        OBJ_RELEASE(ours->operands.op);
        OBJ_RELEASE(ours->operands.type);
    }
    mca_coll_velo_drop(&ours->send);
    mca_coll_velo_drop(&ours->receive);
    const int rc = mca_coll_velo_free(request);
    OBJ_RELEASE(kept);
    return rc;
}

/* The communicator and its id exist as long as the request may be started. Runs of one request match each other,
 * whatever else is started in between. */
int mca_coll_velo_init(mca_coll_velo_module_t *module, mca_coll_velo_call_t *call, ompi_communicator_t *comm,
                       ompi_request_t **request)
{
    mca_coll_velo_request_t *ours = mca_coll_velo_request_of(module, call, comm, true);
    ours->super.super.req_start = request_start;
    ours->super.super.req_free = free_persistent;
    if (!mca_coll_velo_init_on_board(ours, call)) {
        ours->schedule = plan(module, mca_coll_velo_group(module, MCA_COLL_VELO_REQUESTS), call, true);
        ours->send = call->send;
        ours->receive = call->receive;
        ours->lane = velo_goal_group_lane(module->groups[MCA_COLL_VELO_REQUESTS]);
    }
    if (NULL != ours->operands.op) {
        OBJ_RETAIN(ours->operands.op);
        OBJ_RETAIN(ours->operands.type);
    }
    mca_coll_velo_keep_types(&ours->send);
    mca_coll_velo_keep_types(&ours->receive);
    OBJ_RETAIN(comm);
    *request = &ours->super.super;
    return OMPI_SUCCESS;
}
