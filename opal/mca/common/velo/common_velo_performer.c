/* The performer that collectives and programs with schedules of their own share, opened with what the BTL's engine is
 * opened with. */
#include "common_velo_internal.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "opal/runtime/opal_progress.h"

static unsigned in_use;
static bool has_threads, has_helper;
static velo_coll_config chosen;
static bool is_chosen;

void mca_common_velo_performer_config(const velo_coll_config *config)
{
    chosen = *config;
    is_chosen = true;
}

static int performer_progress(void)
{
    /* Open MPI may call once more when it is closed. */
    return NULL != mca_common_velo.performer ? velo_goal_progress(mca_common_velo.performer) : 0;
}

/* A helper would take the processor of a program that computes, its own or its neighbour's. */
static bool has_processor_for_helper(const velo_config *config)
{
    const long processes = (long) config->node_peer_count + config->limic_peer_count + 1;
    cpu_set_t processors;
    return 0 == sched_getaffinity(0, sizeof(processors), &processors) && CPU_COUNT(&processors) >= 2 &&
           mca_common_velo_processors() >= 2 * processes;
}

static velo_status open_performer(const mca_common_velo_job_t *job, char *error, size_t error_bytes)
{
    const velo_coll_config coll = is_chosen ? chosen : velo_default_coll_config();
    velo_performer_config config = velo_default_performer_config();
    config.engine = job->config;
    config.choices = coll.choices;
    has_helper = 0 < coll.helper && has_processor_for_helper(&job->config);
    if (has_helper) {
        config.helper = coll.helper;
    } else if (0 < coll.helper) {
        mca_common_velo_log(5, "no helper thread: it needs two processors for this process, and two for each process on the node");
    }
    /* The engine serves this job only. It sleeps when the other engine does, or never: a message by another
     * component would not wake it. */
    config.engine.spare_peers = 0;
    config.engine.network = "ucx";
    config.engine.idle_sleep = 0;
    config.engine.second = NULL != mca_common_velo.engine;
    /* One report and one trace for each process. */
    config.engine.report = "none";
    config.engine.trace = "";
    config.messages.eager_limit = mca_common_velo_of_base("eager_limit") - MCA_COMMON_VELO_EAGER_HEADER;
    config.messages.everywhere = !mca_common_velo_is_default("eager_limit");
    config.messages.sharers = mca_common_velo_job_size();
    const velo_status status = velo_performer_open(&config, &mca_common_velo.performer, error, error_bytes);
    mca_common_velo_tell_of_both(status, error, error_bytes);
    return status;
}

velo_performer *mca_common_velo_performer_acquire(bool threads, char *error, size_t error_bytes)
{
    if (0 < in_use) {
        if (threads && !has_threads) {
            snprintf(error, error_bytes, "schedules were opened for one thread: call MPI_Init_thread with MPI_THREAD_MULTIPLE");
            return NULL;
        }
        ++in_use;
        return mca_common_velo.performer;
    }
    mca_common_velo_job_t job = {.memory = {NULL}};
    const bool usable = mca_common_velo_need_parameters();
    const char *wrong = mca_common_velo_wrong_parameter();
    if (NULL == wrong && !(usable && mca_common_velo_describe_job(&job, threads))) {
        wrong = "the parameters btl_velo_* cannot be registered, or memory has run out";
    }
    velo_status status = VELO_ERR_PARAMETER;
    if (NULL != wrong) {
        snprintf(error, error_bytes, "%s", wrong);
    } else {
        status = open_performer(&job, error, error_bytes);
    }
    mca_common_velo_forget_job(&job);
    if (VELO_OK != status && usable) {
        mca_common_velo_leave_parameters();
    }
    if (VELO_OK != status) {
        return NULL;
    }
    has_threads = threads;
    mca_common_velo_sleep_together();
    (void) opal_progress_register(performer_progress);
    in_use = 1;
    return mca_common_velo.performer;
}

static void log_state(velo_performer *performer)
{
    velo_performer_state state;
    char line[1024];
    velo_performer_observe(performer, &state);
    snprintf(line, sizeof(line),
             "schedules: %llu runs of %llu operations, %llu schedules built; sent %llu eager, %llu by rendezvous; received "
             "%llu expected, %llu unexpected; pool of %llu bytes, at most %llu used; to other nodes %llu messages, to %llu processes",
             (unsigned long long) state.runs, (unsigned long long) state.operations,
             (unsigned long long) state.compiled, (unsigned long long) state.messages.eager,
             (unsigned long long) state.messages.rendezvous, (unsigned long long) state.messages.matched_at_once,
             (unsigned long long) state.messages.unexpected, (unsigned long long) state.messages.pool_bytes,
             (unsigned long long) state.messages.pool_most_bytes, (unsigned long long) state.network_messages,
             (unsigned long long) state.network_peers);
    mca_common_velo_log(5, line);
    if (has_helper) {
        snprintf(line, sizeof(line), "helper thread: woken %llu times, started %llu of the operations",
                 (unsigned long long) state.helper_wakes, (unsigned long long) state.helped);
        mca_common_velo_log(5, line);
    }
    if (!state.multicasts) {
        return;
    }
    int used = snprintf(line, sizeof(line), "multicast:");
    const char *name;
    for (unsigned i = 0; NULL != (name = velo_performer_counter_at(i)) && used < (int) sizeof(line); ++i) {
        used += snprintf(line + used, sizeof(line) - (size_t) used, " %s %llu", name,
                         (unsigned long long) velo_performer_counter(performer, name));
    }
    mca_common_velo_log(5, line);
}

void mca_common_velo_performer_release(void)
{
    if (0 < --in_use) {
        return;
    }
    velo_performer *performer = mca_common_velo.performer;
    log_state(performer);
    (void) opal_progress_unregister(performer_progress);
    mca_common_velo.performer = NULL;
    velo_performer_close(performer);
    mca_common_velo_leave_parameters();
}

/* For programs that do not link this library; velo_goal.h says how they find it. */
__opal_attribute_visibility__("default") const velo_goal_table velo_goal_table_v1 = {
    .acquire = mca_common_velo_performer_acquire,
    .release = mca_common_velo_performer_release,
#define MEMBER(function) .function = function,
    VELO_GOAL_FUNCTIONS(MEMBER)
#undef MEMBER
};
