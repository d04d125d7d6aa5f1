/* The board of a communicator whose members are all on one node: made at its first call, by rank 0, and used if all members
 * have it, as they agree by schedules. Calls that wait wait for that. */
#include "coll_velo.h"

#include <stdio.h>
#include <stdlib.h>

#include "opal/runtime/opal_progress.h"

static atomic_uint in_use;

/* Guards what modules say of their requests, and this list of those that have some under way. */
static opal_mutex_t lock = OPAL_MUTEX_STATIC_INIT;
static mca_coll_velo_module_t *volatile with_requests;
static bool makes_progress;

static bool all_are_here(const mca_coll_velo_module_t *module)
{
    for (uint32_t rank = 0; rank < module->size; ++rank) {
        const ompi_proc_t *proc = ompi_group_peer_lookup(module->members, (int) rank);
        if (!OPAL_PROC_ON_LOCAL_NODE(proc->super.proc_flags)) {
            return false;
        }
    }
    return true;
}

static void serve_others(void *context)
{
    (void) context;
    velo_performer_stay_awake(mca_coll_velo_component.performer);
    opal_progress();
}

static void log_line(void *context, const char *line)
{
    (void) context;
    mca_common_velo_log(0, line);
}

static void trace(void *context, const velo_board_event *event)
{
    const mca_coll_velo_module_t *module = (const mca_coll_velo_module_t *) context;
    velo_board_event told = *event;
    told.communicator = (uint16_t) module->id;
    if (VELO_BOARD_WAITS == told.step && told.number < module->size) {
        told.number = ompi_group_peer_lookup(module->members, (int) told.number)->super.proc_name.vpid;
    }
    mca_common_velo_trace_board(&told);
}

/* True if this process may have one more. */
static bool reserve(void)
{
    if (atomic_fetch_add(&in_use, 1) < mca_coll_velo_component.config.boards) {
        return true;
    }
    atomic_fetch_sub(&in_use, 1);
    return false;
}

/* What the members tell each other. */
typedef struct offer_t {
    int made;
    char address[VELO_BOARD_ADDRESS];
} offer_t;

/* Requests that begin while the members agree count, too. */
static void open_to_requests(mca_coll_velo_module_t *module, velo_board *board)
{
    OPAL_THREAD_LOCK(&lock);
    module->of_requests = board;
    if (NULL != board && 0 < module->requests_begun) {
        (void) velo_board_serves(board, module->requests_begun - 1);
    }
    OPAL_THREAD_UNLOCK(&lock);
}

/* A communicator's way to its board, until all its members have it or none. Two runs, on a lane of their own: they meet each
 * other, whatever each member has begun before. */
typedef struct opening_t {
    mca_coll_velo_module_t *module;
    velo_board *board;
    offer_t offer;
    int32_t mine, all;
    bool reserved;
    uint32_t lane;
    char name[64], error[512];
} opening_t;

static velo_board_config config_of(const opening_t *opening)
{
    const velo_coll_config *chosen = &mca_coll_velo_component.config;
    const velo_config engine = mca_common_velo_config();
    return (velo_board_config) {
        .rank = opening->module->rank,
        .size = opening->module->size,
        .window = chosen->board_window,
        .chunks = chosen->board_chunks < chosen->board_window ? chosen->board_chunks : chosen->board_window,
        .chunk = (chosen->board_chunk + 63) / 64 * 64,
        .directory = engine.backing_directory,
        .stall_warning = engine.stall_warning,
        .name = opening->name,
        .progress = serve_others,
        .log = log_line,
        .trace = '\0' == engine.trace[0] ? NULL : trace,
        .context = opening->module,
    };
}

static void end_opening(opening_t *opening, bool all_have_it)
{
    mca_coll_velo_module_t *module = opening->module;
    if (all_have_it) {
        velo_board_settle(opening->board);
        module->board = opening->board;
    } else {
        if (NULL == opening->board) {
            char line[640];
            snprintf(line, sizeof(line), "%s has no board: %s", opening->name, opening->error);
            mca_common_velo_log(5, line);
        }
        open_to_requests(module, NULL);
        velo_board_close(opening->board);
        if (opening->reserved) {
            atomic_fetch_sub(&in_use, 1);
        }
    }
    free(opening);
    atomic_store(&module->opening, MCA_COLL_VELO_OPENED);
    atomic_fetch_sub(&module->under_way, 1);
}

