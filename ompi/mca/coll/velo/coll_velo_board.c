/* The boards of a communicator on one node: one for blocking calls, one for requests, one for each persistent
 * request. A board is opened when it is first needed, in the store of rank 0. No message is sent: the first member
 * creates it, and all members know alike whether there is one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll_velo.h"
#include "opal/runtime/opal_progress.h"
#include "opal/util/proc.h"

enum {
    LINE = 64,
    CHUNK = 8192, /* bytes that a member publishes at once */
    LEAST = 8 /* bytes of a chunk for each member */
};

/* What a board is for: runs that a member may be ahead, and how many of these may carry more than a line. Requests
 * are completed soon, and need fewer. */
typedef struct purpose_t {
    const char *name;
    uint32_t window, chunks;
    bool waits; /* for those who read its memory */
} purpose_t;
static const purpose_t for_calls = {"", 256, 32, true}, for_requests = {", requests", 64, 8, false},
                       for_persistent = {", persistent", 4, 2, false};

/* Of this process, and what it knows of the others of its job. */
static struct {
    opal_mutex_t lock;
    velo_board_store *own; /* NULL: it has none */
    struct peer_t {
        velo_board_store *store; /* NULL: not opened */
        bool is_known, is_visible;
    } *peers; /* NULL: none was looked for */
    uint32_t count;
} stores = {.lock = OPAL_MUTEX_STATIC_INIT};

/* Guards the requests under way and this list of the boards that have some. */
static opal_mutex_t lock = OPAL_MUTEX_STATIC_INIT;
static mca_coll_velo_board_t *volatile with_requests;
static bool makes_progress;

static void serve_others(void *context)
{
    (void) context;
    velo_performer_reset_idle(mca_coll_velo.performer);
    opal_progress();
}

