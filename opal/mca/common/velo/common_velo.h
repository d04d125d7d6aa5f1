/* What the components "velo" share: one engine in a process, its parameters btl_velo_* and its counters, the job around it,
 * the way to a peer. A component is a user of the engine. It sees this header and the engine's C interfaces, and no other
 * component. One file per concern, each of which calls those before it only: log, pvars, waits, parameters, job,
 * peers, engine, performer. */
#ifndef MCA_COMMON_VELO_H
#define MCA_COMMON_VELO_H

#include "opal_config.h"

#include "opal/mca/base/mca_base_framework.h"
#include "opal/mca/mca.h"
#include "opal/util/proc.h"

#include "api/velo_goal.h"

BEGIN_C_DECLS

/* FNV-1a: of nothing yet, and with one value more. */
#define MCA_COMMON_VELO_DIGEST UINT64_C(14695981039346656037)
static inline uint64_t mca_common_velo_digest(uint64_t digest, uint64_t value)
{
    return (digest ^ value) * UINT64_C(1099511628211);
}

/* --- the engine: the first user opens it, the last one closes it */

typedef struct mca_common_velo_user_t {
    velo_message_fn message; /* takes the engine's messages; NULL: takes none */
    /* An unrecoverable error: the job ends when this returns. NULL is allowed. */
    void (*failed)(const char *text);
    /* velo_config.gone. Called after release too, as long as there is an engine, if there is `closed`. */
    void (*gone)(uint32_t place, uint64_t process_name);
    /* velo_config.lost. NULL is allowed. */
    void (*lost)(uint64_t process_name);
    /* The engine has closed, possibly long after release. The user, and memory that the engine points to (queued
     * messages), must live until then. NULL: the engine touches nothing of the user after release. */
    void (*closed)(void);
    struct mca_common_velo_user_t *next; /* the shared glue's */
} mca_common_velo_user_t;

/* Gives up if it cannot be had. */
OPAL_DECLSPEC velo_engine *mca_common_velo_acquire(mca_common_velo_user_t *user, bool threads);
OPAL_DECLSPEC void mca_common_velo_release(mca_common_velo_user_t *user);
/* velo_engine_trace_board, of the engine if it is open. */
OPAL_DECLSPEC void mca_common_velo_trace_board(const velo_board_event *event);

/* --- the performer: executes schedules, with an engine of its own. The first user opens it, the last one closes it:
 * coll velo when it opens, programs of goal.h when they ask */

/* NULL: it cannot be had, `error` says why. Makes progress within opal_progress from then on. */
OPAL_DECLSPEC velo_performer *mca_common_velo_performer_acquire(bool threads, char *error, size_t error_bytes);
OPAL_DECLSPEC void mca_common_velo_performer_release(void);
/* coll velo passes its parameters. */
OPAL_DECLSPEC void mca_common_velo_performer_config(const velo_coll_config *config);

/* For mca_open_component: OPAL_SUCCESS if this is the Open MPI that the components were built for. */
OPAL_DECLSPEC int mca_common_velo_check_version(void);
/* The same, without a word. */
OPAL_DECLSPEC bool mca_common_velo_serves(void);
/* True if the user named velo in the list of this framework's components: it never takes over by itself. */
OPAL_DECLSPEC bool mca_common_velo_is_named(const mca_base_framework_t *framework);
/* Processes of this job; 0 if the process manager does not tell. */
OPAL_DECLSPEC uint32_t mca_common_velo_job_size(void);
/* The ranks of this job on this node, such as "0,1,2"; NULL if the process manager does not tell. The caller frees
 * it. */
OPAL_DECLSPEC char *mca_common_velo_local_ranks(void);
/* Publishes data of this process for a component, and reads what `process` has published, which the caller frees.
 * OPAL_SUCCESS. */
OPAL_DECLSPEC int mca_common_velo_publish(const mca_base_component_t *component, const void *data, size_t bytes);
OPAL_DECLSPEC int mca_common_velo_published(const mca_base_component_t *component, const opal_process_name_t *process,
                                            void **data, size_t *bytes);