static void run_of_opening(opening_t *opening, const velo_goal_request *request, uint64_t number, void *from, void *to,
                           void (*done)(void *context, velo_goal_run *run))
{
    velo_goal_group *group = opening->module->groups[MCA_COLL_VELO_REQUESTS];
    velo_goal_schedule *schedule;
    velo_goal_run *run;
    void *const arguments[] = {from, to};
    const velo_goal_start start = {.arguments = arguments, .argument_count = 2, .done = done, .context = opening,
                                   .lane = opening->lane, .lane_number = number};
    if (VELO_OK != velo_goal_group_schedule(group, request, &schedule) || VELO_OK != velo_goal_run_start(group, schedule, &start, &run)) {
        mca_common_velo_give_up("out of memory");
    }
}

static void agreed(void *context, velo_goal_run *run)
{
    opening_t *opening = (opening_t *) context;
    const velo_status status = velo_goal_run_end(run).status;
    end_opening(opening, VELO_OK == status && opening->all);
}

static void offered(void *context, velo_goal_run *run)
{
    opening_t *opening = (opening_t *) context;
    if (VELO_OK != velo_goal_run_end(run).status || !opening->offer.made) {
        end_opening(opening, false);
        return;
    }
    const velo_board_config config = config_of(opening);
    opening->mine = opening->reserved && (NULL != opening->board || VELO_OK == velo_board_open(&config, opening->offer.address, &opening->board,
                                                                                               opening->error, sizeof(opening->error)));
    open_to_requests(opening->module, opening->board);
    run_of_opening(opening,
                   &(velo_goal_request) {.operation = "allreduce", .bytes = sizeof(int32_t), .op = VELO_GOAL_MIN, .type = VELO_GOAL_SINT,
                                         .width = 32},
                   1, &opening->mine, &opening->all, agreed);
}

static void begin_opening(mca_coll_velo_module_t *module)
{
    opening_t *opening = calloc(1, sizeof(*opening));
    if (NULL == opening) {
        mca_common_velo_give_up("out of memory");
    }
    opening->module = module;
    snprintf(opening->name, sizeof(opening->name), "communicator %u, rank %u", module->id, module->rank);
    snprintf(opening->error, sizeof(opening->error), "as many boards as coll_velo_boards says are in use");
    opening->reserved = reserve();
    const velo_board_config config = config_of(opening);
    if (0 == module->rank && opening->reserved &&
        VELO_OK == velo_board_create(&config, &opening->board, opening->error, sizeof(opening->error))) {
        opening->offer.made = true;
        velo_board_address(opening->board, opening->offer.address);
    }
    atomic_fetch_add(&module->under_way, 1);
    opening->lane = velo_goal_group_lane(mca_coll_velo_group(module, MCA_COLL_VELO_REQUESTS));
    run_of_opening(opening, &(velo_goal_request) {.operation = "bcast", .bytes = sizeof(opening->offer)}, 0, NULL, &opening->offer, offered);
}

void mca_coll_velo_open_board(mca_coll_velo_module_t *module)
{
    int closed = MCA_COLL_VELO_CLOSED;
    if (!atomic_compare_exchange_strong(&module->opening, &closed, MCA_COLL_VELO_OPENING)) {
        return;
    }
    if (1 < module->size && module->size <= VELO_BOARD_MOST_MEMBERS && all_are_here(module)) {
        begin_opening(module);
    } else {
        atomic_store(&module->opening, MCA_COLL_VELO_OPENED);
    }
}

velo_board *mca_coll_velo_board(mca_coll_velo_module_t *module)
{
    if (OPAL_UNLIKELY(MCA_COLL_VELO_OPENED != atomic_load_explicit(&module->opening, memory_order_acquire))) {
        mca_coll_velo_open_board(module);
        while (MCA_COLL_VELO_OPENED != atomic_load(&module->opening)) {
            opal_progress();
        }
    }
    return module->board;
}

bool mca_coll_velo_is_for_board(const mca_coll_velo_call_t *call)
{
    return VELO_BOARD_NONE != call->on_board && NULL == call->request.algorithm &&
           call->request.bytes * call->blocks <= mca_coll_velo_component.config.board_limit;
}

bool mca_coll_velo_board_serves(mca_coll_velo_module_t *module, const mca_coll_velo_call_t *call)
{
    if (OPAL_UNLIKELY(!module->requests_settled)) {
        mca_coll_velo_open_board(module);
        OPAL_THREAD_LOCK(&lock);
        const uint64_t number = module->requests_begun++;
        module->requests_settled = NULL != module->of_requests && velo_board_serves(module->of_requests, number);
        OPAL_THREAD_UNLOCK(&lock);
    }
    return module->requests_settled && mca_coll_velo_is_for_board(call) &&
           velo_board_takes(module->of_requests, call->on_board, &call->request);
}

