/* Schedules: graphs of sends, receives and local operations, executed over messages with bounded memory. C
 * interface, as velo.h.
 *
 * A performer has an engine and a messenger of its own: a mailbox, credits, a pool for what comes before it
 * is asked for. Its members form groups; a group counts the runs that its members start, each member for
 * itself, and all in the same order: a run meets the run of the same number at the others and no other.
 *
 * Units: bytes, nanoseconds. Handles are opaque. No function throws, aborts or exits. Threads: with
 * velo_config.threads set any function may be called from any thread at any time, but for open and close, and
 * for a graph, which has one user at a time. Callbacks run without a lock held, within velo_goal_progress. */
#ifndef VELO_API_VELO_GOAL_H
#define VELO_API_VELO_GOAL_H

#include "api/velo_messages.h"
#include "types/goal.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- graphs and schedules: need no performer */

/* The part of rank `rank` of `size`. VELO_ERR_PARAMETER, VELO_ERR_RESOURCE. */
velo_status velo_goal_graph_new(uint32_t rank, uint32_t size, velo_goal_graph** graph);
/* At any time, also when it has been compiled. NULL is allowed. */
void velo_goal_graph_free(velo_goal_graph* graph);

/* Each adds an operation and returns it: 0, 1, 2, ... What is wrong with one is kept, and told by compile.
 * Buffers are read and written when a run executes the operation. */
velo_goal_vertex velo_goal_send(velo_goal_graph* graph, velo_goal_place from, uint64_t bytes, uint32_t to,
                                uint32_t tag);
/* `from` and `tag` may be VELO_GOAL_ANY. The message has to be of that length. */
velo_goal_vertex velo_goal_receive(velo_goal_graph* graph, velo_goal_place into, uint64_t bytes,
                                   uint32_t from, uint32_t tag);
/* Pieces travel without gaps, in their order; the lists are copied. Both ends may cut differently. */
velo_goal_vertex velo_goal_send_pieces(velo_goal_graph* graph, const velo_goal_piece* pieces, uint32_t count,
                                       uint32_t to, uint32_t tag);
velo_goal_vertex velo_goal_receive_pieces(velo_goal_graph* graph, const velo_goal_piece* pieces,
                                          uint32_t count, uint32_t from, uint32_t tag);
/* The lists are copied. */
velo_goal_vertex velo_goal_combine(velo_goal_graph* graph, const velo_goal_combination* combination);
/* velo_goal_start.call with this number. */
velo_goal_vertex velo_goal_call(velo_goal_graph* graph, uint32_t function);
/* velo_goal_start.calculate. With 0 ns: an operation that does nothing, for requirements to meet in. */
velo_goal_vertex velo_goal_calculate(velo_goal_graph* graph, uint64_t ns, uint8_t cpu);

/* `later` starts when `earlier` has finished; when it has been started. */
void velo_goal_requires(velo_goal_graph* graph, velo_goal_vertex later, velo_goal_vertex earlier);
void velo_goal_requires_start(velo_goal_graph* graph, velo_goal_vertex later, velo_goal_vertex earlier);
/* At least so much memory in VELO_GOAL_SCRATCH for each run, aligned to 64. */
void velo_goal_scratch(velo_goal_graph* graph, uint64_t bytes);

/* Whether there is such an operation: AND, OR, XOR know no floats. */
bool velo_goal_is_legal(velo_goal_operator op, velo_goal_type type, uint32_t width);

/* VELO_ERR_PARAMETER: the graph was built wrongly or has a cycle; `error` (of `error_bytes`) names it. The
 * graph stays as it is. */
velo_status velo_goal_compile(const velo_goal_graph* graph, velo_goal_schedule** schedule, char* error,
                              size_t error_bytes);
/* Runs that are under way keep what they need. NULL is allowed. */
void velo_goal_schedule_free(velo_goal_schedule* schedule);

/* Names of the operations' algorithms in the order of a table: NULL beyond the last. */
const char* velo_goal_algorithm_at(unsigned index, const char** operation);

/* --- performers */

