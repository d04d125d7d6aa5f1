/* The types that the C interface and the engine below it share. api/velo.h has the functions. */
#ifndef VELO_TYPES_ENGINE_H
#define VELO_TYPES_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "platform/status.h"
#include "types/parameters.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct velo_engine velo_engine;
typedef struct velo_peer velo_peer;
typedef struct velo_send velo_send;

/* Called when a queued send is complete: `status` is VELO_OK or an error. The velo_send is the caller's again
 * and may be freed or reused inside the callback. */
typedef void (*velo_send_done_fn)(velo_send* send, velo_status status);

/* Bytes of a message to another node that travels at once, at most; as far as half of a peer's slots there
 * hold it. A rendezvous costs two more journeys. */
#define VELO_MOST_NETWORK_EAGER_BYTES ((size_t)131136)

/* A message to be sent: two parts that arrive as one contiguous message. Owned by the caller, who keeps it
 * and what it points to unchanged from velo_send_start until completion. */
struct velo_send {
    const void* part[2];
    size_t bytes[2];        /* sum: at most velo_config.max_message_bytes */
    uint8_t tag;            /* active message tag, given to the receiver's message callback */
    bool collectable;       /* its owner makes progress until it has left, with others or from where it is */
    velo_send_done_fn done; /* called only after VELO_QUEUED */
    /* The engine's; the caller need not initialise these. */
    struct velo_send* next;
    size_t sent;
    uint8_t flags;
    velo_status status;
};

/* How many parameters there are. */
enum {
    VELO_PARAMETERS =
#define VELO_PARAMETER(...) 1 +
#define VELO_BASE_PARAMETER(...) 1 +
#define VELO_MESSENGER_PARAMETER(...) 1 +
#define VELO_COLL_PARAMETER(...) 1 +
#include "types/parameters.inc"
        0
};

/* A message has arrived. `data` is valid only during the call; from this node it is 2-byte aligned at least,
 * from another one perhaps not. */
typedef void (*velo_message_fn)(void* context, uint8_t tag, void* data, size_t bytes);

/* Always, but not by every process of a node that finds the same: they differ behind the first ": " at most. */
enum { VELO_LOG_ONCE_A_NODE = -1 };

typedef struct velo_config {
/* What users set; parameters.inc says what each one is. */
#define VELO_PARAMETER VELO_PARAMETER_MEMBER
#include "types/parameters.inc"

    size_t eager_limit;         /* bytes, 0: automatic; only compared with the peers' */
    size_t max_message_bytes;   /* largest message for velo_send_*, bytes; 64..16 MiB */
    uint64_t trace_limit_bytes; /* instead of trace_limit, unless it is 0 */
    uint32_t processes_per_processor; /* beyond 1 peers may not be running: get does without their help */
    bool threads;               /* several threads call the engine */
    bool outlives_peers;        /* a lost connection is the end of that peer alone */
    bool describe_locality;     /* where the process runs belongs to the description: costs milliseconds */
    bool second;                /* another engine of this process has told the routes, which are the same */

    uint64_t process_name;      /* this process, unique among all that may ever connect; not UINT64_MAX */
    const uint64_t* node_peers; /* the other processes of the job on this node, ascending */
    uint32_t node_peer_count;   /* 0..65535 */
    /* Those of the processes on this node that are served by the LiMIC-like path, ascending: none of them
     * is in node_peers. */
    const uint64_t* limic_peers;
    uint32_t limic_peer_count;

    /* The other processes of the job on other nodes, ascending; none: no network is opened. */
    const uint64_t* remote_peers;
    uint32_t remote_peer_count; /* 0..65535 */

    void* context; /* given to the callbacks below */
    velo_message_fn message;
    /* Something is broken for good (VELO_ERR_PROTOCOL), or memory has run out. `text` says what. No lock is
     * held: it may exit. If it returns, nothing moves any more, and the engine waits to be closed. */
    void (*fatal)(void* context, velo_status status, const char* text);
    /* The process of another job in that place has ended. Another one may get the place when this has
     * returned, so that the peer there must not be used any more: velo_peer_nobody is there instead. NULL is
     * allowed. */
    void (*gone)(void* context, uint32_t place, uint64_t process_name);
    /* With outlives_peers: a process on another node is lost, as the log has said. No lock is held. NULL is
     * allowed. */
    void (*lost)(void* context, uint64_t process_name);
    /* One line for the log; level as in opal_output_verbose: 0 always, 5 component, 20 detail; or
     * VELO_LOG_ONCE_A_NODE. */
    void (*log)(void* context, int level, const char* text);
} velo_config;

/* Collective operations that a board serves. */
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

/* What a member of a board does, for the trace. */
typedef enum velo_board_step {
    VELO_BOARD_BEGINS,  /* an operation; `number`: its bytes */
    VELO_BOARD_WAITS,   /* longer than a look; for the member `number`, UINT32_MAX: nobody in particular */
    VELO_BOARD_GOES_ON, /* after a wait */
    VELO_BOARD_ENDS     /* an operation; `number`: its bytes */
} velo_board_step;
typedef struct velo_board_event {
    velo_board_step step;
    uint8_t operation; /* velo_board_operation, of BEGINS and ENDS */
    bool is_request;   /* but for persistent ones they end in the order in which they begin, and never wait */
    uint16_t communicator;
    uint64_t number;
} velo_board_event;

/* Called when an RMA operation is complete at both ends. `result`: the old value of a fetching atomic. */
typedef void (*velo_rma_done_fn)(void* argument, velo_status status, uint64_t result);

typedef enum velo_atomic {
    VELO_ATOMIC_ADD,
    VELO_ATOMIC_AND,
    VELO_ATOMIC_OR,
    VELO_ATOMIC_XOR,
    VELO_ATOMIC_SWAP,
    VELO_ATOMIC_MIN, /* signed */
    VELO_ATOMIC_MAX, /* signed */
    VELO_ATOMIC_CSWAP
} velo_atomic;

/* What can be watched: numbers of the process, and of each of its peers. */
typedef enum velo_counter_kind {
    VELO_COUNTER_SUM,        /* grows with each event */
    VELO_COUNTER_TIME,       /* grows, nanoseconds */
    VELO_COUNTER_LEVEL,      /* goes up and down */
    VELO_COUNTER_HIGH_WATER, /* the largest so far */
    VELO_COUNTER_GENERIC     /* says what something is */
} velo_counter_kind;

/* How many of them there are at most. */
enum {
    VELO_COUNTERS =
#define VELO_FLOW_COUNTER(...) 1 +
#define VELO_COUNTER(...) 1 +
#define VELO_READ_COUNTER(...) 1 +
#define VELO_PEER_COUNTER(...) 1 +
#define VELO_MULTICAST_COUNTER(...) 1 +
#define VELO_SCHEDULE_COUNTER(...) 1 +
#include "types/counters.inc"
        0
};

/* Of what velo_deposit_begin returns, the part that the peer is told. */
#define VELO_DEPOSIT_NUMBER(deposit) ((uint32_t)((deposit)&0xff))

typedef struct velo_counter {
    const char* name; /* lower case, with underscores */
    const char* help;
    velo_counter_kind kind;
    bool per_peer; /* one value for each peer: velo_counter_of_peers */
} velo_counter;

#ifdef __cplusplus
}
#endif
#endif
