/* The board of a communicator whose members are all on one node: made at its first blocking call, by rank 0, and used if all
 * members have it. They agree by the operations of the component that serves the communicator without this one. */
#include "coll_velo.h"

#include <stdio.h>

#include "opal/runtime/opal_progress.h"

static atomic_uint in_use;

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

static velo_board *open_board(mca_coll_velo_module_t *module)
{
    const mca_coll_base_comm_coll_t *others = &module->previous;
    const velo_coll_config *chosen = &mca_coll_velo_component.config;
    const velo_config engine = mca_common_velo_config();
    char name[64], error[512] = "as many boards as coll_velo_boards says are in use";
    velo_board *board = NULL;
    offer_t offer = {.made = false};
    snprintf(name, sizeof(name), "communicator %u, rank %u", module->id, module->rank);
    const velo_board_config config = {
        .rank = module->rank,
        .size = module->size,
        .window = chosen->board_window,
        .chunks = chosen->board_chunks < chosen->board_window ? chosen->board_chunks : chosen->board_window,
        .chunk = (chosen->board_chunk + 63) / 64 * 64,
        .directory = engine.backing_directory,
        .stall_warning = engine.stall_warning,
        .name = name,
        .progress = serve_others,
        .log = log_line,
    };
    const bool reserved = reserve();
    if (0 == module->rank && reserved && VELO_OK == velo_board_create(&config, &board, error, sizeof(error))) {
        offer.made = true;
        velo_board_address(board, offer.address);
    }
    int rc = others->coll_bcast(&offer, sizeof(offer), MPI_BYTE, 0, module->comm, others->coll_bcast_module);
    if (OMPI_SUCCESS == rc && offer.made) {
        int mine = reserved && (NULL != board || VELO_OK == velo_board_open(&config, offer.address, &board, error, sizeof(error)));
        int all = false;
        rc = others->coll_allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, module->comm, others->coll_allreduce_module);
        if (OMPI_SUCCESS == rc && all) {
            return board;
        }
    }
    if (NULL == board) {
        char line[640];
        snprintf(line, sizeof(line), "%s has no board: %s", name, error);
        mca_common_velo_log(5, line);
    }
    velo_board_close(board);
    if (reserved) {
        atomic_fetch_sub(&in_use, 1);
    }
    return NULL;
}

velo_board *mca_coll_velo_board(mca_coll_velo_module_t *module)
{
    if (OPAL_UNLIKELY(!module->has_tried_board)) {
        module->has_tried_board = true;
        if (1 < module->size && module->size <= VELO_BOARD_MOST_MEMBERS && all_are_here(module)) {
            module->board = open_board(module);
        }
    }
    return module->board;
}

void mca_coll_velo_close_board(mca_coll_velo_module_t *module)
{
    if (NULL != module->board) {
        velo_board_close(module->board);
        module->board = NULL;
        atomic_fetch_sub(&in_use, 1);
    }
}