static void log_line(void *context, int level, const char *line)
{
    (void) context;
    mca_common_velo_log(level, line);
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

static bool has_ended(void *context, uint32_t rank);

/* `chunk`: bytes that a member gives at once. */
static velo_board_config config_of(mca_coll_velo_module_t *module, const purpose_t *purpose, uint32_t chunk)
{
    const velo_config engine = mca_common_velo_config();
    return (velo_board_config){
        .rank = module->rank,
        .size = module->size,
        .members = module->among,
        .window = purpose->window,
        .chunks = purpose->chunks,
        .chunk = (chunk + LINE - 1) / LINE * LINE,
        .single_copy = purpose->waits ? engine.single_copy_mechanism : NULL,
        .processors = mca_common_velo_processors(),
        .stall_warning = engine.stall_warning,
        .progress = serve_others,
        .log = log_line,
        .trace = '\0' == engine.trace[0] ? NULL : trace,
        .has_ended = has_ended,
        .context = module,
    };
}

void mca_coll_velo_describe_boards(mca_coll_velo_place_t *place)
{
    const uint32_t boards = mca_coll_velo.config.boards;
    /* The largest that there may be. */
    const uint32_t here = opal_process_info.num_local_peers + 1, most = CHUNK / LEAST;
    mca_coll_velo_module_t all = {.size = here < most ? here : most};
    const velo_board_config config = config_of(&all, &for_calls, CHUNK);
    char error[512];
    if (0 == boards || here < 2) {
        return;
    }
    if (VELO_OK == velo_board_store_create(mca_common_velo_config().backing_directory, boards,
                                           &config, &stores.own, error, sizeof(error))) {
        velo_board_store_address(stores.own, place->boards);
    } else {
        mca_common_velo_log(5, error);
    }
}

static uint32_t process_of(const mca_coll_velo_module_t *module, uint32_t rank)
{
    return ompi_group_get_proc_name(module->members, (int) rank).vpid;
}

static bool has_ended(void *context, uint32_t rank)
{
    const uint32_t process = process_of((const mca_coll_velo_module_t *) context, rank);
    mca_coll_velo_place_t place;
    mca_coll_velo_place_of(process, &place);
    if (!velo_board_store_is_closed(place.boards)) {
        return false;
    }
    mca_common_velo_say_killed(process);
    return true;
}

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

/* Of each other, as each of them finds of itself and all others. */
static bool all_are_visible(const mca_coll_velo_module_t *module)
{
    for (uint32_t rank = 0; rank < module->size; ++rank) {
        const uint32_t process = process_of(module, rank);
        struct peer_t *peer = &stores.peers[process];
        if (!peer->is_known) {
            mca_coll_velo_place_t place;
            mca_coll_velo_place_of(process, &place);
            peer->is_visible = velo_board_store_visible(place.boards);
            peer->is_known = true;
        }
        if (!peer->is_visible) {
            return false;
        }
    }
    return true;
}

static velo_board_store *store_of(uint32_t process)
{
    struct peer_t *peer = &stores.peers[process];
    if (process == OPAL_PROC_MY_NAME.vpid) {
        return stores.own;
    }
    if (NULL == peer->store) {
        mca_coll_velo_place_t place;
        char error[512];
        mca_coll_velo_place_of(process, &place);
        if (VELO_OK != velo_board_store_open(place.boards, &peer->store, error, sizeof(error))) {
            mca_common_velo_give_up(error); /* the others do not know */
        }
    }
    return peer->store;
}

static void find_store(mca_coll_velo_module_t *module)
{
    if (module->size < 2 || VELO_BOARD_MOST_MEMBERS < module->size ||
        CHUNK < LEAST * module->size || NULL == stores.own ||
        !all_are_here(module)) {
        return;
    }
    if (NULL == stores.peers) {
        stores.count = mca_common_velo_job_size();
        stores.peers = calloc(stores.count + 1, sizeof(*stores.peers));
        if (NULL == stores.peers) {
            mca_common_velo_give_up("out of memory");
        }
    }
    if (all_are_visible(module)) {
        module->store = store_of(process_of(module, 0));
    }
    module->among = MCA_COMMON_VELO_DIGEST;
    for (uint32_t rank = 0; rank < module->size; ++rank) {
        module->among = mca_common_velo_digest(module->among, process_of(module, rank));
    }
}

/* `number`: of the boards of a communicator. */
static void open_board(mca_coll_velo_module_t *module, mca_coll_velo_board_t *board, uint32_t number,
                       const purpose_t *purpose, uint32_t chunk)
{
    char name[96], line[640], error[512];
    OPAL_THREAD_LOCK(&stores.lock);
    if (!module->knows_store) {
        find_store(module);
        module->knows_store = true;
    }
    OPAL_THREAD_UNLOCK(&stores.lock);
    board->is_open = true;
    if (NULL == module->store) {
        return;
    }
    velo_board_config config = config_of(module, purpose, chunk);
    snprintf(name, sizeof(name), "communicator %u, rank %u%s", module->id, module->rank, purpose->name);
    config.name = name;
    config.number = (uint64_t) module->id << 32 | number;
    if (VELO_OK !=
        velo_board_open(module->store, &config, &board->board, &board->place, error, sizeof(error))) {
        mca_common_velo_give_up(error);
    }
    if (NULL == board->board) {
        snprintf(line, sizeof(line),
                 "%s has no board: as many boards as coll_velo_boards says are in use, or no memory is left "
                 "for one",
                 name);
        mca_common_velo_log(5, line);
    }
    board->has_place = true;
}

void mca_coll_velo_close_board(mca_coll_velo_module_t *module, mca_coll_velo_board_t *board)
{
    if (board->has_place) {
        velo_board_close(module->store, board->board, board->place);
        board->has_place = false;
        board->board = NULL;
    }
}

/* Between two members longer blocks are faster as messages (mca_btl_velo/design/board.md, "Two members"). */
enum { MOST_OF_TWO = 8192, MOST_OF_ALL = 1048576 };

/* But for its form. */
static bool is_for_board(const mca_coll_velo_module_t *module, const mca_coll_velo_call_t *call)
{
    const uint64_t bytes = call->request.bytes * call->blocks;
    return VELO_BOARD_NONE != call->on_board && bytes <= (2 == module->size ? MOST_OF_TWO : MOST_OF_ALL);
}

/* NULL: none that has memory for it. */
static velo_board *with_memory(const mca_coll_velo_board_t *board, const mca_coll_velo_call_t *call)
{
    return NULL != board->board && velo_board_has_memory(board->board, call->on_board, &call->request) ? board->board
                                                                                                        : NULL;
}

/* Bytes of a chunk that a request may need for one run. Between two members a single copy is faster above half of
 * the chunks. Among more, Alltoall may use all of them; anything else is unbounded, since a schedule would forward
 * it. */
static uint64_t most_of_request(const mca_coll_velo_module_t *module, const mca_coll_velo_call_t *call)
{
    const uint64_t chunks = (uint64_t) for_requests.chunks * CHUNK;
    if (2 == module->size) {
        return chunks / 2;
    }
    return VELO_BOARD_ALLTOALL == call->on_board ? chunks : UINT64_MAX - 1;
}

static bool is_for_request(const mca_coll_velo_module_t *module, const mca_coll_velo_call_t *call, uint64_t most)
{
    return is_for_board(module, call) && velo_board_needs(call->on_board, &call->request, module->size) <= most;
}

velo_board *mca_coll_velo_board(mca_coll_velo_module_t *module, const mca_coll_velo_call_t *call)
{
    mca_coll_velo_board_t *board = &module->boards[MCA_COLL_VELO_WAITING];
    if (!is_for_board(module, call)) {
        return NULL;
    }
    if (OPAL_UNLIKELY(!board->is_open)) {
        open_board(module, board, MCA_COLL_VELO_WAITING, &for_calls, CHUNK);
    }
    return with_memory(board, call);
}

int mca_coll_velo_error_of_board(velo_status status)
{
    /* The log says why. */
    return VELO_OK == status ? MPI_SUCCESS : VELO_ERR_MISMATCH == status ? MPI_ERR_TRUNCATE : MPI_ERR_OTHER;
}

/* Returns the completed requests as a list: completing one may start others. */
static mca_coll_velo_request_t *advance_all(void)
{
    mca_coll_velo_request_t *over = NULL;
    mca_coll_velo_board_t *volatile *at = &with_requests;
    while (NULL != *at) {
        mca_coll_velo_board_t *board = *at;
        void *context;
        velo_status status;
        while (velo_board_advance(board->board, &context, &status)) {
            mca_coll_velo_request_t *request = (mca_coll_velo_request_t *) context;
            request->error = mca_coll_velo_error_of_board(status);
            request->next_over = over;
            over = request;
            --board->under_way;
        }
        if (0 == board->under_way) {
            *at = board->next;
        } else {
            at = &board->next;
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
        velo_performer_reset_idle(mca_coll_velo.performer);
    }
    return end_all(over);
}

/* Under the lock; NULL: it is over. */
static void **begin(mca_coll_velo_board_t *board, velo_board_operation operation,
                    const velo_goal_request *request, const char *from, char *to)
{
    void **context;
    if (OPAL_UNLIKELY(!makes_progress)) {
        makes_progress = true;
        (void) opal_progress_register(progress_requests);
    }
    if (VELO_OK != velo_board_start(board->board, operation, request, from, to, &context)) {
        mca_common_velo_give_up("out of memory");
    }
    if (NULL != context && 0 == board->under_way++) {
        board->next = with_requests;
        with_requests = board;
    }
    return context;
}

/* An operation that completes at once needs no request of ours, unless it has a temporary buffer. */
ompi_request_t *mca_coll_velo_start_on_board(mca_coll_velo_module_t *module, mca_coll_velo_call_t *call, ompi_communicator_t *comm)
{
    mca_coll_velo_board_t *board = &module->boards[MCA_COLL_VELO_REQUESTS];
    mca_coll_velo_request_t *ours = NULL;
    if (!is_for_request(module, call, most_of_request(module, call))) {
        return NULL;
    }
    if (OPAL_UNLIKELY(!board->is_open)) {
        open_board(module, board, MCA_COLL_VELO_REQUESTS, &for_requests, CHUNK);
    }
    if (NULL == with_memory(board, call)) {
        return NULL;
    }
    if (OPAL_UNLIKELY(!mca_coll_velo_is_plain(&call->send) || !mca_coll_velo_is_plain(&call->receive))) {
        mca_coll_velo_lay_out(&call->send);
        mca_coll_velo_lay_out(&call->receive);
        if (!mca_coll_velo_fill(&call->send) || !mca_coll_velo_fill(&call->receive)) {
            mca_common_velo_give_up("out of memory");
        }
        ours = mca_coll_velo_request_of(module, call, comm, false);
    }
    OPAL_THREAD_LOCK(&lock);
    mca_coll_velo_request_t *over = advance_all();
    void **context = begin(board, call->on_board, &call->request, call->send.bytes, call->receive.bytes);
    if (NULL == ours && NULL != context) {
        ours = mca_coll_velo_request_of(module, call, comm, false);
    }
    if (NULL != ours) {
        mca_coll_velo_activate(ours);
    }
    if (NULL != context) {
        *context = ours;
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

bool mca_coll_velo_init_on_board(mca_coll_velo_request_t *request, const mca_coll_velo_call_t *call)
{
    mca_coll_velo_module_t *module = request->module;
    if (!is_for_request(module, call, CHUNK)) {
        return false;
    }
    /* A chunk as large as the operation needs, which is at most CHUNK for a request. */
    const uint32_t needs = (uint32_t) velo_board_needs(call->on_board, &call->request, module->size);
    const uint32_t least = LEAST * module->size;
    open_board(module, &request->on, MCA_COLL_VELO_SEQUENCES + module->persistent++, &for_persistent,
               needs < least ? least : needs);
    request->on_board = call->on_board;
    request->asked = call->request;
    if (NULL == with_memory(&request->on, call)) {
        return false;
    }
    mca_coll_velo_lay_out(&request->send);
    mca_coll_velo_lay_out(&request->receive);
    return true;
}

void mca_coll_velo_restart_on_board(mca_coll_velo_request_t *request)
{
    if (!mca_coll_velo_fill(&request->send) || !mca_coll_velo_fill(&request->receive)) {
        mca_common_velo_give_up("out of memory");
    }
    OPAL_THREAD_LOCK(&lock);
    mca_coll_velo_request_t *over = advance_all();
    mca_coll_velo_activate(request);
    void **context =
        begin(&request->on, request->on_board, &request->asked, request->send.bytes, request->receive.bytes);
    if (NULL != context) {
        *context = request;
    }
    OPAL_THREAD_UNLOCK(&lock);
    (void) end_all(over);
    if (NULL == context) {
        mca_coll_velo_end(request, MPI_SUCCESS);
    }
}

void mca_coll_velo_forget_boards(void)
{
    if (makes_progress) {
        makes_progress = false;
        (void) opal_progress_unregister(progress_requests);
    }
    for (uint32_t i = 0; i < stores.count; ++i) {
        velo_board_store_close(stores.peers[i].store);
    }
    free(stores.peers);
    stores.peers = NULL;
    stores.count = 0;
    velo_board_store_close(stores.own);
    stores.own = NULL;
}
