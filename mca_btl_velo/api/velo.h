/* The engine's C interface: the only header of the engine that the Open MPI glue sees.
 *
 * One velo_engine per process: it owns the process's mailbox, its flow control policy and its peers.
 * Handles are opaque. No function throws, aborts or exits; what a caller does next is told for each status.
 * Where memory runs out in a function without a status, `fatal` is called, and it returns false, NULL or 0.
 * Threads: with velo_config.threads set, every function may be called from any thread at any time except open
 * and close; otherwise from one thread at a time. Callbacks run without a lock held, from inside
 * velo_progress, or from the call that they belong to. */
#ifndef VELO_API_VELO_H
#define VELO_API_VELO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "platform/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct velo_engine velo_engine;
typedef struct velo_peer velo_peer;
typedef struct velo_send velo_send;

/* Called when a queued send is complete: `status` is VELO_OK or an error. The velo_send is the caller's again
 * and may be freed or reused inside the callback. */
typedef void (*velo_send_done_fn)(velo_send* send, velo_status status);

/* A message to be sent: two parts that arrive as one contiguous message. Owned by the caller, who keeps it
 * and what it points to unchanged from velo_send_start until completion. */
struct velo_send {
    const void* part[2];
    size_t bytes[2];        /* sum: at most velo_config.max_message_bytes */
    uint8_t tag;            /* active message tag, given to the receiver's message callback */
    velo_send_done_fn done; /* called only after VELO_QUEUED */
    /* The engine's; the caller need not initialise these. */
    struct velo_send* next;
    size_t sent;
    uint8_t flags;
    velo_status status;
};

typedef enum velo_report { VELO_REPORT_NONE, VELO_REPORT_SUMMARY, VELO_REPORT_JSON } velo_report;

typedef struct velo_config {
    const char* flow_control; /* one of velo_policy_name(0..) */
    uint32_t slots_per_peer;  /* 64-byte slots, data and credit region; 0: sized by the number of peers */
    uint32_t credit_slots;    /* 1..255 */
    bool piggyback;
    /* Of single policies; flow/policy.h says what they mean and what they may be. */
    uint32_t preposted_buffers;
    uint32_t initial_buffers;
    uint32_t growth_buffers;
    uint32_t credit_message_threshold;
    uint64_t rnr_timer_ns;
    uint32_t lazy_slots;
    uint32_t lazy_peers;
    bool lazy_stealing;
    uint32_t lazy_ahead; /* 0..16 */
    bool delay_credits; /* with piggyback: a credit packet waits for the next look at the mailbox, and travels
                           in a data packet for the same peer if one leaves before; static and dynamic only */
    bool packet_trains; /* one header for a run of packets; false: one in each packet, as in the thesis */
    const char* single_copy;       /* "auto", "xpmem", "cma" or "copy" */
    const char* backing_directory; /* existing directory for the shared memory segment */
    uint32_t limic_slots; /* slots of the LiMIC-like path's ring, shared by its senders; 0: automatic */
    uint32_t
        ranks_per_node;   /* size of a virtual node, 0: no LiMIC-like path; only compared with the peers' */
    uint32_t spare_peers; /* processes of other jobs that may be connected at one time; 0..1024 */
    size_t eager_limit;   /* bytes, 0: automatic; only compared with the peers' */
    size_t max_message_bytes; /* largest message for velo_send_*, bytes; 64..16 MiB */
    uint32_t idle_sleep_us;   /* a process with nothing to do sleeps so long at most, 0: never; ignored with
                                 threads */
    bool oversubscribed;      /* peers may not be running: get does without their help */
    bool threads;             /* several threads call the engine */
    bool describe_locality;   /* where the process runs belongs to the description: costs milliseconds */
    uint32_t stall_warning_seconds; /* log when nothing may be sent to a peer for so long; 0: never */
    const char* trace;              /* directory or beginning of a path for a trace file; NULL or "": none */
    uint64_t trace_limit_bytes;     /* of the trace file; 0: no limit */
    velo_report report; /* printed to stderr by velo_engine_close on the lowest process of the node */

    uint64_t process_name;      /* this process, unique among all that may ever connect; not UINT64_MAX */
    const uint64_t* node_peers; /* the other processes of the job on this node, ascending */
    uint32_t node_peer_count;   /* 0..65535 */
    /* Those of the processes on this node that are served by the LiMIC-like path: none of them is in
     * node_peers. */
    const uint64_t* limic_peers;
    uint32_t limic_peer_count;

    /* The other processes of the job on other nodes, ascending; none: no network is opened. */
    const uint64_t* remote_peers;
    uint32_t remote_peer_count;  /* 0..65535 */
    uint32_t network_timeout_ms; /* a connection that acknowledges nothing for so long is lost */

    void* context; /* given to the callbacks below */
    /* A message has arrived. `data` is valid only during the call; from this node it is 2-byte aligned at
     * least, from another one perhaps not. */
    void (*message)(void* context, uint8_t tag, void* data, size_t bytes);
    /* Something is broken for good (VELO_ERR_PROTOCOL), or memory has run out. `text` says what. No lock is
     * held: it may exit. If it returns, nothing moves any more, and the engine waits to be closed. */
    void (*fatal)(void* context, velo_status status, const char* text);
    /* The process of another job in that place has ended. Another one may get the place when this has
     * returned, so that the peer there must not be used any more: velo_peer_nobody is there instead. NULL is
     * allowed. */
    void (*gone)(void* context, uint32_t place, uint64_t process_name);
    /* One line for the log; level as in opal_output_verbose: 0 always, 5 component, 20 detail. */
    void (*log)(void* context, int level, const char* text);
} velo_config;

