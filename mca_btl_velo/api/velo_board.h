/* Boards: collective operations of processes on one node, over lines in shared memory that one process writes
 * and all others read. C interface, as velo.h.
 *
 * One member makes a board, the others open it by its address, which the caller carries. Once all have it,
 * all call the same operations in the same order, with the same bytes, root and reduction; each call returns
 * when the operation is done at this member. A member belongs to one thread at a time.
 *
 * Units: bytes, seconds. No function throws, aborts or exits. */
#ifndef VELO_API_VELO_BOARD_H
#define VELO_API_VELO_BOARD_H

#include "types/goal.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct velo_board velo_board;

typedef struct velo_board_config {
    uint32_t rank, size;
    uint32_t window;        /* runs that a member may be ahead of another one */
    uint32_t chunks;        /* of them, those of more than 56 bytes; at most: of many members each has fewer */
    uint32_t chunk;         /* bytes that a member publishes at once, a multiple of 64 */
    const char* directory;  /* where its memory is taken from */
    uint32_t stall_warning; /* seconds until a wait is told; 0: never */
    const char* name;       /* in messages; copied */
    /* Serves whatever else this process owes to others; called while it waits. */
    void (*progress)(void* context);
    void (*log)(void* context, const char* line);
    /* Told of each operation; its communicator is for the caller to fill in. NULL: not told. */
    void (*trace)(void* context, const velo_board_event* event);
    void* context;
} velo_board_config;

enum {
    VELO_BOARD_ADDRESS = 320, /* bytes of an address */
    VELO_BOARD_MOST_MEMBERS = 4096
};

/* VELO_ERR_RESOURCE, VELO_ERR_PARAMETER; `error` (of `error_bytes`) says what. */
velo_status velo_board_create(const velo_board_config* config, velo_board** board, char* error,
                              size_t error_bytes);
void velo_board_address(const velo_board* board, char address[VELO_BOARD_ADDRESS]);
velo_status velo_board_open(const velo_board_config* config, const char address[VELO_BOARD_ADDRESS],
                            velo_board** board, char* error, size_t error_bytes);
/* The others keep what they have of it. NULL is allowed. */
void velo_board_close(velo_board* board);

/* What all boards of this process have counted so far. */
typedef struct velo_board_counts {
    uint64_t boards;
    uint64_t published, picked_up;
    uint64_t credit_waits; /* for the slowest to finish an old run */
    uint64_t long_waits;   /* that took longer than a look */
    uint64_t requests;     /* operations that nobody waited for */
} velo_board_counts;
velo_board_counts velo_board_count(void);

typedef enum velo_board_operation {
    VELO_BOARD_NONE,
    VELO_BOARD_BARRIER,
    VELO_BOARD_BCAST,
    VELO_BOARD_REDUCE,
    VELO_BOARD_ALLREDUCE,
    VELO_BOARD_SCAN,
    VELO_BOARD_EXSCAN,
    VELO_BOARD_GATHER,
    VELO_BOARD_SCATTER,
    VELO_BOARD_ALLGATHER,
    VELO_BOARD_ALLTOALL,
    VELO_BOARD_REDUCE_SCATTER,
    VELO_BOARD_REDUCE_SCATTER_BLOCK
} velo_board_operation;

/* An operation, from one buffer to another one, without gaps; bcast: `to` alone. VELO_ERR_MISMATCH: a member
 * has another number of bytes; VELO_ERR_PROTOCOL: it is in another operation, or has done what no correct one
 * does. The log says what, the board is of no use any more, and who waits for this member finds that. */
velo_status velo_board_run(velo_board* board, velo_board_operation operation,
                           const velo_goal_request* request, const void* from, void* to);

/* Requests: operations that go on while nobody waits, on lines of their own, so that their order among those
 * that wait is of no account; that among themselves is the same at all members. For one thread at a time,
 * which need not be the one that waits in velo_board_run.
 *
 * Whether request number `request` of this process goes over the board. All members have the same answer if
 * each has asked for the last one before it opened the board, then they have found that all have it, and each
 * has settled that, before or after any other one. False until then. */
bool velo_board_serves(velo_board* board, uint64_t request);
void velo_board_settle(velo_board* board);
/* It is of the size that a request may have: what one run takes. */
bool velo_board_takes(const velo_board* board, velo_board_operation operation,
                      const velo_goal_request* request);
/* `context`: where to leave what velo_board_advance will give back when it is over, until another one starts;
 * NULL: it is over. The buffers, and what `request` points to, live until then. VELO_ERR_RESOURCE. */
velo_status velo_board_start(velo_board* board, velo_board_operation operation,
                             const velo_goal_request* request, const void* from, void* to, void*** context);
/* True: the first of them is over. `status` as of velo_board_run. */
bool velo_board_advance(velo_board* board, void** context, velo_status* status);

#ifdef __cplusplus
}
#endif
#endif
