/* The engine that the components share: opened with what the process manager knows of the job, published, closed. */
#include "common_velo_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "opal/mca/btl/base/base.h"
#include "opal/runtime/opal.h"
#include "opal/util/argv.h"
#include "opal/util/output.h"

#include "velo_config.h"

mca_common_velo_t mca_common_velo;

void mca_common_velo_give_up(const char *text)
{
    opal_output(0, "btl:velo: %s", text);
    mca_common_velo_abort(1, text);
    exit(1);
}

void mca_common_velo_log(int level, const char *text)
{
    if (level <= mca_common_velo.config.verbose) {
        opal_output(0, "btl:velo: %s", text);
    } else {
        opal_output_verbose(level, opal_btl_base_framework.framework_output, "btl:velo: %s", text);
    }
}

/* The loader checks the version of the component framework only, which is the same in Open MPI 4.1, 5.0 and 6.0,
 * although the layout of the module is not. */
bool mca_common_velo_serves(void)
{
    int major = 0, minor = 0;
    return 2 == sscanf(opal_version_string + strcspn(opal_version_string, "0123456789"), "%d.%d", &major, &minor) &&
           VELO_BUILD_OPENMPI_MAJOR == major && VELO_BUILD_OPENMPI_MINOR == minor;
}

int mca_common_velo_check_version(void)
{
    if (mca_common_velo_serves()) {
        return OPAL_SUCCESS;
    }
    opal_output(0,
                "btl:velo: this plugin was built for Open MPI %s and does not serve %.*s; rebuild Velo for the "
                "Open MPI that runs",
                VELO_BUILD_OPENMPI_VERSION, (int) strcspn(opal_version_string, ","), opal_version_string);
    return OPAL_ERR_NOT_AVAILABLE;
}

bool mca_common_velo_is_named(const mca_base_framework_t *framework)
{
    const char *selection = framework->framework_selection;
    if (NULL == selection || '^' == selection[0]) {
        return false;
    }
    char **names = opal_argv_split(selection, ',');
    bool found = false;
    for (char **name = names; NULL != name && NULL != *name; ++name) {
        found = found || 0 == strcmp("velo", *name);
    }
    opal_argv_free(names);
    return found;
}

/* A process that exits without MPI_Finalize, or with MPI_T still open, never closes its engine. */
static __opal_attribute_destructor__ void abandon_engine(void)
{
    if (NULL != mca_common_velo.engine) {
        velo_engine_abandon(mca_common_velo.engine);
    }
    if (NULL != mca_common_velo.performer) {
        velo_performer_abandon(mca_common_velo.performer);
    }
}

void mca_common_velo_trace_board(const velo_board_event *event)
{
    if (NULL != mca_common_velo.engine) {
        velo_engine_trace_board(mca_common_velo.engine, event);
    }
}

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
    /* The processors that this process may use say nothing: it may be bound to one of many. */
    const uint32_t processors = (uint32_t) sysconf(_SC_NPROCESSORS_ONLN);
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

