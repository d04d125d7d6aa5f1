/* The component: parameters, the check that this is the Open MPI that it was built for, start-up and progress. */
#include "btl_velo.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opal/mca/base/mca_base_var.h"
#include "opal/mca/pmix/pmix.h"
#include "opal/runtime/opal.h"
#include "opal/runtime/opal_params.h"
#include "opal/util/argv.h"
#include "opal/util/output.h"

#include "velo_config.h"

static int component_register(void);
static int component_open(void);
static mca_btl_base_module_t **component_init(int *count, bool enable_progress_threads, bool enable_mpi_threads);
static int component_progress(void);

mca_btl_velo_component_t mca_btl_velo_component = {
    .super = {
        .btl_version = {
            MCA_BTL_DEFAULT_VERSION("velo"),
            .mca_open_component = component_open,
            .mca_register_component_params = component_register,
        },
        .btl_data = {.param_field = MCA_BASE_METADATA_PARAM_CHECKPOINT},
        .btl_init = component_init,
        .btl_progress = component_progress,
    },
};

void mca_btl_velo_give_up(const char *text)
{
    opal_output(0, "btl:velo: %s", text);
    if (NULL != opal_pmix.abort) {
        (void) opal_pmix.abort(1, text, NULL);
    }
    exit(1);
}