/* The parameters at their defaults, everything else 0. */
velo_coll_config velo_default_coll_config(void);
velo_performer_config velo_default_performer_config(void);
velo_status velo_performer_open(const velo_performer_config* config, velo_performer** performer, char* error,
                                size_t error_bytes);
/* Its groups are closed. Runs that are under way are dropped without a callback, and none may be ended any
 * more. NULL is allowed. */
void velo_performer_close(velo_performer* performer);
void velo_performer_abandon(velo_performer* performer); /* velo_engine_abandon */
/* Where the engine, which the process drives as well, sleeps when its mailbox stays empty, the performer does
 * so too, and both only if neither has anything. Before anything is sent; until either is closed. */
void velo_performer_pair_idle_with(velo_performer* performer, velo_engine* engine);
/* Neither sleeps within the next few calls of progress: the process waits for something that would not wake
 * it. */
void velo_performer_reset_idle(velo_performer* performer);

/* What the others need in order to reach this process. Valid until close. */
const void* velo_performer_address(const velo_performer* performer, size_t* bytes);
/* The process with that address, on this node or another one; once for each, more do no harm. The peer is the
 * performer's. On failure *peer is NULL and `error` says why. */
velo_status velo_performer_connect(velo_performer* performer, const void* address, size_t bytes,
                                   velo_peer** peer, char* error, size_t error_bytes);

/* --- multicast between nodes (design/multicast.md) */

/* This process's interface, by name; empty: the one that UCX_NET_DEVICES names, or any. False: there is none
 * that multicasts. */
bool velo_multicast_interface(const char* name, uint32_t* address, uint32_t* mtu);
/* A key for a job: one of its processes makes it, and all others have to know it. False: it cannot be had. */
bool velo_multicast_new_key(uint8_t key[16]);
/* Once. Whether all hear each other is found out when something is first to be sent; until then, and where
 * they do not, broadcasts go to each. */
velo_status velo_performer_multicast(velo_performer* performer, const velo_multicast_config* config,
                                     char* error, size_t error_bytes);

void velo_performer_observe(velo_performer* performer, velo_performer_state* state);

/* Names of the rows VELO_MULTICAST_COUNTER; NULL beyond the last. */
const char* velo_performer_counter_at(unsigned index);
/* The counter of that name; 0: there is none, or no performer. */
uint64_t velo_performer_counter(velo_performer* performer, const char* name);

/* --- groups */

/* `id`, 0 to 65535, is the same at all members, and no two groups that share a process have the same at one
 * time. Those of communicators of MPI are below VELO_GOAL_FIRST_FREE_ID. */
#define VELO_GOAL_FIRST_FREE_ID 32768U
velo_status velo_goal_group_open(velo_performer* performer, uint32_t id, uint32_t rank, uint32_t size,
                                 velo_goal_reach_fn reach, void* context, velo_goal_group** group);
/* For a group: a name that no other one of the job ever has, as ids come again. `members`: a hash of the
 * processes in the order of their ranks. Each member asks once for each such group, before the next one with
 * the id begins, and all get the same. Two groups with ids of their own may share it but for its highest bit.
 * VELO_ERR_RESOURCE. */
velo_status velo_goal_new_name(velo_performer* performer, uint64_t members, uint32_t id, uint64_t* name);
/* Before its first run; one that multicasts has to have one, and one that goes on after a failure. */
void velo_goal_group_name(velo_goal_group* group, uint64_t name);
/* No run may be started any more; those that are under way go on, and ask `reach` as long as they do. */
void velo_goal_group_close(velo_goal_group* group);

/* The schedule of a collective operation, at hand or made now. It is the group's, until the next call for
 * this group or its end; a run that has been started keeps it. VELO_ERR_UNSUPPORTED: no such operation or
 * algorithm; the same at all members that give the same request. */
velo_status velo_goal_group_schedule(velo_goal_group* group, const velo_goal_request* request,
                                     velo_goal_schedule** schedule);

/* The same for its own, whoever calls for the group meanwhile, as another thread may: free it when it is not
 * to be started any more. */
