/* What the process manager knows of the job, as an engine is told. */
#include "common_velo_internal.h"

#include <stdio.h>
#include <stdlib.h>

#include "opal/mca/btl/base/base.h"
#include "opal/util/argv.h"
#include "opal/util/output.h"

static uint64_t name_of(opal_process_name_t name)
{
    return (uint64_t) name.jobid << 32 | name.vpid;
}

static int ascending(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *) a, right = *(const uint64_t *) b;
    return left < right ? -1 : left > right;
}

char *mca_common_velo_local_ranks(void)
{
    opal_process_name_t job = {.jobid = OPAL_PROC_MY_NAME.jobid, .vpid = OPAL_VPID_WILDCARD};
    char *ranks = NULL;
    int rc;
    OPAL_MODEX_RECV_VALUE(rc, MCA_COMMON_VELO_LOCAL_PEERS, &job, &ranks, MCA_COMMON_VELO_STRING);
    return OPAL_SUCCESS == rc ? ranks : NULL;
}

/* The processes of this job on this machine, ascending, this one among them. NULL if there are no others; the caller
 * frees it. */
static uint64_t *find_local_processes(uint32_t *count)
{
    char *ranks = mca_common_velo_local_ranks();
    *count = 0;
    if (NULL == ranks) {
        return NULL;
    }
    char **list = opal_argv_split(ranks, ',');
    uint64_t *names = calloc((size_t) opal_argv_count(list) + 1, sizeof(*names));
    for (char **rank = list; NULL != names && NULL != rank && NULL != *rank; ++rank) {
        opal_process_name_t name = {.jobid = OPAL_PROC_MY_NAME.jobid, .vpid = (opal_vpid_t) strtoul(*rank, NULL, 10)};
        names[(*count)++] = name_of(name);
    }
    qsort(names, *count, sizeof(*names), ascending);
    opal_argv_free(list);
    free(ranks);
    return names;
}

static opal_process_name_t process_of(uint64_t name)
{
    return (opal_process_name_t) {.jobid = (opal_jobid_t) (name >> 32), .vpid = (opal_vpid_t) name};
}

uint32_t mca_common_velo_processors(void)
{
    static uint32_t processors;
    if (0 < processors) {
        return processors;
    }
    uint32_t count;
    uint64_t *names = find_local_processes(&count);
    char **localities = calloc((size_t) count + 1, sizeof(*localities));
    for (uint32_t i = 0; NULL != names && NULL != localities && i < count; ++i) {
        const opal_process_name_t process = process_of(names[i]);
        int rc;
        OPAL_MODEX_RECV_VALUE_OPTIONAL(rc, MCA_COMMON_VELO_LOCALITY, &process, &localities[i], MCA_COMMON_VELO_STRING);
        (void) rc; /* NULL then */
    }
    processors = velo_shared_processors((const char *const *) localities, NULL != localities ? count : 0);
    for (uint32_t i = 0; NULL != localities && i < count; ++i) {
        free(localities[i]);
    }
    free(localities);
    free(names);
    return processors;
}

/* Sorts the local processes into those that are served by VELO packets and those of the LiMIC-like path, which share
 * this process's virtual node. `velo` and `limic` have room for all. */
static void split_peers(const uint64_t *names, uint32_t count, velo_config *config, uint64_t *velo, uint64_t *limic)
{
    const uint64_t self = name_of(OPAL_PROC_MY_NAME);
    uint32_t node_size = 0 == config->ranks_per_node ? UINT32_MAX : config->ranks_per_node, here = 0;
    while (here < count && names[here] != self) {
        ++here;
    }
    for (uint32_t i = 0; i < count; ++i) {
        if (i == here) {
            continue;
        }
        if (config->limic && i / node_size == here / node_size) {
            limic[config->limic_peer_count++] = names[i];
        } else {
            velo[config->node_peer_count++] = names[i];
        }
    }
    const uint32_t processors = mca_common_velo_processors();
    config->processes_per_processor = (count + processors - 1) / processors;
    config->node_peers = velo;
    config->limic_peers = limic;
}