void mca_btl_velo_log(void *context, int level, const char *text)
{
    (void) context;
    if (level <= mca_btl_velo_component.verbose) {
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

/* ---- parameters ------------------------------------------------------------------------------------------------- */

enum { SINGLE_COPY_AUTO, SINGLE_COPY_CMA, SINGLE_COPY_COPY };

static const char *const single_copy_names[] = {"auto", "cma", "copy"};

static mca_base_var_enum_value_t single_copy_values[] = {
    {SINGLE_COPY_AUTO, "auto"}, {SINGLE_COPY_CMA, "cma"}, {SINGLE_COPY_COPY, "copy"}, {0, NULL}};

static mca_base_var_enum_value_t report_values[] = {
    {VELO_REPORT_NONE, "none"}, {VELO_REPORT_SUMMARY, "summary"}, {VELO_REPORT_JSON, "json"}, {0, NULL}};

static int add(const char *name, const char *help, mca_base_var_type_t type, mca_base_var_enum_t *enumerator,
               mca_base_var_info_lvl_t level, mca_base_var_scope_t scope, void *storage)
{
    int index = mca_base_component_var_register(&mca_btl_velo_component.super.btl_version, name, help, type, enumerator,
                                                0, 0, level, scope, storage);
    return index < 0 ? index : OPAL_SUCCESS;
}

static int add_enumerated(const char *name, const char *help, const mca_base_var_enum_value_t *values,
                          mca_base_var_info_lvl_t level, mca_base_var_scope_t scope, int *storage)
{
    mca_base_var_enum_t *enumerator;
    int rc = mca_base_var_enum_create(name, values, &enumerator);
    if (OPAL_SUCCESS == rc) {
        rc = add(name, help, MCA_BASE_VAR_TYPE_INT, enumerator, level, scope, storage);
        OBJ_RELEASE(enumerator);
    }
    return rc;
}

/* One enumerator value for each policy that the engine knows. */
static int add_flow_control(int *storage)
{
    enum { MOST = 32 };
    mca_base_var_enum_value_t values[MOST + 1] = {{0, NULL}};
    for (int i = 0; i < MOST && NULL != velo_policy_name((unsigned) i); ++i) {
        values[i].value = i;
        values[i].string = velo_policy_name((unsigned) i);
        if (0 == strcmp("dynamic", values[i].string)) {
            *storage = i;
        }
    }
    return add_enumerated("flow_control",
                          "Credit flow control of the mailbox: static (equal quotas), dynamic (quotas follow the "
                          "activity of the senders) or none (a full mailbox makes its senders wait). Must be the same in "
                          "all processes. Default: dynamic",
                          values, OPAL_INFO_LVL_2, MCA_BASE_VAR_SCOPE_ALL_EQ, storage);
}

static int register_flow_parameters(mca_btl_velo_component_t *component)
{
    int rc = add_flow_control(&component->flow_control);
    component->slots_per_peer = 0;
    rc |= add("slots_per_peer",
              "Size of the mailbox in 64-byte slots for each peer on the node, data and credit slots together; at least "
              "2 * credit_slots. 0 (default): 8192 slots shared out among the peers, 64 to 4096 for each",
              MCA_BASE_VAR_TYPE_UNSIGNED_INT, NULL, OPAL_INFO_LVL_2, MCA_BASE_VAR_SCOPE_ALL_EQ,
              &component->slots_per_peer);
    component->credit_slots = 2;
    rc |= add("credit_slots", "Mailbox slots for each peer that are reserved for credit packets, 1 to 255 (default 2)",
              MCA_BASE_VAR_TYPE_UNSIGNED_INT, NULL, OPAL_INFO_LVL_4, MCA_BASE_VAR_SCOPE_ALL_EQ,
              &component->credit_slots);
    component->piggyback = true;
    rc |= add("piggyback", "Return credits in data packets that have two bytes to spare (default true)",
              MCA_BASE_VAR_TYPE_BOOL, NULL, OPAL_INFO_LVL_4, MCA_BASE_VAR_SCOPE_ALL_EQ, &component->piggyback);
    component->spare_peers = 16;
    rc |= add("spare_peers",
              "How many processes of other jobs (MPI_Comm_spawn, MPI_Comm_connect) may connect to this process, 0 to "
              "1024; each takes 2 * credit_slots more slots of the mailbox (default 16)",
              MCA_BASE_VAR_TYPE_UNSIGNED_INT, NULL, OPAL_INFO_LVL_6, MCA_BASE_VAR_SCOPE_LOCAL, &component->spare_peers);
    return rc;
}

static int register_other_parameters(mca_btl_velo_component_t *component)
{
    component->single_copy = SINGLE_COPY_AUTO;
    int rc = add_enumerated("single_copy_mechanism",
                            "How messages above the eager limit move: cma (process_vm_readv), copy (through the mailbox), "
                            "or auto (default): cma for each peer where a probe shows that the kernel permits it",
                            single_copy_values, OPAL_INFO_LVL_3, MCA_BASE_VAR_SCOPE_LOCAL, &component->single_copy);
    component->backing_directory = (char *) "/dev/shm";
    rc |= add("backing_directory",
              "Directory on a local file system for the shared memory segment, which has no name there (default "
              "/dev/shm)",
              MCA_BASE_VAR_TYPE_STRING, NULL, OPAL_INFO_LVL_3, MCA_BASE_VAR_SCOPE_LOCAL, &component->backing_directory);
    component->report = VELO_REPORT_NONE;
    rc |= add_enumerated("report",
                         "What the first process of the node prints at the end: none (default), summary (one screen), "
                         "json (one line, VELO-REPORT {...})",
                         report_values, OPAL_INFO_LVL_3, MCA_BASE_VAR_SCOPE_LOCAL, &component->report);
    component->verbose = 0;
    rc |= add("verbose", "Verbosity of this component: 0 (default), 5 connections, 20 details",
              MCA_BASE_VAR_TYPE_INT, NULL, OPAL_INFO_LVL_5, MCA_BASE_VAR_SCOPE_LOCAL, &component->verbose);
    return rc;
}

/* Defaults of the parameters that every BTL has. mca_btl_base_param_register comes last: it removes flags of verbs
 * that are not there. */
static int register_module_parameters(mca_btl_base_module_t *module)
{
    /* Above sm and vader, so that a user who names velo gets it; component_init keeps out where nobody does. */
    module->btl_exclusivity = MCA_BTL_EXCLUSIVITY_HIGH + 1;
    /* 4 KiB of payload and ob1's header: fastest on one node (design/architecture.md). */
    module->btl_eager_limit = 4096 + 64;
    module->btl_rndv_eager_limit = module->btl_eager_limit;
    module->btl_max_send_size = 32 * 1024;
    module->btl_min_rdma_pipeline_size = INT_MAX;
    module->btl_rdma_pipeline_send_length = module->btl_eager_limit;
    module->btl_rdma_pipeline_frag_size = module->btl_eager_limit;
    module->btl_flags = MCA_BTL_FLAGS_SEND | MCA_BTL_FLAGS_RDMA | MCA_BTL_FLAGS_ATOMIC_OPS | MCA_BTL_FLAGS_ATOMIC_FOPS;
    module->btl_atomic_flags = MCA_BTL_ATOMIC_SUPPORTS_ADD | MCA_BTL_ATOMIC_SUPPORTS_AND | MCA_BTL_ATOMIC_SUPPORTS_OR |
                               MCA_BTL_ATOMIC_SUPPORTS_XOR | MCA_BTL_ATOMIC_SUPPORTS_SWAP | MCA_BTL_ATOMIC_SUPPORTS_MIN |
                               MCA_BTL_ATOMIC_SUPPORTS_MAX | MCA_BTL_ATOMIC_SUPPORTS_CSWAP |
                               MCA_BTL_ATOMIC_SUPPORTS_32BIT | MCA_BTL_ATOMIC_SUPPORTS_GLOB;
    module->btl_bandwidth = 40000; /* Mbit/s; ob1 only compares it with other BTLs' */
    module->btl_latency = 1;       /* microseconds */
    return mca_btl_base_param_register(&mca_btl_velo_component.super.btl_version, module);
}

static int component_register(void)
{
    (void) mca_base_var_group_component_register(&mca_btl_velo_component.super.btl_version,
                                                 "VELO packets into one bounded mailbox per process, with credit flow "
                                                 "control");
    int rc = register_flow_parameters(&mca_btl_velo_component);
    rc |= register_other_parameters(&mca_btl_velo_component);
    rc |= register_module_parameters(&mca_btl_velo_module.super);
    return OPAL_SUCCESS == rc ? OPAL_SUCCESS : OPAL_ERR_BAD_PARAM;
}

/* ---- start-up --------------------------------------------------------------------------------------------------- */

/* The loader checks the version of the component framework only, which is the same in Open MPI 4.1, 5.0 and 6.0,
 * although the layout of the module is not. */
static int component_open(void)
{
    int major = 0, minor = 0;
    if (2 == sscanf(opal_version_string + strcspn(opal_version_string, "0123456789"), "%d.%d", &major, &minor) &&
        VELO_BUILD_OPENMPI_MAJOR == major && VELO_BUILD_OPENMPI_MINOR == minor) {
        return OPAL_SUCCESS;
    }
    opal_output(0,
                "btl:velo: this plugin was built for Open MPI %s and does not serve Open MPI %s; rebuild Velo for the "
                "Open MPI that runs",
                VELO_BUILD_OPENMPI_VERSION, opal_version_string);
    return OPAL_ERR_NOT_AVAILABLE;
}

/* True if the user named velo in the list of BTLs: it never takes over from other transports by itself. */
static bool asked_for(void)
{
    const char *selection = opal_btl_base_framework.framework_selection;
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

static uint64_t name_of(opal_process_name_t name)
{
    return (uint64_t) name.jobid << 32 | name.vpid;
}

static int ascending(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *) a, right = *(const uint64_t *) b;
    return left < right ? -1 : left > right;
}

/* The other processes of this job on this node. `*peers` is the caller's to free. */
static uint32_t find_node_peers(uint64_t **peers)
{
    opal_process_name_t job = {.jobid = OPAL_PROC_MY_NAME.jobid, .vpid = OPAL_VPID_WILDCARD};
    char *ranks = NULL;
    int rc;
    *peers = NULL;
    OPAL_MODEX_RECV_VALUE(rc, OPAL_PMIX_LOCAL_PEERS, &job, &ranks, OPAL_STRING);
    if (OPAL_SUCCESS != rc || NULL == ranks) {
        return 0;
    }
    char **list = opal_argv_split(ranks, ',');
    uint32_t count = 0;
    *peers = calloc((size_t) opal_argv_count(list) + 1, sizeof(**peers));
    for (char **rank = list; NULL != *peers && NULL != rank && NULL != *rank; ++rank) {
        opal_process_name_t name = {.jobid = job.jobid, .vpid = (opal_vpid_t) strtoul(*rank, NULL, 10)};
        if (name.vpid != OPAL_PROC_MY_NAME.vpid) {
            (*peers)[count++] = name_of(name);
        }
    }
    qsort(*peers, count, sizeof(**peers), ascending);
    opal_argv_free(list);
    free(ranks);
    return count;
}

static void message_arrived(void *context, uint8_t tag, void *data, size_t bytes)
{
    mca_btl_velo_deliver(&((mca_btl_velo_module_t *) context)->super, tag, data, bytes);
}

/* Limits that ob1 and the engine rely on. Returns NULL, or what is wrong. */
static const char *check_sizes(const mca_btl_base_module_t *module)
{
    enum { LEAST = 128, MOST = 4 * 1024 * 1024 };
    if (module->btl_eager_limit < LEAST || module->btl_eager_limit > MOST) {
        return "btl_velo_eager_limit must be 128 to 4194304 bytes";
    }
    if (module->btl_rndv_eager_limit < LEAST || module->btl_rndv_eager_limit > MOST) {
        return "btl_velo_rndv_eager_limit must be 128 to 4194304 bytes";
    }
    if (module->btl_max_send_size < LEAST || module->btl_max_send_size > MOST) {
        return "btl_velo_max_send_size must be 128 to 4194304 bytes";
    }
    if (mca_btl_velo_component.spare_peers > 1024) {
        return "btl_velo_spare_peers must be 0 to 1024";
    }
    return NULL;
}

static void open_engine(mca_btl_velo_module_t *module, bool threads)
{
    const mca_btl_velo_component_t *component = &mca_btl_velo_component;
    uint64_t *peers;
    velo_config config = {
        .flow_control = velo_policy_name((unsigned) component->flow_control),
        .slots_per_peer = component->slots_per_peer,
        .credit_slots = component->credit_slots,
        .piggyback = component->piggyback,
        .single_copy = single_copy_names[component->single_copy],
        .backing_directory = component->backing_directory,
        .spare_peers = component->spare_peers,
        .eager_limit = module->super.btl_eager_limit,
        .max_message_bytes = module->descriptors[2].fl_payload_buffer_size,
        .threads = threads,
        .report = (velo_report) component->report,
        .process_name = name_of(OPAL_PROC_MY_NAME),
        .node_peer_count = find_node_peers(&peers),
        .context = module,
        .message = message_arrived,
        .fatal = mca_btl_velo_fatal,
        .log = mca_btl_velo_log,
    };
    config.node_peers = peers;
    char error[512];
    velo_status status = velo_engine_open(&config, &module->engine, error, sizeof(error));
    free(peers);
    if (VELO_OK != status) {
        mca_btl_velo_give_up(error);
    }
}

static int publish_address(const velo_engine *engine)
{
    size_t bytes;
    const void *address = velo_engine_address(engine, &bytes);
    int rc;
    OPAL_MODEX_SEND(rc, OPAL_PMIX_GLOBAL, &mca_btl_velo_component.super.btl_version, address, bytes);
    return rc;
}

static mca_btl_base_module_t **component_init(int *count, bool enable_progress_threads, bool enable_mpi_threads)
{
    (void) enable_progress_threads;
    mca_btl_velo_module_t *module = &mca_btl_velo_module;
    *count = 0;
    if (!asked_for()) {
        mca_btl_velo_log(NULL, 5, "not used: name velo in --mca btl to use it");
        return NULL;
    }
    const char *wrong = check_sizes(&module->super);
    if (NULL != wrong) {
        mca_btl_velo_give_up(wrong);
    }
    mca_btl_base_module_t **modules = calloc(1, sizeof(*modules));
    if (NULL == modules || OPAL_SUCCESS != mca_btl_velo_module_prepare(module)) {
        mca_btl_velo_give_up("out of memory");
    }
    open_engine(module, enable_mpi_threads);
    if (OPAL_SUCCESS != publish_address(module->engine)) {
        mca_btl_velo_give_up("cannot publish the address of the mailbox");
    }
    mca_btl_velo_log(NULL, 5, velo_engine_description(module->engine));
    modules[0] = &module->super;
    *count = 1;
    return modules;
}

static int component_progress(void)
{
    return velo_progress(mca_btl_velo_module.engine);
}
