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

#include "types/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Names of the flow control policies in the order of the table; NULL beyond the last. */
const char* velo_policy_name(unsigned index);

/* The parameters in the order of the table; NULL beyond the last. */
const velo_parameter* velo_parameter_at(unsigned index);
/* The one of that name, or of the name that is most like it; NULL if none is. */
const velo_parameter* velo_parameter_like(const char* name);
/* What does the work of a parameter that is gone; NULL: there was none of that name. */
const char* velo_parameter_instead_of(const char* name);
/* What a user has to know of it: what it is for, what it may be, its default. */
void velo_parameter_help(const velo_parameter* parameter, char* text, size_t text_bytes);
/* Whether a value is permitted, written as users write it. */
bool velo_parameter_permits(const velo_parameter* parameter, const char* value);
/* A sentence with the parameter, the value that was given, NULL if it is not known, and what is permitted. */
void velo_parameter_objection(const velo_parameter* parameter, const char* value, char* text,
                              size_t text_bytes);
/* All parameters at their defaults, everything else 0. */
velo_config velo_default_config(void);
/* How many processors the processes of a job on this machine share, if the process manager has bound each of
 * them where its words say; NULL: it says nothing. */
uint32_t velo_shared_processors(const char* const* localities, uint32_t count);

/* Creates the mailbox and all that depends only on this process. On failure *engine is NULL and `error` (of
 * `error_bytes`) holds a message that names the parameter or resource and what to do. */
velo_status velo_engine_open(const velo_config* config, velo_engine** engine, char* error,
                             size_t error_bytes);

/* From here on messages are for `message`, in place of velo_config.message, with the same context. Before the
 * first one is sent to this process. */
void velo_engine_hand_messages_to(velo_engine* engine, velo_message_fn message);

/* Detaches from all peers, frees everything. Queued sends are dropped without a callback. Peers that still
 * have this mailbox mapped are not disturbed. Prints the report, if asked for. NULL is allowed. */
void velo_engine_close(velo_engine* engine);

/* For a process that exits without close: writes what the trace has buffered, and takes away the name that
 * the mailbox may have. Does nothing in a process that fork has made. */
void velo_engine_abandon(velo_engine* engine);

/* Records it, if there is a trace; the number of a member is its rank in the job. */
void velo_engine_trace_board(velo_engine* engine, const velo_board_event* event);

/* What a peer needs in order to connect, to be carried by the job's start-up exchange. Valid until close. */
const void* velo_engine_address(const velo_engine* engine, size_t* bytes);

/* One line with the values in effect: policy, slots, bytes. Valid until close. */
const char* velo_engine_description(const velo_engine* engine);

/* True if a peer has few slots and this process has no outbox: its long messages would wait for credits. */
bool velo_engine_is_short(const velo_engine* engine);
/* Bytes of a message that should travel to another node at once rather than be announced; 0 if the engine has
 * no network. */
size_t velo_engine_network_eager_limit(const velo_engine* engine);

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

/* Sends at once or not at all: VELO_OK (buffers reusable) or VELO_WOULD_BLOCK, to another node also for one
 * of many since the last look at the network, which is cheaper to send together. Never queues. */
velo_status velo_send_now(velo_peer* peer, uint8_t tag, const void* header, size_t header_bytes,
                          const void* payload, size_t payload_bytes);

/* Sends, or queues what credits do not allow yet: VELO_OK or VELO_QUEUED, the latter also for a collectable
 * one that leaves for another node with later ones, or when the network has sent what it holds. Messages to
 * one peer stay in order. */
velo_status velo_send_start(velo_engine* engine, velo_peer* peer, velo_send* send);

/* It was killed, or has exited without closing its engine, and all that it has sent has come: what is sent to
 * it by velo_send_start is refused with VELO_ERR_REMOTE. */
bool velo_peer_has_died(const velo_peer* peer);
/* The line for the log, once a node, that says that a process of this node was killed. */
void velo_death_text(uint64_t process_name, char* text, size_t bytes);

/* Bytes of messages that wait in the queue of this peer. */
size_t velo_peer_queued_bytes(const velo_peer* peer);

/* Reads or writes `bytes` (any number) of the peer's memory. The callback comes exactly once, possibly before
 * the call returns; VELO_OK or VELO_QUEUED accordingly. An error status means that no callback comes. */
velo_status velo_get(velo_engine* engine, velo_peer* peer, void* local, uint64_t remote, size_t bytes,
                     velo_rma_done_fn done, void* argument);
/* With the number that the peer has told (velo_deposit_begin), which only makes it faster. */
velo_status velo_get_deposited(velo_engine* engine, velo_peer* peer, uint32_t deposit, void* local,
                               uint64_t remote, size_t bytes, velo_rma_done_fn done, void* argument);
velo_status velo_put(velo_engine* engine, velo_peer* peer, const void* local, uint64_t remote, size_t bytes,
                     velo_rma_done_fn done, void* argument);

/* A staged get, the owner's side.
 * - begin returns a name. VELO_DEPOSIT_NUMBER(name) goes into the rendezvous header; 0: nothing is staged.
 * - store, after that message has left, copies what fits; progress copies the rest. It neither waits nor fails.
 * - end: the peer has finished its get. Every begin needs an end, whatever the number.
 * The memory must not change between begin and end. */
uint64_t velo_deposit_begin(velo_peer* peer, const void* data, size_t bytes);
void velo_deposit_store(velo_peer* peer, uint64_t deposit);
void velo_deposit_end(velo_peer* peer, uint64_t deposit);

/* For velo-info: what `choice`, a value of btl_velo_routes, comes to on this machine, as text: a line that
 * says where the table comes from, the name of the processor, the ranges of bytes in words under that
 * btl_velo_eager_limit (NULL: automatic), an empty line, and the table itself; or one line with what is wrong.
 * Returns how many bytes there are, of which up to `room` are stored with a final 0. */
#pragma GCC visibility push(default)
size_t velo_routes_text(const char* choice, const char* eager_limit, char* text, size_t room);
#pragma GCC visibility pop

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
/* Within the callback of a message that had been queued: this call of velo_progress goes on for so many polls
 * of the mailbox, as long as messages wait. */
void velo_extend_progress(velo_engine* engine, uint32_t polls);

/* Within the message callback only: the place of the peer that sent the message. It may not be connected yet.
 */
uint32_t velo_message_source(const velo_engine* engine);
/* Within the message callback: whether the sender is on another node. */
bool velo_message_is_remote(const velo_engine* engine);

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