/* A number that the process manager has of the job; 0 if it does not tell. */
static uint32_t ask_of_job(const char *key)
{
    opal_process_name_t job = {.jobid = OPAL_PROC_MY_NAME.jobid, .vpid = OPAL_VPID_WILDCARD};
    uint32_t number = 0, *found = &number;
    int rc;
    OPAL_MODEX_RECV_VALUE(rc, key, &job, &found, MCA_COMMON_VELO_UINT32);
    return OPAL_SUCCESS == rc ? number : 0;
}

uint32_t mca_common_velo_job_size(void)
{
    return ask_of_job(MCA_COMMON_VELO_JOB_SIZE);
}

/* The processes of this job on other nodes: all that are not among the `count` ascending `local` names. NULL if there are
 * none; the caller frees it. */
static uint64_t *find_remote_processes(const uint64_t *local, uint32_t count, uint32_t *remote_count)
{
    uint32_t size = mca_common_velo_job_size(), here = 0;
    *remote_count = 0;
    if (size <= count || 0 == count || !mca_common_velo_spans_nodes()) {
        return NULL;
    }
    uint64_t *names = calloc(size - count, sizeof(*names));
    for (uint32_t rank = 0; NULL != names && rank < size; ++rank) {
        uint64_t name = name_of((opal_process_name_t) {.jobid = OPAL_PROC_MY_NAME.jobid, .vpid = rank});
        if (here < count && local[here] == name) {
            ++here;
        } else if (*remote_count < size - count) {
            names[(*remote_count)++] = name;
        }
    }
    return names;
}

bool mca_common_velo_is_fault_tolerant(void)
{
    return MCA_COMMON_VELO_IS_FAULT_TOLERANT;
}

bool mca_common_velo_counts_as_failed(const opal_proc_t *proc)
{
    (void) proc;
    return MCA_COMMON_VELO_IS_FAULT_TOLERANT && MCA_COMMON_VELO_COUNTS_AS_FAILED(proc);
}

void mca_common_velo_say_in_use(const char *component, bool *said)
{
    if (!*said && 0 == OPAL_PROC_MY_NAME.vpid) {
        char text[160];
        snprintf(text, sizeof(text), "in use: %s velo, %u processes, flow control %s", component, mca_common_velo_job_size(),
                 mca_common_velo_config().flow_control);
        mca_common_velo_log(1, text);
    }
    *said = true;
}

static void log_line(void *context, int level, const char *text)
{
    (void) context;
    mca_common_velo_log(level, text);
}

static void fatal(void *context, velo_status status, const char *text)
{
    (void) context, (void) status;
    for (const mca_common_velo_user_t *user = mca_common_velo.users; NULL != user; user = user->next) {
        if (NULL != user->failed) {
            user->failed(text);
        }
    }
    mca_common_velo_give_up(text); /* nobody was there to abort the job */
}

/* Processes that talk to each other use the same components. */
static void unexpected_message(void *context, uint8_t tag, void *data, size_t bytes)
{
    (void) context, (void) tag, (void) data, (void) bytes;
    mca_common_velo_give_up("a message has come for a component that this process does not use");
}

bool mca_common_velo_describe_job(mca_common_velo_job_t *job, bool threads)
{
    job->config = mca_common_velo_config();
    velo_config *config = &job->config;
    config->max_message_bytes = mca_common_velo_max_message_bytes();
    config->threads = threads;
    config->outlives_peers = mca_common_velo_is_fault_tolerant();
    config->describe_locality =
        config->verbose >= 5 || opal_output_get_verbosity(opal_btl_base_framework.framework_output) >= 5;
    config->process_name = name_of(OPAL_PROC_MY_NAME);
    config->message = unexpected_message;
    config->fatal = fatal;
    config->log = log_line;
    uint32_t count;
    uint64_t *names = job->memory[0] = find_local_processes(&count);
    uint64_t *peers = job->memory[1] = calloc(2 * (size_t) count + 1, sizeof(*peers));
    if (NULL == peers) {
        mca_common_velo_forget_job(job);
        return false;
    }
    split_peers(names, count, config, peers, peers + count);
    config->remote_peers = job->memory[2] = find_remote_processes(names, count, &config->remote_peer_count);
    return true;
}

void mca_common_velo_forget_job(mca_common_velo_job_t *job)
{
    for (size_t i = 0; i < sizeof(job->memory) / sizeof(job->memory[0]); ++i) {
        free(job->memory[i]);
        job->memory[i] = NULL;
    }
}
