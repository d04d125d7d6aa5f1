/* The component: the check that this is the Open MPI that it was built for, start-up and progress. */
#include "btl_velo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "opal/runtime/opal.h"
#include "opal/runtime/opal_params.h"
#include "opal/util/argv.h"
#include "opal/util/output.h"

#include "velo_config.h"

static mca_btl_base_module_t **component_init(int *count, bool enable_progress_threads, bool enable_mpi_threads);
static int component_progress(void);

mca_btl_velo_component_t mca_btl_velo_component = {
    .super = {
        .btl_version = {
            MCA_BTL_VELO_API,
            .mca_component_name = "velo",
            /* What ompi_info shows. */
            MCA_BASE_MAKE_VERSION(component, VELO_VERSION_MAJOR, VELO_VERSION_MINOR, VELO_VERSION_RELEASE),
            .mca_open_component = mca_btl_velo_check_version,
            .mca_register_component_params = mca_btl_velo_register,
        },
        .btl_data = {.param_field = MCA_BASE_METADATA_PARAM_CHECKPOINT},
        .btl_init = component_init,
        .btl_progress = component_progress,
    },
};

void mca_btl_velo_give_up(const char *text)
{
    opal_output(0, "btl:velo: %s", text);
    mca_btl_velo_abort(1, text);
    exit(1);
}

void mca_btl_velo_log(void *context, int level, const char *text)
{
    (void) context;
    if (level <= mca_btl_velo_component.config.verbose) {
        opal_output(0, "btl:velo: %s", text);
    } else {
        opal_output_verbose(level, opal_btl_base_framework.framework_output, "btl:velo: %s", text);
    }
}

void mca_btl_velo_fatal(void *context, velo_status status, const char *text)
{
    mca_btl_velo_module_t *module = (mca_btl_velo_module_t *) context;
    (void) status;
    if (NULL != module->error_callback) {
        opal_output(0, "btl:velo: %s", text);
        module->error_callback(&module->super, MCA_BTL_ERROR_FLAGS_FATAL, NULL, (char *) "velo transport failure");
    }
    mca_btl_velo_give_up(text); /* nobody was there to abort the job */
}

/* The loader checks the version of the component framework only, which is the same in Open MPI 4.1, 5.0 and 6.0,
 * although the layout of the module is not. */
int mca_btl_velo_check_version(void)
{
    int major = 0, minor = 0;
    if (2 == sscanf(opal_version_string + strcspn(opal_version_string, "0123456789"), "%d.%d", &major, &minor) &&
        VELO_BUILD_OPENMPI_MAJOR == major && VELO_BUILD_OPENMPI_MINOR == minor) {
        return OPAL_SUCCESS;
    }
    opal_output(0,
                "btl:velo: this plugin was built for Open MPI %s and does not serve %.*s; rebuild Velo for the "
                "Open MPI that runs",
                VELO_BUILD_OPENMPI_VERSION, (int) strcspn(opal_version_string, ","), opal_version_string);
    return OPAL_ERR_NOT_AVAILABLE;
}

