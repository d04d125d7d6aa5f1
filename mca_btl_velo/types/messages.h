/* The types of messages with matching. api/velo_messages.h has the functions. */
#ifndef VELO_TYPES_MESSAGES_H
#define VELO_TYPES_MESSAGES_H

#include "types/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct velo_messenger velo_messenger;

/* Nobody makes progress for the sake of a buffered one: it does not wait for others that leave with it. */
typedef enum velo_send_mode {
    VELO_SEND_STANDARD,
    VELO_SEND_SYNCHRONOUS,
    VELO_SEND_BUFFERED
} velo_send_mode;

/* What a message is matched by: communicator, rank of the sender in it, tag. */
typedef struct velo_key {
    uint32_t context;
    int32_t source;
    int32_t tag;
} velo_key;

/* For receives and probes. VELO_ANY_TAG matches no negative tag. */
#define VELO_ANY_SOURCE (-1)
#define VELO_ANY_TAG INT32_MIN

typedef struct velo_messenger_config {
    size_t eager_limit; /* bytes of a message that goes without a rendezvous, at most */
#define VELO_MESSENGER_PARAMETER VELO_PARAMETER_MEMBER
#include "types/parameters.inc"
    uint32_t sharers; /* processes among which the pools are divided, this one included */
    bool everywhere;  /* eager_limit holds between nodes, too; false: there half of a peer's slots count */
} velo_messenger_config;

/* A send, owned by the caller until it is complete. */
typedef struct velo_message_send {
    /* Called once, unless velo_message_start said VELO_OK. The memory is the caller's again. */
    void (*done)(struct velo_message_send* send, velo_status status);
    /* The engine's; the caller need not initialise these. */
    velo_send send;
    uint64_t header[5];
    uint32_t awaited;
    velo_status status;
    bool takes_header;
    void* placement;
    struct velo_peer* depositor; /* whom `deposit` is for, which is to end; NULL: nothing has begun */
    uint64_t deposit;            /* velo_deposit_begin */
} velo_message_send;

/* A receive, owned by the caller until it is complete. */
typedef struct velo_message_receive {
    void* buffer; /* where the message goes, unless it is given to unpack */
    size_t capacity;
    /* NULL, or called for each part of the message in order. */
    void (*unpack)(struct velo_message_receive* receive, const void* data, size_t bytes);
    /* Called once, possibly before the call that started the receive returns. The memory is the caller's
     * again. */
    void (*done)(struct velo_message_receive* receive, velo_status status);
    /* When it is done: the message, and how long it is. More than `capacity`: the rest has been dropped. */
    velo_key matched;
    size_t bytes;
    /* The engine's. */
    uint64_t posted[6];
    void* fetching;
    velo_peer* peer;
    uint64_t remote, id, position;
    void* part;
    uint32_t turn;
    uint32_t announced;
} velo_message_receive;

/* A message that velo_message_take has taken out of the queue. */
typedef struct velo_message velo_message;

/* The values in effect, and what has happened so far. */
typedef struct velo_messenger_state {
    uint64_t pool_bytes;      /* that the pool may take; headers are beyond it */
    uint64_t share_bytes;     /* of one sender */
    uint64_t pool_used_bytes; /* by unmatched payload now */
    uint64_t pool_most_bytes; /* high-water mark of that */
    uint64_t headers;         /* of unmatched rendezvous now */
    uint64_t headers_most;    /* high-water mark of that */
    uint64_t share_headers;   /* rendezvous that one sender may have under way */
    uint64_t held;         /* messages held back at this sender now, beyond what receivers have headers for */
    uint64_t held_most;    /* high-water mark of that */
    uint64_t memory_bytes; /* taken from the system for both */
    uint64_t eager;        /* messages sent with their payload */
    uint64_t rendezvous;   /* messages sent as a header */
    uint64_t degraded;     /* of them, those that were short enough but met a full pool */
    uint64_t matched_at_once; /* messages that met a receive */
    uint64_t unexpected;      /* messages that did not */
    uint64_t announced;       /* receives that have told their senders where the data go */
    uint64_t placed;          /* messages that the sender has copied all alone to such a receive */
} velo_messenger_state;

#ifdef __cplusplus
}
#endif
#endif
