/* The types of schedules. api/velo_goal.h has the functions. */
#ifndef VELO_TYPES_GOAL_H
#define VELO_TYPES_GOAL_H

#include "types/messages.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Executes runs over an engine and a messenger of its own. */
typedef struct velo_performer velo_performer;
/* One rank's graph while it is being built. */
typedef struct velo_goal_graph velo_goal_graph;
/* A compiled graph; may be started any number of times, also while runs of it are under way. */
typedef struct velo_goal_schedule velo_goal_schedule;
/* Processes that run schedules together: rank i of their schedules is member i. */
typedef struct velo_goal_group velo_goal_group;
/* A schedule that is being executed. */
typedef struct velo_goal_run velo_goal_run;

/* An operation of a graph, counted from 0 in the order of their making. */
typedef uint32_t velo_goal_vertex;
#define VELO_GOAL_NO_VERTEX UINT32_MAX
/* Source or tag of a receive. */
#define VELO_GOAL_ANY UINT32_MAX
/* The largest tag of a message, which a receive may name too. */
#define VELO_GOAL_MOST_TAG ((uint32_t)INT32_MAX)

/* Where data is: a space and an offset in it. Spaces 0..15 are the arguments that a run is started with. */
enum {
    VELO_GOAL_ARGUMENTS = 16, /* so many */
    VELO_GOAL_SCRATCH = 16,   /* memory that each run has for itself, with contents undefined at its start */
    VELO_GOAL_ABSOLUTE = 17,  /* the offset is an address */
    VELO_GOAL_NOWHERE = 18    /* no data of anybody's; so many bytes are moved all the same */
};
typedef struct velo_goal_place {
    uint64_t offset;
    uint8_t space;
} velo_goal_place;
typedef struct velo_goal_piece {
    velo_goal_place place;
    uint64_t bytes;
} velo_goal_piece;

typedef enum velo_goal_operator {
    VELO_GOAL_MAX,
    VELO_GOAL_MIN,
    VELO_GOAL_ADD,
    VELO_GOAL_SUB,
    VELO_GOAL_DIV, /* by 0: 0 */
    VELO_GOAL_MUL,
    VELO_GOAL_COPY, /* has a first source only */
    VELO_GOAL_AND,  /* AND, OR, XOR: of bits, no floats */
    VELO_GOAL_OR,
    VELO_GOAL_XOR,
    VELO_GOAL_WTIME, /* no source, no type: stores the seconds of a monotonic clock, a double */
    VELO_GOAL_OWN    /* velo_goal_start.combine, of unsigned elements of 8 bits, which lie together */
} velo_goal_operator;
typedef enum velo_goal_type { VELO_GOAL_SINT, VELO_GOAL_UINT, VELO_GOAL_FLOAT } velo_goal_type;

/* result[i] = first[i] op second[i], over the pieces in their order. The result may be one of the sources,
 * but must not overlap them otherwise. */
typedef struct velo_goal_combination {
    velo_goal_operator op;
    velo_goal_type type;
    uint32_t width; /* bits of an element: 8, 16, 32, 64 */
    uint64_t elements;
    const velo_goal_piece *first, *second, *result;
    uint32_t first_count, second_count, result_count;
} velo_goal_combination;

/* How a run ended. */
typedef struct velo_goal_result {
    /* VELO_OK, or of the first operation that failed: VELO_ERR_REMOTE the transfer failed; VELO_ERR_MISMATCH
     * a message was longer or shorter than its receive; VELO_ERR_UNREACHABLE no way to the peer;
     * VELO_ERR_RESOURCE no memory; VELO_ERR_PROTOCOL the peer is in another collective operation; or what a
     * call returned. */
    velo_status status;
    velo_goal_vertex vertex; /* that operation; VELO_GOAL_NO_VERTEX: none */
    uint32_t peer;           /* its peer; VELO_GOAL_ANY: it has none */
    uint32_t rank;           /* of whom it is: a member that waits for a failed one fails with it */
} velo_goal_result;

/* How to start a run. Zeros are defaults. Everything but the buffers may go when the call has returned. */
typedef struct velo_goal_start {
    void* const* arguments; /* addresses of the spaces 0..; their memory has to live until the run is over */
    uint32_t argument_count;
    /* Calls of the schedule, in the thread that calls velo_goal_progress; may start runs, and must not wait
     * for any. Without it they do nothing. A status below 0 ends the run. */
    velo_status (*call)(void* context, uint32_t function);
    /* result = first op second by VELO_GOAL_OWN, in the same thread; the result may be one of the sources.
     * Without it no schedule with such combinations is started. */
    void (*combine)(void* context, const void* first, const void* second, void* result, uint64_t bytes);
    /* Calculations that take time, in the same thread, which they may keep. Without it they take none. */
    void (*calculate)(void* context, uint64_t ns, uint8_t cpu);
    /* The run is over, told within velo_goal_progress and nowhere else. It may end the run and start others.
     */
    void (*done)(void* context, velo_goal_run* run);
    void* context;
    /* Not 0: of velo_goal_group_lane. The run has no number, and meets those of its lane: of which a member
     * has one under way at a time, so that its n-th one meets the n-th ones of the others. Tags are below
     * 65536. When one has failed at a member, the later ones do so at all who wait for it. */
    uint32_t lane;
    uint64_t lane_number; /* how many runs of the lane this member has started before */
    bool awaited;         /* this thread makes progress until it is over: no helper is woken for it */
} velo_goal_start;

