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
    uint32_t chunks;        /* of them, those of more than 56 bytes */
    uint32_t chunk;         /* bytes that a member publishes at once, a multiple of 64 */
    const char* directory;  /* where its memory is taken from */
    uint32_t stall_warning; /* seconds until a wait is told; 0: never */
    const char* name;       /* in messages; copied */
    /* Serves whatever else this process owes to others; called while it waits. */
    void (*progress)(void* context);
    void (*log)(void* context, const char* line);
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
} velo_board_counts;
velo_board_counts velo_board_count(void);

/* An operation, from one buffer to another one, without gaps; bcast: `to` alone. VELO_ERR_PROTOCOL: a member
 * has done what no correct one does; the log says what, and the board is of no use any more. */
typedef velo_status (*velo_board_operation)(velo_board* board, const velo_goal_request* request,
                                            const void* from, void* to);
velo_status velo_board_barrier(velo_board* board, const velo_goal_request* request, const void* from,
                               void* to);
velo_status velo_board_bcast(velo_board* board, const velo_goal_request* request, const void* from, void* to);
velo_status velo_board_reduce(velo_board* board, const velo_goal_request* request, const void* from,
                              void* to);
velo_status velo_board_allreduce(velo_board* board, const velo_goal_request* request, const void* from,
                                 void* to);
velo_status velo_board_scan(velo_board* board, const velo_goal_request* request, const void* from, void* to);
velo_status velo_board_exscan(velo_board* board, const velo_goal_request* request, const void* from,
                              void* to);
velo_status velo_board_gather(velo_board* board, const velo_goal_request* request, const void* from,
                              void* to);
velo_status velo_board_scatter(velo_board* board, const velo_goal_request* request, const void* from,
                               void* to);
velo_status velo_board_allgather(velo_board* board, const velo_goal_request* request, const void* from,
                                 void* to);
velo_status velo_board_alltoall(velo_board* board, const velo_goal_request* request, const void* from,
                                void* to);
velo_status velo_board_reduce_scatter(velo_board* board, const velo_goal_request* request, const void* from,
                                      void* to);
velo_status velo_board_reduce_scatter_block(velo_board* board, const velo_goal_request* request,
                                            const void* from, void* to);

#ifdef __cplusplus
}
#endif
#endif