static void gone(void *context, uint32_t place, uint64_t process_name)
{
    (void) context;
    for (const mca_common_velo_user_t *user = mca_common_velo.users; NULL != user; user = user->next) {
        user->gone(place, process_name);
    }
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

static velo_engine *open_engine(bool threads)
{
    mca_common_velo_job_t job = {.memory = {NULL}};
    if (!mca_common_velo_describe_job(&job, threads)) {
        mca_common_velo_give_up("out of memory");
    }
    /* Where it follows from the size of the job, jobs of different sizes may talk to each other. */
    const bool automatic = mca_common_velo_is_default("eager_limit");
    mca_common_velo.eager_limit = mca_common_velo_of_base("eager_limit");
    velo_config config = job.config;
    config.eager_limit = automatic ? 0 : mca_common_velo.eager_limit;
    config.gone = gone;
    char error[512];
    velo_engine *engine;
    velo_status status = velo_engine_open(&config, &engine, error, sizeof(error));
    mca_common_velo_forget_job(&job);
    if (VELO_OK != status) {
        mca_common_velo_give_up(error);
    }
    if (automatic && velo_engine_is_short(engine)) {
        mca_common_velo.eager_limit = MCA_COMMON_VELO_SMALL_EAGER_LIMIT;
    }
    return engine;
}

static int publish_address(const velo_engine *engine)
{
    size_t bytes;
    const void *address = velo_engine_address(engine, &bytes);
    int rc;
    OPAL_MODEX_SEND_STRING(rc, MCA_COMMON_VELO_SCOPE_GLOBAL, MCA_COMMON_VELO_ADDRESS_KEY, address, bytes);
    return rc;
}

static unsigned in_use;            /* users that have not released it */
static unsigned parameters_needed; /* by engines that are open */
static bool registered_here;       /* the parameters are there because of this alone */

/* Where the BTL is not used, Open MPI has not asked it for its parameters, or has dropped them already; or it drops them after
 * an engine has been opened, as 5.0 does with pml/ucx. */
static bool parameters_are_there(void)
{
    if (!mca_common_velo_registered()) {
        registered_here = true;
        return OPAL_SUCCESS == mca_common_velo_register_all();
    }
    return true;
}

bool mca_common_velo_need_parameters(void)
{
    if (!parameters_are_there()) {
        return false;
    }
    ++parameters_needed;
    return true;
}

void mca_common_velo_keep_parameters(void)
{
    if (0 < parameters_needed && !parameters_are_there()) {
        mca_common_velo_give_up("the parameters btl_velo_* cannot be registered");
    }
}

/* Nobody else takes them away before this library goes. */
void mca_common_velo_leave_parameters(void)
{
    if (0 == --parameters_needed && registered_here) {
        registered_here = false;
        mca_common_velo_deregister();
    }
}

static void open_shared_engine(bool threads)
{
    const bool usable = mca_common_velo_need_parameters();
    const char *wrong = mca_common_velo_wrong_parameter();
    if (NULL == wrong && !usable) {
        wrong = "the parameters btl_velo_* cannot be registered";
    }
    if (NULL != wrong) {
        mca_common_velo_give_up(wrong);
    }
    velo_engine *engine = open_engine(threads);
    mca_common_velo.closed = false;
    mca_common_velo.engine = engine;
    mca_common_velo_sleep_together();
    if (OPAL_SUCCESS != publish_address(engine)) {
        mca_common_velo_give_up("cannot publish the address of the mailbox");
    }
    mca_common_velo_waits_progress();
    mca_common_velo_log(5, velo_engine_description(engine));
    if (0 == OPAL_PROC_MY_NAME.vpid) {
        mca_common_velo_warn_of_names();
    }
}

velo_engine *mca_common_velo_acquire(mca_common_velo_user_t *user, bool threads)
{
    if (0 == in_use++) {
        open_shared_engine(threads);
    }
    user->next = mca_common_velo.users;
    mca_common_velo.users = user;
    if (NULL != user->message) {
        velo_engine_hand_messages_to(mca_common_velo.engine, user->message);
    }
    return mca_common_velo.engine;
}

static void forget(const mca_common_velo_user_t *user)
{
    mca_common_velo_user_t **link = &mca_common_velo.users;
    while (user != *link) {
        link = &(*link)->next;
    }
    *link = user->next;
}

void mca_common_velo_release(mca_common_velo_user_t *user)
{
    /* Its library may be gone when the engine is closed. */
    if (NULL == user->closed) {
        forget(user);
    }
    if (--in_use > 0) {
        return;
    }
    velo_engine *engine = mca_common_velo.engine;
    mca_common_velo_waits_end();
    mca_common_velo.engine = NULL;
    mca_common_velo.closed = true;
    velo_engine_close(engine);
    while (NULL != mca_common_velo.users) {
        const mca_common_velo_user_t *last = mca_common_velo.users;
        mca_common_velo.users = last->next;
        last->closed();
    }
    mca_common_velo_leave_parameters();
}

size_t mca_common_velo_eager_limit(void)
{
    return mca_common_velo.eager_limit;
}