/* Where a member of a group is: asked for each member once, from within velo_goal_run_start or
 * velo_goal_progress, when the first message goes to it or is to come from it; must not call progress. NULL:
 * nowhere; the run ends with VELO_ERR_UNREACHABLE. Not asked for this process itself. */
typedef velo_peer* (*velo_goal_reach_fn)(void* context, uint32_t rank);

/* A block that goes to or comes from a peer. Without bytes there is no message. */
typedef struct velo_goal_block {
    uint32_t peer, tag;
    uint64_t offset; /* in its buffer */
    uint64_t bytes;
} velo_goal_block;

/* A collective operation by name. All that decides must be the same at all members, but for in_place, and for
 * the blocks of each. */
typedef struct velo_goal_request {
    const char* operation; /* barrier, bcast, reduce, allreduce, reduce_scatter, reduce_scatter_block, scan,
                            * exscan, gather, gatherv, scatter, scatterv, allgather, allgatherv, alltoall,
                            * alltoallv, exchange */
    const char* algorithm; /* NULL: chosen by bytes and size */
    uint32_t root;
    uint64_t bytes;        /* of a block; of a reduction, a broadcast, an allgatherv: of all */
    uint64_t segment;      /* of a pipeline; 0: the algorithm's own */
    bool in_place;         /* what this rank would send lies in the receive buffer already */
    velo_goal_operator op; /* reductions: operator, type and width in bits */
    velo_goal_type type;
    uint32_t width;
    uint64_t element; /* of VELO_GOAL_OWN: bytes that stay together */
    bool ordered; /* operands are combined in the order of the ranks */
    /* v-forms: what a buffer with blocks of all ranks has, in their order. reduce_scatter: in `sends`, what
     * each rank gets of the vector. exchange: any messages; those of a pair meet in the order of the lists,
     * by their tags. */
    const velo_goal_block *sends, *receives;
    uint32_t send_count, receive_count;
    uint32_t on_node; /* the first so many ranks are on the first node, and so on; 0: 1 */
    /* What goes between the leaders of nodes may go to all of them at once: they are the members of
     * velo_performer_multicast. bcast by leaders only. */
    bool multicast;
} velo_goal_request;

/* What users of collectives set; parameters.inc says what each one is. */
typedef struct velo_coll_config {
#define VELO_COLL_PARAMETER VELO_PARAMETER_MEMBER
#include "types/parameters.inc"
} velo_coll_config;

typedef struct velo_performer_config {
    velo_config engine; /* as for velo_engine_open; message and gone are the performer's */
    velo_messenger_config messages;
    const char* choices; /* coll_velo_choices; NULL or empty: Velo's own */
    /* A thread of the performer goes on with runs that send, receive and combine so many bytes and more while
     * the program computes; 0: none. It calls nothing of the program's. The engine has locks then, as with
     * engine.threads. */
    uint64_t helper;
} velo_performer_config;

/* The processes that lead the nodes of a job, and multicast to each other; alike in all of them but for `me`.
 * A process that one of them leads joins them when that one is late too often. */
typedef struct velo_multicast_config {
    uint8_t key[16];           /* of the job, a secret: what is not sealed with it is not heard */
    uint32_t me, count;        /* which of them this process is, or is led by */
    bool led;                  /* the latter */
    uint32_t attach_after_us;  /* led: a leader that takes longer is late; 0: it never is */
    const uint32_t* addresses; /* IPv4, in the order of the network */
    const uint32_t* ranks;     /* who they are, for messages */
    uint32_t mtu;              /* the least of their interfaces' */
    const velo_coll_config* chosen; /* multicast_shares, multicast_scheme, ...; NULL: the defaults */
    uint32_t stall_warning;    /* seconds until a wait is told; 0: never */
} velo_multicast_config;

/* The rows VELO_MULTICAST_COUNTER of types/counters.inc. */
typedef struct velo_multicast_state {
#define VELO_MULTICAST_COUNTER(kind, name, help) uint64_t name;
#include "types/counters.inc"
} velo_multicast_state;

/* What has happened so far. */
typedef struct velo_performer_state {
    uint64_t runs;  /* started */
    uint64_t ended; /* over, failed ones included */
    uint64_t failed;
    uint64_t told;       /* members that would have waited for a run that has failed here */
    uint64_t operations; /* started */
    uint64_t network_messages; /* sent to other nodes, without what went by multicast */
    uint64_t network_peers;    /* processes there that they went to */
    uint64_t compiled;   /* schedules of collective operations made; the others were at hand */
    uint64_t helped;     /* operations that the helper has started */
    uint64_t helper_wakes; /* times that it was parked, and woken */
    uint64_t choices;    /* digest of the rules for their algorithms */
    velo_messenger_state messages;
    bool multicasts; /* this process leads a node */
    velo_multicast_state multicast;
} velo_performer_state;

#ifdef __cplusplus
}
#endif
#endif