OPAL_DECLSPEC void mca_common_velo_log(int level, const char *text);
/* For coll velo, which Open MPI initializes in every job, after BTLs and MTLs: if neither uses the engine, rank 0 says so to a user
 * who asked for a report or a trace, and warns of unknown names of parameters. */
OPAL_DECLSPEC void mca_common_velo_say_if_unused(void);
/* At verbosity 1 rank 0 says that `component` ("btl", "mtl", "coll") is in use. Open MPI adds processes again and again: *said
 * keeps it to once. */
OPAL_DECLSPEC void mca_common_velo_say_in_use(const char *component, bool *said);
/* Whether the job goes on without a process that has died (mpirun --with-ft ulfm): Open MPI hears of it from its launcher, and ends
 * by itself what waits for that process. */
OPAL_DECLSPEC bool mca_common_velo_is_fault_tolerant(void);
/* Whether Open MPI has ended what waits for that process. */
OPAL_DECLSPEC bool mca_common_velo_counts_as_failed(const opal_proc_t *proc);
/* That the processes of the job on this machine share. */
OPAL_DECLSPEC uint32_t mca_common_velo_processors(void);
/* Once a node, whoever finds it. */
OPAL_DECLSPEC void mca_common_velo_complain(const char *text);
/* The same, of a rank of this job that was killed on this node. */
OPAL_DECLSPEC void mca_common_velo_say_killed(uint32_t rank);
/* Ends the job with a message: velo was asked for by name and cannot be had as asked. Falling back to another
 * transport, or letting Open MPI report unreachable processes, would hide the reason. */
OPAL_DECLSPEC void mca_common_velo_give_up(const char *text) __opal_attribute_noreturn__;

/* --- parameters */

/* Registers those of the engine, and its counters, as btl_velo_*. */
OPAL_DECLSPEC int mca_common_velo_register(void);
/* Registers the rows of the table that have this owner, with `config`, at its defaults, as their storage. */
OPAL_DECLSPEC int mca_common_velo_register_rows(const mca_base_component_t *component, velo_parameter_owner owner,
                                                void *config);
/* Sets the CHOICE parameters of this owner to their words. */
OPAL_DECLSPEC void mca_common_velo_choices(velo_parameter_owner owner, void *config);
/* The parameters as they are set, everything else 0. */
OPAL_DECLSPEC velo_config mca_common_velo_config(void);
/* True if nobody has set btl_velo_`key`. */
OPAL_DECLSPEC bool mca_common_velo_is_default(const char *key);
/* Whether processes on other nodes are to be served. */
OPAL_DECLSPEC bool mca_common_velo_spans_nodes(void);

/* Eager limit where peers have few slots and there is no outbox, unless the user sets btl_velo_eager_limit: 4 KiB
 * and ob1's header. */
#define MCA_COMMON_VELO_EAGER_HEADER ((size_t) 64)
#define MCA_COMMON_VELO_SMALL_EAGER_LIMIT ((size_t) 4096 + MCA_COMMON_VELO_EAGER_HEADER)

/* Eager limit in bytes, ob1's header included. The engine must be open. */
OPAL_DECLSPEC size_t mca_common_velo_eager_limit(void);
/* Largest fragment of ob1, and largest message. The parameters must be registered. */
OPAL_DECLSPEC size_t mca_common_velo_fragment_bytes(void);
OPAL_DECLSPEC size_t mca_common_velo_max_message_bytes(void);

/* --- peers */

/* Registers a process with the engine: *place is its index. False: out of reach, or here_only and on another node. */
OPAL_DECLSPEC bool mca_common_velo_expect(const opal_proc_t *proc, bool here_only, uint32_t *place);
/* Connects to a process: the same peer each time; NULL: out of reach. */
OPAL_DECLSPEC velo_peer *mca_common_velo_connect(const opal_proc_t *proc);
/* Ends the job because a process is out of reach, with this message unless a better one has been logged. */
OPAL_DECLSPEC void mca_common_velo_give_up_process(const char *text) __opal_attribute_noreturn__;

END_C_DECLS

#endif
