/* Messages with MPI's matching over an engine: what the MTL is made of. C interface, as velo.h.
 *
 * A velo_messenger adds to the engine's mailbox: receives that wait, messages that no receive has matched
 * yet, and the pool in which the payload of those is kept. Every process may keep so much in the pool of a
 * peer as that peer has told it; beyond that its messages go by rendezvous, so that they take a header there
 * and no payload. Threads: as the engine. Callbacks run without a lock held. */
#ifndef VELO_API_VELO_MESSAGES_H
#define VELO_API_VELO_MESSAGES_H

#include "api/velo.h"
#include "types/messages.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The parameters at their defaults, everything else 0. */
velo_messenger_config velo_default_messenger_config(void);

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

/* From now on receives from a process that was killed end with VELO_ERR_REMOTE when all that it has sent has
 * been received. is_dead says whether one is from such a process (velo_peer_has_died); it may be called
 * whenever the engine or the messenger is, and calls neither. Receives from any source wait on. */
void velo_messenger_watch(velo_messenger* messenger,
                          bool (*is_dead)(void* of_caller, uint32_t context, int32_t source),
                          void* of_caller);

/* A small message that is not synchronous to another process, if it can leave at once; false: nothing has
 * happened. The short way of velo_message_start. */
bool velo_message_now(velo_messenger* messenger, velo_peer* peer, uint32_t context, int32_t source,
                      int32_t tag, const void* data, size_t bytes);

/* Keys in parts: put together by narrow stores and fetched by wide loads, they would stall the processor.
 *
 * Sends `bytes` at `data`; `source` is this process. `peer` NULL: to itself. VELO_OK: complete.
 * VELO_QUEUED: `send->done` will be called, for a synchronous send when a receive has matched. Messages to
 * one peer are matched in the order of these calls. It may make progress. */
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
