/* Messages with MPI's matching over an engine: what the MTL is made of. C interface, as velo.h.
 *
 * A velo_messenger adds to the engine's mailbox: receives that wait, messages that no receive has matched
 * yet, and the pool in which the payload of those is kept. Every process may keep so much in the pool of a
 * peer as that peer has told it; beyond that its messages go by rendezvous, so that they take a header there
 * and no payload. Threads: as the engine. Callbacks run without a lock held. */
#ifndef VELO_API_VELO_MESSAGES_H
#define VELO_API_VELO_MESSAGES_H

#include "api/velo.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct velo_messenger velo_messenger;

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
    size_t eager_limit;     /* bytes of payload that are sent without a rendezvous, at most */
    size_t unexpected_pool; /* bytes of memory for messages that no receive has matched */
    uint32_t sharers;       /* processes among which the pools are divided, this one included */
    size_t header_pool;     /* bytes of memory for headers of rendezvous that no receive has matched */
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
    velo_messenger* messenger;
    velo_peer* peer;
    uint64_t remote, id, position;
    void* part;
    uint32_t turn;
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
    uint64_t held;            /* messages held back at this sender now, beyond what receivers have headers for */
    uint64_t held_most;       /* high-water mark of that */
    uint64_t memory_bytes;    /* taken from the system for both */
    uint64_t eager;           /* messages sent with their payload */
    uint64_t rendezvous;      /* messages sent as a header */
    uint64_t degraded;        /* of them, those that were short enough but met a full pool */
    uint64_t matched_at_once; /* messages that met a receive */
    uint64_t unexpected;      /* messages that did not */
} velo_messenger_state;

/* One messenger for an engine, opened before the first message is sent to it. `error` as in velo_engine_open.
 */
velo_status velo_messenger_open(velo_engine* engine, const velo_messenger_config* config,
                                velo_messenger** messenger, char* error, size_t error_bytes);
void velo_messenger_close(velo_messenger* messenger);

/* What a peer needs besides velo_engine_address: its share of this process's pool. Valid until close. */
const void* velo_messenger_address(const velo_messenger* messenger, size_t* bytes);
/* From now on messages to that peer may be sent. Once for each peer; more do no harm. */
velo_status velo_messenger_connect(velo_messenger* messenger, velo_peer* peer, const void* address,
                                   size_t bytes);

typedef enum velo_send_mode { VELO_SEND_STANDARD, VELO_SEND_SYNCHRONOUS } velo_send_mode;

/* Keys in parts: put together by narrow stores and fetched by wide loads, they would stall the processor.
 *
 * Sends `bytes` at `data`; `source` is this process. `peer` NULL: to itself. VELO_OK: complete.
 * VELO_QUEUED: `send->done` will be called, for a synchronous send when a receive has matched. Messages to
 * one peer are matched in the order of these calls. */
velo_status velo_message_start(velo_messenger* messenger, velo_peer* peer, uint32_t context, int32_t source,
                               int32_t tag, const void* data, size_t bytes, velo_send_mode mode,
                               velo_message_send* send);

/* Receives the first message that matches, now or when it comes. VELO_OK, or an error and no callback. */
velo_status velo_message_receive_start(velo_messenger* messenger, uint32_t context, int32_t source,
                                       int32_t tag, velo_message_receive* receive);

/* True if it had not matched: `done` will not be called. */
bool velo_message_cancel(velo_messenger* messenger, velo_message_receive* receive);

/* Looks for a message that matches and has come. */
bool velo_message_probe(velo_messenger* messenger, velo_key pattern, velo_key* key, size_t* bytes);
/* Takes it out of the queue; NULL if there is none. */
velo_message* velo_message_take(velo_messenger* messenger, velo_key pattern, velo_key* key, size_t* bytes);
velo_status velo_message_receive_taken(velo_messenger* messenger, velo_message* message,
                                       velo_message_receive* receive);

/* Drops what is left unmatched in a context that is no longer used. */
void velo_message_forget(velo_messenger* messenger, uint32_t context);

void velo_messenger_observe(const velo_messenger* messenger, velo_messenger_state* state);

#ifdef __cplusplus
}
#endif
#endif