bool mca_btl_velo_is_named(const mca_base_framework_t *framework)
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
    if (NULL != mca_btl_velo_module.engine) {
        velo_engine_abandon(mca_btl_velo_module.engine);
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

/* The processes of this job on this machine, ascending, this one among them. NULL if there are no others; the caller
 * frees it. */
static uint64_t *find_local_processes(uint32_t *count)
{
    opal_process_name_t job = {.jobid = OPAL_PROC_MY_NAME.jobid, .vpid = OPAL_VPID_WILDCARD};
    char *ranks = NULL;
    int rc;
    *count = 0;
    OPAL_MODEX_RECV_VALUE(rc, MCA_BTL_VELO_LOCAL_PEERS, &job, &ranks, MCA_BTL_VELO_STRING);
    if (OPAL_SUCCESS != rc || NULL == ranks) {
        return NULL;
    }
    char **list = opal_argv_split(ranks, ',');
    uint64_t *names = calloc((size_t) opal_argv_count(list) + 1, sizeof(*names));
    for (char **rank = list; NULL != names && NULL != rank && NULL != *rank; ++rank) {
        opal_process_name_t name = {.jobid = job.jobid, .vpid = (opal_vpid_t) strtoul(*rank, NULL, 10)};
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
    config->oversubscribed = count > (uint32_t) sysconf(_SC_NPROCESSORS_ONLN);
    config->node_peers = velo;
    config->limic_peers = limic;
}

/* A number that the process manager has of the job; 0 if it does not tell. */
static uint32_t ask_of_job(const char *key)
{
    opal_process_name_t job = {.jobid = OPAL_PROC_MY_NAME.jobid, .vpid = OPAL_VPID_WILDCARD};
    uint32_t number = 0, *found = &number;
    int rc;
    OPAL_MODEX_RECV_VALUE(rc, key, &job, &found, MCA_BTL_VELO_UINT32);
    return OPAL_SUCCESS == rc ? number : 0;
}

uint32_t mca_btl_velo_job_size(void)
{
    return ask_of_job(MCA_BTL_VELO_JOB_SIZE);
}

/* The processes of this job on other nodes: all that are not among the `count` ascending `local` names. NULL if there are
 * none; the caller frees it. */
static uint64_t *find_remote_processes(const uint64_t *local, uint32_t count, uint32_t *remote_count)
{
    uint32_t size = mca_btl_velo_job_size(), here = 0;
    *remote_count = 0;
    if (size <= count || 0 == count || !mca_btl_velo_spans_nodes()) {
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

static void message_arrived(void *context, uint8_t tag, void *data, size_t bytes)
{
    mca_btl_velo_module_t *module = (mca_btl_velo_module_t *) context;
    mca_btl_base_module_t *btl =
        OPAL_UNLIKELY(mca_btl_velo_has_network()) && velo_message_is_remote(module->engine) ? &mca_btl_velo_network : &module->super;
    struct mca_btl_base_endpoint_t *source =
        MCA_BTL_VELO_NEEDS_SOURCE(tag) ? mca_btl_velo_endpoint_of(btl, velo_message_source(module->engine)) : NULL;
    mca_btl_base_segment_t segment = {.seg_addr = {.pval = data}, .seg_len = bytes};
    mca_btl_velo_deliver(btl, source, tag, &segment, 1);
}

static void open_engine(mca_btl_velo_module_t *module, bool threads)
{
    velo_config config = mca_btl_velo_config();
    /* Where it follows from the size of the job, jobs of different sizes may talk to each other. */
    config.eager_limit = mca_btl_velo_is_default("eager_limit") ? 0 : module->super.btl_eager_limit;
    config.max_message_bytes = module->descriptors[MCA_BTL_VELO_DESCRIPTOR_SIZES - 1].fl_payload_buffer_size;
    config.threads = threads;
    config.describe_locality =
        config.verbose >= 5 || opal_output_get_verbosity(opal_btl_base_framework.framework_output) >= 5;
    config.process_name = name_of(OPAL_PROC_MY_NAME);
    config.context = module;
    config.message = message_arrived;
    config.fatal = mca_btl_velo_fatal;
    config.gone = mca_btl_velo_gone;
    config.log = mca_btl_velo_log;
    uint32_t count;
    uint64_t *names = find_local_processes(&count);
    uint64_t *peers = calloc(2 * (size_t) count + 1, sizeof(*peers));
    if (NULL == peers) {
        mca_btl_velo_give_up("out of memory");
    }
    split_peers(names, count, &config, peers, peers + count);
    uint64_t *remote = find_remote_processes(names, count, &config.remote_peer_count);
    config.remote_peers = remote;
    char error[512];
    mca_btl_velo_component.closed = false;
    velo_status status = velo_engine_open(&config, &module->engine, error, sizeof(error));
    free(peers);
    free(names);
    free(remote);
    if (VELO_OK == status && mca_btl_velo_is_default("eager_limit") &&
        velo_engine_slots_per_peer(module->engine) < MCA_BTL_VELO_SMALL_EAGER_SLOTS) {
        module->super.btl_eager_limit = module->super.btl_rndv_eager_limit = MCA_BTL_VELO_SMALL_EAGER_LIMIT;
    }
    if (VELO_OK != status) {
        mca_btl_velo_give_up(error);
    }
}

static int publish_address(const velo_engine *engine)
{
    size_t bytes;
    const void *address = velo_engine_address(engine, &bytes);
    int rc;
    OPAL_MODEX_SEND_STRING(rc, MCA_BTL_VELO_SCOPE_GLOBAL, MCA_BTL_VELO_ADDRESS_KEY, address, bytes);
    return rc;
}

static unsigned engine_users;
static bool registered_here; /* the parameters are there because of the MTL alone */

velo_engine *mca_btl_velo_acquire_engine(bool threads)
{
    mca_btl_velo_module_t *module = &mca_btl_velo_module;
    if (engine_users++ > 0) {
        return module->engine;
    }
    /* Where the BTL is not used, Open MPI has not asked it for its parameters, or has dropped them already. */
    registered_here = !mca_btl_velo_registered();
    if (registered_here && OPAL_SUCCESS != mca_btl_velo_register()) {
        mca_btl_velo_give_up("the parameters btl_velo_* cannot be registered");
    }
    const char *wrong = mca_btl_velo_wrong_parameter(&module->super);
    if (NULL != wrong) {
        mca_btl_velo_give_up(wrong);
    }
    if (OPAL_SUCCESS != mca_btl_velo_module_prepare(module)) {
        mca_btl_velo_give_up("out of memory");
    }
    open_engine(module, threads);
    if (OPAL_SUCCESS != publish_address(module->engine)) {
        mca_btl_velo_give_up("cannot publish the address of the mailbox");
    }
    mca_btl_velo_waits_progress();
    mca_btl_velo_log(NULL, 5, velo_engine_description(module->engine));
    return module->engine;
}

void mca_btl_velo_release_engine(void)
{
    mca_btl_velo_module_t *module = &mca_btl_velo_module;
    if (--engine_users > 0) {
        return;
    }
    velo_engine *engine = module->engine;
    mca_btl_velo_waits_end();
    module->engine = NULL;
    mca_btl_velo_component.closed = true;
    velo_engine_close(engine);
    mca_btl_velo_module_clean(module);
    if (registered_here) {
        /* Nobody else takes them away before this library goes. */
        mca_btl_velo_deregister();
    }
}

size_t mca_btl_velo_eager_payload(void)
{
    return mca_btl_velo_module.super.btl_eager_limit - MCA_BTL_VELO_EAGER_HEADER;
}

static mca_btl_base_module_t **component_init(int *count, bool enable_progress_threads, bool enable_mpi_threads)
{
    (void) enable_progress_threads;
    mca_btl_velo_module_t *module = &mca_btl_velo_module;
    *count = 0;
    if (!mca_btl_velo_is_named(&opal_btl_base_framework)) {
        mca_btl_velo_log(NULL, 5, "not used: name velo in --mca btl to use it");
        return NULL;
    }
    mca_btl_base_module_t **modules = calloc(2, sizeof(*modules));
    if (NULL == modules) {
        mca_btl_velo_give_up("out of memory");
    }
    (void) mca_btl_velo_acquire_engine(enable_mpi_threads);
    modules[0] = &module->super;
    *count = 1;
    if (0 < velo_engine_remote_slots_per_peer(module->engine)) {
        ++engine_users; /* each module is finalized */
        mca_btl_velo_module_prepare_network();
        modules[(*count)++] = &mca_btl_velo_network;
    }
    return modules;
}

static int component_progress(void)
{
    /* Open MPI may call once more after finalize. */
    return NULL != mca_btl_velo_module.engine ? velo_progress(mca_btl_velo_module.engine) : 0;
}
