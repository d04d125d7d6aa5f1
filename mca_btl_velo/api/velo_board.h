/* Boards: collective operations of processes on one node, over lines in shared memory that one process writes
 * and all others read. C interface, as velo.h.
 *
 * A process has a store, in which the boards lie of those groups whose rank 0 it is; the caller carries its
 * address to the other members. Whoever of a group asks for its board first makes it, the others find it. All
 * call the same operations in the same order, with the same bytes, root and reduction; each call returns
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
typedef struct velo_board_store velo_board_store;

enum {
    VELO_BOARD_ADDRESS = 320, /* bytes of an address */
    VELO_BOARD_MOST_MEMBERS = 4096
};

typedef struct velo_board_config {
    uint32_t rank, size;
    uint64_t members; /* a hash of the processes in the order of their ranks */
    /* Of the group and the board: no other one's in that store, of a group with these members and among those
     * that a process of this group belongs to. */
    uint64_t number;
    uint32_t window; /* runs that a member may be ahead of another one */
    uint32_t chunks; /* of them, those of more than 56 bytes, at most: fewer with many members */
    uint32_t chunk;  /* bytes that a member publishes at once, a multiple of 64 */
    /* By which mechanism of btl_velo_single_copy_mechanism long blocks are read from the giver's memory,
     * where that is faster; NULL: none. */
    const char* single_copy;
    uint32_t processors;    /* that the members share: velo_shared_processors */
    uint32_t stall_warning; /* seconds until a wait is told; 0: never */
    const char* name;       /* in messages; copied */
    /* Serves whatever else this process owes to others; called while it waits. */
    void (*progress)(void* context);
    void (*log)(void* context, int level, const char* line); /* as velo_config.log */
    /* Told of each operation; its communicator is for the caller to fill in. NULL: not told. */
    void (*trace)(void* context, const velo_board_event* event);
    /* Whether a member has ended, which ends the waits for it with VELO_ERR_REMOTE. It says so. NULL: not
     * known. */
    bool (*has_ended)(void* context, uint32_t rank);
    void* context;
} velo_board_config;

/* In that directory, with address space for `boards` boards of that size, window, chunks and chunk, up to a
 * GiB: as many may be there at a time. A board takes memory when it is made, and leaves it to the next one.
 * VELO_ERR_RESOURCE, VELO_ERR_PARAMETER; `error` (of `error_bytes`) says what. */
velo_status velo_board_store_create(const char* directory, uint32_t boards, const velo_board_config* config,
                                    velo_board_store** store, char* error, size_t error_bytes);
void velo_board_store_address(const velo_board_store* store, char address[VELO_BOARD_ADDRESS]);
/* Whether the process that has made this store and this process can open each other's. Among all members of a
 * group, or not among all: each finds the same. */
bool velo_board_store_visible(const char address[VELO_BOARD_ADDRESS]);
/* Whether that process, which is visible, has closed its store, or has ended. */
bool velo_board_store_is_closed(const char address[VELO_BOARD_ADDRESS]);
velo_status velo_board_store_open(const char address[VELO_BOARD_ADDRESS], velo_board_store** store,
                                  char* error, size_t error_bytes);
/* After its boards. The others keep what they have of it. NULL is allowed. */
void velo_board_store_close(velo_board_store* store);

/* NULL, and VELO_OK: no memory is left for it, or as many as there may be are there; all members find the
 * same. Each opens it once, and closes it, also if it is none: `place` is for that. VELO_ERR_MISMATCH:
 * another member has another configuration. */
velo_status velo_board_open(velo_board_store* store, const velo_board_config* config, velo_board** board,
                            uint32_t* place, char* error, size_t error_bytes);
void velo_board_close(velo_board_store* store, velo_board* board, uint32_t place);

/* What all boards of this process have counted so far. */
typedef struct velo_board_counts {
    uint64_t boards;
    uint64_t published, picked_up;
    uint64_t credit_waits; /* for the slowest to finish an old run */
    uint64_t long_waits;   /* that took longer than a look */
    uint64_t requests;     /* operations that nobody waited for */
    uint64_t direct;       /* blocks taken from the memory of who gave them */
} velo_board_counts;
velo_board_counts velo_board_count(void);

/* Before each operation, or before the first one of a persistent request, and at all members alike: there is
 * memory for what it publishes. False: it has to go another way, at all members, and the board goes on. */
bool velo_board_has_memory(velo_board* board, velo_board_operation operation,
                           const velo_goal_request* request);

/* An operation, from one buffer to another one, without gaps; bcast: `to` alone. VELO_ERR_MISMATCH: a member
 * has another number of bytes; VELO_ERR_PROTOCOL: it is in another operation, or has done what no correct one
 * does; VELO_ERR_REMOTE: a member has ended, or found an error. The log says what, the board is of no use any
 * more, and who waits for this member finds that. */
velo_status velo_board_run(velo_board* board, velo_board_operation operation,
                           const velo_goal_request* request, const void* from, void* to);

/* Requests: operations that go on while nobody waits, one after the other in the order in which they start,
 * which is the same at all members. On a board where nobody waits in velo_board_run, and for one thread at a
 * time.
 *
 * What it needs of a chunk to take one run; UINT64_MAX: it is none for a request. */
uint64_t velo_board_needs(velo_board_operation operation, const velo_goal_request* request, uint32_t size);
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