/* Names of the flow control policies in the order of the table; NULL beyond the last. */
const char* velo_policy_name(unsigned index);

/* Creates the mailbox and all that depends only on this process. On failure *engine is NULL and `error` (of
 * `error_bytes`) holds a message that names the parameter or resource and what to do. */
velo_status velo_engine_open(const velo_config* config, velo_engine** engine, char* error,
                             size_t error_bytes);

/* Detaches from all peers, frees everything. Queued sends are dropped without a callback. Peers that still
 * have this mailbox mapped are not disturbed. Prints the report, if asked for. NULL is allowed. */
void velo_engine_close(velo_engine* engine);

/* For a process that exits without close: writes what the trace has buffered, and takes away the name that
 * the mailbox may have. Does nothing in a process that fork has made. */
void velo_engine_abandon(velo_engine* engine);

/* What a peer needs in order to connect, to be carried by the job's start-up exchange. Valid until close. */
const void* velo_engine_address(const velo_engine* engine, size_t* bytes);

/* One line with the values in effect: policy, slots, bytes. Valid until close. */
const char* velo_engine_description(const velo_engine* engine);

/* Slots of the mailbox for each peer, as resolved. */
uint32_t velo_engine_slots_per_peer(const velo_engine* engine);
/* The same for peers on other nodes; 0 if the engine has no network. */
uint32_t velo_engine_remote_slots_per_peer(const velo_engine* engine);

/* True if the process with that address runs on this machine. For processes of other jobs, whose place the
 * job's launcher does not know. */
bool velo_address_is_here(const void* address, size_t bytes);

/* Prepares for the process with that address and gives it a place, the same one each time. Connects to it at
 * once, unless the flow control opens connections with the first message: then a peer that is never spoken to
 * costs next to nothing. On failure `error` says why. */
velo_status velo_peer_expect(velo_engine* engine, const void* address, size_t bytes, uint32_t* place,
                             char* error, size_t error_bytes);

/* The same for a process on another node, reached through the network. VELO_ERR_UNSUPPORTED: this process has
 * no network; VELO_ERR_UNREACHABLE: that one has none in common. */
velo_status velo_peer_expect_remote(velo_engine* engine, const void* address, size_t bytes, uint32_t* place,
                                    char* error, size_t error_bytes);

/* The peer in that place, from then on the same; to be called when something is to be sent. NULL after
 * `fatal`. */
velo_peer* velo_peer_at(velo_engine* engine, uint32_t place);

/* Stands for processes that are gone: messages to it are lost, as those to an ended process are, and RMA
 * fails. */
velo_peer* velo_peer_nobody(velo_engine* engine);

/* Both in one. Connecting twice gives the same peer. On failure *peer is NULL
 * and `error` says why. The peer belongs to the engine and lives until close. */
velo_status velo_peer_connect(velo_engine* engine, const void* address, size_t bytes, velo_peer** peer,
                              char* error, size_t error_bytes);