velo_status velo_goal_group_keep(velo_goal_group* group, const velo_goal_request* request,
                                 velo_goal_schedule** kept);
/* The next lane of the group, from 1 on; all members take theirs in the same order. */
uint32_t velo_goal_group_lane(velo_goal_group* group);

/* --- runs */

/* Starts the next run of the group, and what is independent in it. Nothing is waited for. The schedule must
 * be of this rank and size, and of no other performer. VELO_OK: *run is there, possibly complete already; it
 * is the caller's, who ends it. Otherwise no number has been taken. */
velo_status velo_goal_run_start(velo_goal_group* group, velo_goal_schedule* schedule,
                                const velo_goal_start* start, velo_goal_run** run);
/* Takes the next number and starts nothing: for what goes another way at this member, so that all count
 * alike. */
void velo_goal_run_skip(velo_goal_group* group);
/* Memory is read, nothing else is done. */
bool velo_goal_run_is_over(const velo_goal_run* run);
/* Of a run that is over: gives it back. */
velo_goal_result velo_goal_run_end(velo_goal_run* run);
/* In words what a status below VELO_OK in a result says. */
const char* velo_goal_reason(velo_status status);

/* Handles packets and starts what is ready, at most 256 operations of it; calls back. Returns the number of
 * events; 0 also when called from inside a callback. Call it as often as velo_progress. */
int velo_goal_progress(velo_performer* performer);

/* --- for programs that do not link the plugin: they find this table in it by its name */

/* The performer of this MPI process, opened at the first call, with an engine that opal_progress drives too.
 * NULL: it cannot be had; `error` says why. */
typedef velo_performer* (*velo_performer_acquire_fn)(bool threads, char* error, size_t error_bytes);
/* As often as acquired; the last one closes it. Before MPI_Finalize, and when the runs of all others are over
 * too (a barrier): a process that ends takes what others still have for it along. */
typedef void (*velo_performer_release_fn)(void);

#define VELO_GOAL_FUNCTIONS(FUNCTION)  \
    FUNCTION(velo_goal_graph_new)      \
    FUNCTION(velo_goal_graph_free)     \
    FUNCTION(velo_goal_send)           \
    FUNCTION(velo_goal_receive)        \
    FUNCTION(velo_goal_send_pieces)    \
    FUNCTION(velo_goal_receive_pieces) \
    FUNCTION(velo_goal_combine)        \
    FUNCTION(velo_goal_call)           \
    FUNCTION(velo_goal_calculate)      \
    FUNCTION(velo_goal_requires)       \
    FUNCTION(velo_goal_requires_start) \
    FUNCTION(velo_goal_scratch)        \
    FUNCTION(velo_goal_is_legal)       \
    FUNCTION(velo_goal_compile)        \
    FUNCTION(velo_goal_schedule_free)  \
    FUNCTION(velo_performer_address)   \
    FUNCTION(velo_performer_connect)   \
    FUNCTION(velo_performer_observe)   \
    FUNCTION(velo_goal_group_open)     \
    FUNCTION(velo_goal_group_close)    \
    FUNCTION(velo_goal_group_schedule) \
    FUNCTION(velo_goal_run_start)      \
    FUNCTION(velo_goal_run_skip)       \
    FUNCTION(velo_goal_run_is_over)    \
    FUNCTION(velo_goal_run_end)        \
    FUNCTION(velo_goal_reason)         \
    FUNCTION(velo_goal_progress)

typedef struct velo_goal_table {
    velo_performer_acquire_fn acquire;
    velo_performer_release_fn release;
#define VELO_GOAL_MEMBER(function) __typeof__(function)* function;
    VELO_GOAL_FUNCTIONS(VELO_GOAL_MEMBER)
#undef VELO_GOAL_MEMBER
} velo_goal_table;
/* const velo_goal_table velo_goal_table_v1, exported by mca_btl_velo.so. */
#define VELO_GOAL_TABLE_SYMBOL "velo_goal_table_v1"

#ifdef __cplusplus
}
#endif
#endif