int mca_coll_velo_error_of_board(velo_status status)
{
    /* The log says why. */
    return VELO_OK == status ? MPI_SUCCESS : VELO_ERR_MISMATCH == status ? MPI_ERR_TRUNCATE : MPI_ERR_OTHER;
}

/* Those that are over, in a list: whoever hears of it may start others. */
static mca_coll_velo_request_t *advance_all(void)
{
    mca_coll_velo_request_t *over = NULL;
    mca_coll_velo_module_t *volatile *at = &with_requests;
    while (NULL != *at) {
        mca_coll_velo_module_t *module = *at;
        void *context;
        velo_status status;
        while (velo_board_advance(module->of_requests, &context, &status)) {
            mca_coll_velo_request_t *request = (mca_coll_velo_request_t *) context;
            request->error = mca_coll_velo_error_of_board(status);
            request->next_over = over;
            over = request;
            --module->requests_on_board;
        }
        if (0 == module->requests_on_board) {
            *at = module->next_on_board;
        } else {
            at = &module->next_on_board;
        }
    }
    return over;
}

static int end_all(mca_coll_velo_request_t *over)
{
    int ended = 0;
    while (NULL != over) {
        mca_coll_velo_request_t *request = over;
        over = request->next_over;
        request->receive.is_written &= MPI_SUCCESS == request->error;
        mca_coll_velo_end(request, request->error);
        ++ended;
    }
    return ended;
}

static int progress_requests(void)
{
    if (OPAL_LIKELY(NULL == with_requests) || OPAL_THREAD_TRYLOCK(&lock)) {
        return 0;
    }
    mca_coll_velo_request_t *over = advance_all();
    const bool waits = NULL != with_requests;
    OPAL_THREAD_UNLOCK(&lock);
    if (waits) {
        velo_performer_stay_awake(mca_coll_velo_component.performer);
    }
    return end_all(over);
}

/* What is over as soon as it has begun is no request of ours, unless it has memory of ours. */
ompi_request_t *mca_coll_velo_start_on_board(mca_coll_velo_module_t *module, mca_coll_velo_call_t *call, ompi_communicator_t *comm)
{
    mca_coll_velo_request_t *ours = NULL;
    void **context;
    if (OPAL_UNLIKELY(!mca_coll_velo_is_plain(&call->send) || !mca_coll_velo_is_plain(&call->receive))) {
        mca_coll_velo_lay_out(&call->send);
        mca_coll_velo_lay_out(&call->receive);
        if (!mca_coll_velo_fill(&call->send) || !mca_coll_velo_fill(&call->receive)) {
            mca_common_velo_give_up("out of memory");
        }
        ours = mca_coll_velo_request_of(module, call, comm, false);
    }
    OPAL_THREAD_LOCK(&lock);
    if (OPAL_UNLIKELY(!makes_progress)) {
        makes_progress = true;
        (void) opal_progress_register(progress_requests);
    }
    mca_coll_velo_request_t *over = advance_all();
    if (VELO_OK != velo_board_start(module->of_requests, call->on_board, &call->request, call->send.bytes, call->receive.bytes,
                                    &context)) {
        mca_common_velo_give_up("out of memory");
    }
    if (NULL == ours && NULL != context) {
        ours = mca_coll_velo_request_of(module, call, comm, false);
    }
    if (NULL != ours) {
        mca_coll_velo_activate(ours);
    }
    if (NULL != context) {
        *context = ours;
        if (0 == module->requests_on_board++) {
            module->next_on_board = with_requests;
            with_requests = module;
        }
    }
    OPAL_THREAD_UNLOCK(&lock);
    (void) end_all(over);
    if (NULL == ours) {
        return &ompi_request_empty;
    }
    if (NULL == context) {
        mca_coll_velo_end(ours, MPI_SUCCESS);
    }
    return &ours->super.super;
}

void mca_coll_velo_forget_boards(void)
{
    if (makes_progress) {
        makes_progress = false;
        (void) opal_progress_unregister(progress_requests);
    }
}

void mca_coll_velo_close_board(mca_coll_velo_module_t *module)
{
    if (NULL != module->board) {
        velo_board_close(module->board);
        module->board = NULL;
        atomic_fetch_sub(&in_use, 1);
    }
}