/* Sends at once or not at all: VELO_OK (buffers reusable) or VELO_WOULD_BLOCK. Never queues. */
velo_status velo_send_now(velo_engine* engine, velo_peer* peer, uint8_t tag, const void* header,
                          size_t header_bytes, const void* payload, size_t payload_bytes);

/* Sends, or queues what credits do not allow yet: VELO_OK or VELO_QUEUED. Messages to one peer stay in order.
 */
velo_status velo_send_start(velo_engine* engine, velo_peer* peer, velo_send* send);

/* Bytes of messages that wait in the queue of this peer. */
size_t velo_peer_queued_bytes(const velo_peer* peer);

/* Called when an RMA operation is complete at both ends. `result`: the old value of a fetching atomic. */
typedef void (*velo_rma_done_fn)(void* argument, velo_status status, uint64_t result);

/* Reads or writes `bytes` (any number) of the peer's memory. The callback comes exactly once, possibly before
 * the call returns; VELO_OK or VELO_QUEUED accordingly. An error status means that no callback comes. */
velo_status velo_get(velo_engine* engine, velo_peer* peer, void* local, uint64_t remote, size_t bytes,
                     velo_rma_done_fn done, void* argument);
velo_status velo_put(velo_engine* engine, velo_peer* peer, const void* local, uint64_t remote, size_t bytes,
                     velo_rma_done_fn done, void* argument);

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

/* Atomic update of the peer's word at `remote`, aligned to `width` (4 or 8 bytes), executed by the peer's
 * processor instructions and so atomic towards its own. Needs the peer to call velo_progress. The callback's
 * result is the old value. `compare` is used by CSWAP only. VELO_QUEUED, or an error and no callback. */
velo_status velo_atomic_start(velo_engine* engine, velo_peer* peer, velo_atomic operation, unsigned width,
                              uint64_t remote, uint64_t operand, uint64_t compare, velo_rma_done_fn done,
                              void* argument);

/* The same on this process's own memory, at once: with what peers do there it is atomic. */
velo_status velo_atomic_here(velo_atomic operation, unsigned width, uint64_t address, uint64_t operand,
                             uint64_t compare, uint64_t* old_value);

/* Retrieves packets, returns credits, sends what waits. Returns the number of packets handled; 0 also when
 * called from inside a callback. Call it often: a process that waits for credits must keep draining its
 * mailbox. */
int velo_progress(velo_engine* engine);

/* Within the message callback only: the place of the peer that sent the message. It may not be connected yet.
 */
uint32_t velo_message_source(const velo_engine* engine);
/* Within the message callback: whether the sender is on another node. */
bool velo_message_is_remote(const velo_engine* engine);

/* What can be watched: numbers of the process, and of each of its peers. */
typedef enum velo_counter_kind {
    VELO_COUNTER_SUM,        /* grows with each event */
    VELO_COUNTER_TIME,       /* grows, nanoseconds */
    VELO_COUNTER_LEVEL,      /* goes up and down */
    VELO_COUNTER_HIGH_WATER, /* the largest so far */
    VELO_COUNTER_CONSTANT    /* says what something is */
} velo_counter_kind;

typedef struct velo_counter {
    const char* name; /* lower case, with underscores */
    const char* help;
    velo_counter_kind kind;
    bool per_peer; /* one value for each peer: velo_counter_of_peers */
} velo_counter;

/* The counters in the order of the table; NULL beyond the last. */
const velo_counter* velo_counter_at(unsigned index);

/* Reading. Any thread may, at any time between open and close, whatever velo_config.threads says: nothing is
 * locked, and the values are those of a moment ago. `index` is that of velo_counter_at. */
uint64_t velo_counter_value(const velo_engine* engine, unsigned index);
/* How many peers have values: node_peers, then limic_peers, then the processes of other jobs that have
 * connected so far. */
uint32_t velo_counter_peers(const velo_engine* engine);
/* Stores `count` values; 0 for what is not a peer. */
void velo_counter_of_peers(const velo_engine* engine, unsigned index, uint64_t* values, uint32_t count);

/* Writes the state of one peer (NULL: of all) to the log: credits, queue, thresholds. */
void velo_dump(velo_engine* engine, const velo_peer* peer, int level);

#ifdef __cplusplus
}
#endif
#endif
