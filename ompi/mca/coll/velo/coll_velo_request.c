/* Runs of calls: waited for, or as a request. */
#include "coll_velo.h"

#include "opal/runtime/opal_progress.h"

static int request_free(ompi_request_t **request)
{
    if (!REQUEST_COMPLETE(*request)) {
        return MPI_ERR_REQUEST;
    }
    OMPI_REQUEST_FINI(*request);
    opal_free_list_return(&mca_coll_velo_component.requests, (opal_free_list_item_t *) *request);
    *request = MPI_REQUEST_NULL;
    return OMPI_SUCCESS;
}

static void construct(mca_coll_velo_request_t *request)
{
    request->super.super.req_type = OMPI_REQUEST_COLL;
    request->super.super.req_status._cancelled = 0;
    request->super.super.req_free = request_free;
    request->super.super.req_cancel = NULL;
}

OBJ_CLASS_INSTANCE(mca_coll_velo_request_t, ompi_coll_base_nbc_request_t, construct, NULL);

/* The run of a call. Whether there is a schedule for it is the same everywhere; without memory the job cannot go on. */
static int start(mca_coll_velo_module_t *module, mca_coll_velo_call_t *call, velo_goal_start start, velo_goal_run **run)
{
    velo_goal_schedule *schedule;
    velo_goal_group *group = mca_coll_velo_group(module);
    if (call->may_multicast && OPAL_UNLIKELY(0 < module->on_node)) {
        mca_coll_velo_multicast(module, &call->request);
    }
    velo_status status = velo_goal_group_schedule(group, &call->request, &schedule);
    if (VELO_ERR_UNSUPPORTED == status) {
        return OMPI_ERR_NOT_SUPPORTED;
    }
    if (VELO_OK != status || !mca_coll_velo_prepare(&call->send, true) ||
        !mca_coll_velo_prepare(&call->receive, call->is_read)) {
        mca_common_velo_give_up("out of memory");
    }
    void *const arguments[] = {call->send.bytes, call->receive.bytes};
    start.arguments = arguments;
    start.argument_count = 2;
    if (NULL != start.done) {
        mca_coll_velo_request_t *request = (mca_coll_velo_request_t *) start.context;
        request->send = call->send;
        request->receive = call->receive;
    }
    if (VELO_OK != velo_goal_run_start(group, schedule, &start, run)) {
        mca_common_velo_give_up("out of memory");
    }
    return OMPI_SUCCESS;
}

int mca_coll_velo_run(mca_coll_velo_module_t *module, mca_coll_velo_call_t *call)
{
    enum { LOOKS = 16 }; /* before everything else that may wait for this process */
    velo_goal_run *run;
    int rc = start(module, call, (velo_goal_start){.done = NULL}, &run);
    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    for (unsigned looks = 0; !velo_goal_run_is_over(run); ++looks) {
        if (looks % LOOKS < LOOKS - 1) {
            (void) velo_goal_progress(mca_coll_velo_component.performer);
        } else {
            opal_progress();
        }
    }
    rc = mca_coll_velo_report(module, velo_goal_run_end(run));
    mca_coll_velo_finish(&call->send);
    mca_coll_velo_finish(&call->receive);
    return rc;
}

static void done(void *context, velo_goal_run *run)
{
    mca_coll_velo_request_t *request = (mca_coll_velo_request_t *) context;
    mca_coll_velo_module_t *module = request->module;
    request->super.super.req_status.MPI_ERROR = mca_coll_velo_report(module, velo_goal_run_end(run));
    mca_coll_velo_finish(&request->send);
    mca_coll_velo_finish(&request->receive);
    atomic_fetch_sub(&module->under_way, 1);
    ompi_request_complete(&request->super.super, true);
}

int mca_coll_velo_start(mca_coll_velo_module_t *module, mca_coll_velo_call_t *call, ompi_communicator_t *comm,
                        ompi_request_t **request)
{
    mca_coll_velo_request_t *ours = (mca_coll_velo_request_t *) opal_free_list_wait(&mca_coll_velo_component.requests);
    velo_goal_run *run;
    if (NULL == ours) {
        mca_common_velo_give_up("out of memory");
    }
    OMPI_REQUEST_INIT(&ours->super.super, false);
    ours->super.super.req_state = OMPI_REQUEST_ACTIVE;
    ours->super.super.req_mpi_object.comm = comm;
    ours->super.super.req_status.MPI_ERROR = OMPI_SUCCESS;
    ours->module = module;
    atomic_fetch_add(&module->under_way, 1);
    int rc = start(module, call, (velo_goal_start){.done = done, .context = ours}, &run);
    if (OMPI_SUCCESS != rc) {
        atomic_fetch_sub(&module->under_way, 1);
        opal_free_list_return(&mca_coll_velo_component.requests, &ours->super.super.super);
        return rc;
    }
    *request = &ours->super.super;
    return OMPI_SUCCESS;
}
