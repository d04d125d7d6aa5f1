/* The parameters btl_velo_*, with their defaults. */
#include "btl_velo.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opal/mca/base/mca_base_var.h"
#include "opal/util/output.h"

enum { SINGLE_COPY_AUTO, SINGLE_COPY_XPMEM, SINGLE_COPY_CMA, SINGLE_COPY_COPY };

static mca_base_var_enum_value_t single_copy_values[] = {
    {SINGLE_COPY_AUTO, "auto"}, {SINGLE_COPY_XPMEM, "xpmem"}, {SINGLE_COPY_CMA, "cma"},
    {SINGLE_COPY_COPY, "copy"}, {0, NULL}};

const char *mca_btl_velo_single_copy_name(int value)
{
    return single_copy_values[value].string;
}

enum { NETWORK_UCX, NETWORK_NONE };

static mca_base_var_enum_value_t network_values[] = {{NETWORK_UCX, "ucx"}, {NETWORK_NONE, "none"}, {0, NULL}};

bool mca_btl_velo_spans_nodes(void)
{
    return NETWORK_UCX == mca_btl_velo_component.network;
}

static mca_base_var_enum_value_t report_values[] = {
    {VELO_REPORT_NONE, "none"}, {VELO_REPORT_SUMMARY, "summary"}, {VELO_REPORT_JSON, "json"}, {0, NULL}};

/* The text that mpirun was given for a parameter of Velo's, NULL if it came in another way. */
static const char *getenv_parameter(const char *name)
{
    char variable[128];
    snprintf(variable, sizeof variable, "OMPI_MCA_btl_velo_%s", name);
    return getenv(variable);
}

/* Open MPI has refused the value and said so, but its message may get lost on the way to mpirun. */
static void say_what_is_valid(const char *name, mca_base_var_type_t type, mca_base_var_enum_t *enumerator)
{
    char *choices = NULL;
    if (NULL != enumerator && OPAL_SUCCESS != mca_btl_velo_choices(enumerator, &choices)) {
        choices = NULL;
    }
    const char *value = getenv_parameter(name);
    opal_output(0, "btl:velo: the value%s%s of btl_velo_%s is not valid; it may be %s", NULL != value ? " " : "",
                NULL != value ? value : "", name,
                NULL != choices                        ? choices
                : MCA_BASE_VAR_TYPE_BOOL == type       ? "true or false, 1 or 0"
                : MCA_BASE_VAR_TYPE_INT == type        ? "an integer"
                : MCA_BASE_VAR_TYPE_STRING == type     ? "any text"
                                                       : "an integer that is not negative");
    free(choices);
}

static int add(const char *name, const char *help, mca_base_var_type_t type, mca_base_var_enum_t *enumerator,
               mca_base_var_info_lvl_t level, mca_base_var_scope_t scope, void *storage)
{
    int index = mca_base_component_var_register(&mca_btl_velo_component.super.btl_version, name, help, type, enumerator,
                                                0, 0, level, scope, storage);
    if (index < 0) {
        say_what_is_valid(name, type, enumerator);
        return index;
    }
    return OPAL_SUCCESS;
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
                          "Flow control of the mailbox: static (equal quotas), dynamic (quotas follow the activity of the "
                          "senders), none (a full mailbox makes its senders wait), rnr (receiver not ready: a full share "
                          "refuses, and the sender retries after a time), mvapich_static and mvapich_dynamic (the schemes "
                          "of Liu & Panda), lazy (memory follows the active peers). Must be the same in all processes. "
                          "Default: dynamic",
                          values, OPAL_INFO_LVL_2, MCA_BASE_VAR_SCOPE_ALL_EQ, storage);
}

static int register_flow_parameters(mca_btl_velo_component_t *component)
{
    int rc = add_flow_control(&component->flow_control);
    component->slots_per_peer = 0;
    rc |= add("slots_per_peer",
              "Size of the mailbox in 64-byte slots for each peer on the node, data and credit slots together; at least "
              "2 * credit_slots. 0 (default): 8192 slots shared out among the peers, at least 64 for each. rnr, "
              "mvapich_static and lazy have parameters of their own instead",
              MCA_BASE_VAR_TYPE_UNSIGNED_INT, NULL, OPAL_INFO_LVL_2, MCA_BASE_VAR_SCOPE_ALL_EQ,
              &component->slots_per_peer);
    component->credit_slots = 2;
    rc |= add("credit_slots", "Mailbox slots for each peer that are reserved for credit packets, 1 to 255 (default 2)",
              MCA_BASE_VAR_TYPE_UNSIGNED_INT, NULL, OPAL_INFO_LVL_4, MCA_BASE_VAR_SCOPE_ALL_EQ,
              &component->credit_slots);
    component->piggyback = true;
    rc |= add("piggyback", "Return credits in data packets that have two bytes to spare (default true)",
              MCA_BASE_VAR_TYPE_BOOL, NULL, OPAL_INFO_LVL_4, MCA_BASE_VAR_SCOPE_ALL_EQ, &component->piggyback);
    component->delay_credits = true;
    rc |= add("delay_credits",
              "static and dynamic, with piggyback: credits that fall due with the last packet in the mailbox wait until the "
              "process looks at it again, and save their credit packet if a data packet to the same peer leaves before, as "
              "an answer does (default true); false: the credit packet leaves at once, as in the thesis",
              MCA_BASE_VAR_TYPE_BOOL, NULL, OPAL_INFO_LVL_6, MCA_BASE_VAR_SCOPE_LOCAL, &component->delay_credits);
    component->packet_trains = true;
    rc |= add("packet_trains",
              "Send messages of several packets as packet trains, with one header for all (default true); false: a header "
              "in every packet, the format of the thesis",
              MCA_BASE_VAR_TYPE_BOOL, NULL, OPAL_INFO_LVL_6, MCA_BASE_VAR_SCOPE_LOCAL, &component->packet_trains);
    component->limic = false;
    rc |= add("limic",
              "true: processes of one node send each other messages by a path of its own that takes no credits (the thesis's "
              "third transfer method, after LiMIC); its ring of limic_slots is shared by all of them and refuses what does "
              "not fit. false (default): they use VELO packets and credits as processes of different nodes do",
              MCA_BASE_VAR_TYPE_BOOL, NULL, OPAL_INFO_LVL_3, MCA_BASE_VAR_SCOPE_ALL_EQ, &component->limic);
    component->limic_slots = 0;
    rc |= add("limic_slots", "Slots of 64 bytes in that ring, 8 to 16777216; 0 (default): 8192",
              MCA_BASE_VAR_TYPE_UNSIGNED_INT, NULL, OPAL_INFO_LVL_6, MCA_BASE_VAR_SCOPE_ALL_EQ, &component->limic_slots);
    component->ranks_per_node = 0;
    rc |= add("ranks_per_node",
              "Splits the processes on one machine, in the order of their ranks, into virtual nodes of so many: with limic, "
              "only processes of the same virtual node are local to each other. 0 (default): the machine is one node",
              MCA_BASE_VAR_TYPE_UNSIGNED_INT, NULL, OPAL_INFO_LVL_6, MCA_BASE_VAR_SCOPE_ALL_EQ,
              &component->ranks_per_node);
    component->spare_peers = 16;
    rc |= add("spare_peers",
              "How many processes of other jobs (MPI_Comm_spawn, MPI_Comm_connect) may be connected to this process at "
              "one time, 0 to 1024; each takes 2 * credit_slots more slots of the mailbox (default 16)",
              MCA_BASE_VAR_TYPE_UNSIGNED_INT, NULL, OPAL_INFO_LVL_6, MCA_BASE_VAR_SCOPE_LOCAL, &component->spare_peers);
    return rc;
}

/* Of the schemes of Liu & Panda. */
static int register_buffer_parameters(mca_btl_velo_component_t *component)
{
    component->preposted_buffers = 100;
    int rc = add("preposted_buffers",
                 "rnr, mvapich_static: mailbox slots for each peer, 1 to 65535. mvapich_dynamic: how many a peer can grow to "
                 "(default 100)",
                 MCA_BASE_VAR_TYPE_UNSIGNED_INT, NULL, OPAL_INFO_LVL_4, MCA_BASE_VAR_SCOPE_ALL_EQ,
                 &component->preposted_buffers);
    component->initial_buffers = 4;
    rc |= add("initial_buffers",
              "mvapich_dynamic: slots that each peer starts with, 1 to preposted_buffers, and no more than slots_per_peer "
              "without credit_slots (default 4)",
              MCA_BASE_VAR_TYPE_UNSIGNED_INT, NULL, OPAL_INFO_LVL_4, MCA_BASE_VAR_SCOPE_ALL_EQ,
              &component->initial_buffers);
    component->growth_buffers = 4;
    rc |= add("growth_buffers",
              "mvapich_dynamic: slots that a peer gets in addition for each message that had to wait, 1 to 65535 (default "
              "4); 0: as many as it has",
              MCA_BASE_VAR_TYPE_UNSIGNED_INT, NULL, OPAL_INFO_LVL_4, MCA_BASE_VAR_SCOPE_LOCAL,
              &component->growth_buffers);
    component->credit_message_threshold = 5;
    rc |= add("credit_message_threshold",
              "mvapich_static, mvapich_dynamic: freed slots of a peer that are worth a message of their own, 1 to 65535 "
              "(default 5); at most what a peer starts with takes effect",
              MCA_BASE_VAR_TYPE_UNSIGNED_INT, NULL, OPAL_INFO_LVL_6, MCA_BASE_VAR_SCOPE_ALL_EQ,
              &component->credit_message_threshold);
    component->rnr_timer_ns = 10 * 1000;
    rc |= add("rnr_timer_ns",
              "rnr: nanoseconds that a refused packet is held before it is sent again, 1 to 10000000000 (default 10000)",
              MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG, NULL, OPAL_INFO_LVL_4, MCA_BASE_VAR_SCOPE_LOCAL,
              &component->rnr_timer_ns);
    return rc;
}

static int register_lazy_parameters(mca_btl_velo_component_t *component)
{
    component->lazy_slots = 1024;
    int rc = add("lazy_slots",
                 "lazy: mailbox slots for data, whatever the number of peers, 1 to 65279 (default 1024)",
                 MCA_BASE_VAR_TYPE_UNSIGNED_INT, NULL, OPAL_INFO_LVL_4, MCA_BASE_VAR_SCOPE_ALL_EQ,
                 &component->lazy_slots);
    component->lazy_peers = 64;
    rc |= add("lazy_peers",
              "lazy: peers that may be sending to a process, and that it may be sending to, at one time, 1 to 65535 "
              "(default 64); more take turns",
              MCA_BASE_VAR_TYPE_UNSIGNED_INT, NULL, OPAL_INFO_LVL_4, MCA_BASE_VAR_SCOPE_ALL_EQ, &component->lazy_peers);
    component->lazy_stealing = true;
    rc |= add("lazy_stealing", "lazy: take the slots of idle senders for those that run short (default true)",
              MCA_BASE_VAR_TYPE_BOOL, NULL, OPAL_INFO_LVL_6, MCA_BASE_VAR_SCOPE_LOCAL, &component->lazy_stealing);
    component->lazy_ahead = 4;
    rc |= add("lazy_ahead",
              "lazy: windows that a process opens before it needs them, where it has learned in which order it speaks to its "
              "peers, 0 to 16 and at most an eighth of lazy_peers (default 4)",
              MCA_BASE_VAR_TYPE_UNSIGNED_INT, NULL, OPAL_INFO_LVL_6, MCA_BASE_VAR_SCOPE_LOCAL, &component->lazy_ahead);
    return rc;
}

static int register_network_parameters(mca_btl_velo_component_t *component)
{
    component->network = NETWORK_UCX;
    int rc = add_enumerated("network",
                            "What carries packets to other nodes: ucx (default; UCX_TLS and UCX_NET_DEVICES choose among its "
                            "networks; a job on one node opens none), or none: another BTL serves the processes there",
                            network_values, OPAL_INFO_LVL_3, MCA_BASE_VAR_SCOPE_ALL_EQ, &component->network);
    component->network_timeout = 20;
    rc |= add("network_timeout",
              "Seconds for which a connection to another node may leave data unacknowledged before the job ends with an error "
              "that names the process there, 1 to 3600 (default 20). A busy process is not meant: its kernel acknowledges",
              MCA_BASE_VAR_TYPE_UNSIGNED_INT, NULL, OPAL_INFO_LVL_5, MCA_BASE_VAR_SCOPE_LOCAL,
              &component->network_timeout);
    return rc;
}

static int register_other_parameters(mca_btl_velo_component_t *component)
{
    component->single_copy = SINGLE_COPY_AUTO;
    int rc = add_enumerated("single_copy_mechanism",
                            "How messages above the eager limit move: xpmem (the peer's memory is attached), cma "
                            "(process_vm_readv), copy (through the mailbox), or auto (default): for each peer the "
                            "first of them that a probe shows to work",
                            single_copy_values, OPAL_INFO_LVL_3, MCA_BASE_VAR_SCOPE_LOCAL, &component->single_copy);
    component->backing_directory = (char *) "/dev/shm";
    rc |= add("backing_directory",
              "Directory on a local file system for the shared memory segment, which has no name there (default "
              "/dev/shm)",
              MCA_BASE_VAR_TYPE_STRING, NULL, OPAL_INFO_LVL_3, MCA_BASE_VAR_SCOPE_LOCAL, &component->backing_directory);
    component->idle_sleep = -1;
    rc |= add("idle_sleep",
              "Microseconds that a process sleeps at most when its mailbox stays empty; it is woken when something comes. 0: "
              "never, it goes on polling. -1 (default): 300 where more processes run on the machine than it has "
              "processors, else 0. Always 0 with MPI_THREAD_MULTIPLE",
              MCA_BASE_VAR_TYPE_INT, NULL, OPAL_INFO_LVL_4, MCA_BASE_VAR_SCOPE_LOCAL, &component->idle_sleep);
    component->report = VELO_REPORT_NONE;
    rc |= add_enumerated("report",
                         "What the first process of the node prints at the end: none (default), summary (one screen), "
                         "json (one line, VELO-REPORT {...})",
                         report_values, OPAL_INFO_LVL_3, MCA_BASE_VAR_SCOPE_LOCAL, &component->report);
    component->stall_warning = 30;
    rc |= add("stall_warning",
              "Seconds after which a warning names a process to which nothing could be sent for want of credits; repeated "
              "after twice, four times, ... as long; 0: never (default 30)",
              MCA_BASE_VAR_TYPE_UNSIGNED_INT, NULL, OPAL_INFO_LVL_3, MCA_BASE_VAR_SCOPE_LOCAL,
              &component->stall_warning);
    component->trace = (char *) "";
    rc |= add("trace",
              "Directory, or beginning of a path, for a trace of flow control: one file for each process, "
              "velo.JOB.RANK.vtrace, to be read with velo-trace (default: no trace)",
              MCA_BASE_VAR_TYPE_STRING, NULL, OPAL_INFO_LVL_3, MCA_BASE_VAR_SCOPE_LOCAL, &component->trace);
    component->trace_limit = 1024;
    rc |= add("trace_limit", "Largest size of a trace file in MiB, where recording ends; 0: no limit (default 1024)",
              MCA_BASE_VAR_TYPE_UNSIGNED_INT, NULL, OPAL_INFO_LVL_5, MCA_BASE_VAR_SCOPE_LOCAL,
              &component->trace_limit);
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
    /* Payload and ob1's header: fastest on one node (design/shared-memory.md). */
    module->btl_eager_limit = MCA_BTL_VELO_EAGER_LIMIT;
    module->btl_rndv_eager_limit = module->btl_eager_limit;
    module->btl_max_send_size = 32 * 1024;
    module->btl_min_rdma_pipeline_size = INT_MAX;
    module->btl_rdma_pipeline_send_length = module->btl_eager_limit;
    module->btl_rdma_pipeline_frag_size = module->btl_eager_limit;
    module->btl_flags = MCA_BTL_FLAGS_SEND | MCA_BTL_FLAGS_RDMA | MCA_BTL_FLAGS_ATOMIC_OPS | MCA_BTL_FLAGS_ATOMIC_FOPS |
                        MCA_BTL_VELO_REMOTE_COMPLETION;
    module->btl_atomic_flags = MCA_BTL_ATOMIC_SUPPORTS_ADD | MCA_BTL_ATOMIC_SUPPORTS_AND | MCA_BTL_ATOMIC_SUPPORTS_OR |
                               MCA_BTL_ATOMIC_SUPPORTS_XOR | MCA_BTL_ATOMIC_SUPPORTS_SWAP | MCA_BTL_ATOMIC_SUPPORTS_MIN |
                               MCA_BTL_ATOMIC_SUPPORTS_MAX | MCA_BTL_ATOMIC_SUPPORTS_CSWAP |
                               MCA_BTL_ATOMIC_SUPPORTS_32BIT | MCA_BTL_ATOMIC_SUPPORTS_GLOB;
    module->btl_bandwidth = 40000; /* Mbit/s; ob1 only compares it with other BTLs' */
    module->btl_latency = 1;       /* microseconds */
    return mca_btl_base_param_register(&mca_btl_velo_component.super.btl_version, module);
}

bool mca_btl_velo_is_default(const char *name)
{
    mca_base_var_source_t source;
    int index = mca_base_var_find("opal", "btl", "velo", name);
    return index >= 0 && OPAL_SUCCESS == mca_base_var_get_value(index, NULL, &source, NULL) &&
           MCA_BASE_VAR_SOURCE_DEFAULT == source;
}

static bool registered;

bool mca_btl_velo_registered(void)
{
    return registered && mca_base_var_find("opal", "btl", "velo", "slots_per_peer") >= 0;
}

void mca_btl_velo_deregister(void)
{
    int group = mca_base_var_group_find("opal", "btl", "velo");
    if (group >= 0) {
        (void) mca_base_var_group_deregister(group);
    }
}

int mca_btl_velo_register(void)
{
    registered = true;
    (void) mca_base_var_group_component_register(&mca_btl_velo_component.super.btl_version,
                                                 "VELO packets into one bounded mailbox per process, with credit flow "
                                                 "control");
    int rc = register_flow_parameters(&mca_btl_velo_component);
    rc |= register_buffer_parameters(&mca_btl_velo_component);
    rc |= register_lazy_parameters(&mca_btl_velo_component);
    rc |= register_other_parameters(&mca_btl_velo_component);
    rc |= register_network_parameters(&mca_btl_velo_component);
    rc |= register_module_parameters(&mca_btl_velo_module.super);
    rc |= mca_btl_velo_register_pvars();
    return OPAL_SUCCESS == rc ? OPAL_SUCCESS : OPAL_ERR_BAD_PARAM;
}

/* Open MPI takes a text that is no number for 0. mpirun hands its command line on in the environment, where the text can
 * still be seen. NULL, or what is wrong. */
static const char *not_a_number(void)
{
    static const char *const names[] = {"slots_per_peer", "credit_slots",  "spare_peers", "limic_slots", "ranks_per_node", "idle_sleep",
                                        "eager_limit",    "max_send_size", "rndv_eager_limit", "preposted_buffers",
                                        "initial_buffers", "growth_buffers", "credit_message_threshold", "rnr_timer_ns",
                                        "lazy_slots", "lazy_peers", "network_timeout", "stall_warning", "trace_limit"};
    static char message[160];
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
        char variable[64];
        snprintf(variable, sizeof(variable), "OMPI_MCA_btl_velo_%s", names[i]);
        const char *text = getenv(variable);
        if (NULL == text || '\0' == *text) {
            continue;
        }
        char *end;
        (void) strtoll(text, &end, 0);
        /* The units that Open MPI knows: k, m, g. */
        if (end == text || strlen(end) > 1 || ('\0' != *end && NULL == strchr("kKmMgG", *end))) {
            snprintf(message, sizeof(message), "btl_velo_%s is \"%.40s\"; it must be a number", names[i], text);
            return message;
        }
    }
    return NULL;
}

const char *mca_btl_velo_wrong_parameter(const mca_btl_base_module_t *module)
{
    enum { LEAST = 128, MOST = 4 * 1024 * 1024 };
    const char *text = not_a_number();
    if (NULL != text) {
        return text;
    }
    if (module->btl_eager_limit < LEAST || module->btl_eager_limit > MOST) {
        return "btl_velo_eager_limit must be 128 to 4194304 bytes";
    }
    if (module->btl_rndv_eager_limit < LEAST || module->btl_rndv_eager_limit > MOST) {
        return "btl_velo_rndv_eager_limit must be 128 to 4194304 bytes";
    }
    if (module->btl_max_send_size < LEAST || module->btl_max_send_size > MOST) {
        return "btl_velo_max_send_size must be 128 to 4194304 bytes";
    }
    if (NULL == mca_btl_velo_component.backing_directory || '\0' == *mca_btl_velo_component.backing_directory) {
        return "btl_velo_backing_directory is empty; it must be a writable directory on a local file system";
    }
    if (mca_btl_velo_component.network_timeout < 1 || mca_btl_velo_component.network_timeout > 3600) {
        return "btl_velo_network_timeout must be 1 to 3600 seconds";
    }
    if (mca_btl_velo_component.idle_sleep < -1 || mca_btl_velo_component.idle_sleep > 1000000) {
        return "btl_velo_idle_sleep must be -1 to 1000000 microseconds";
    }
    if (mca_btl_velo_component.spare_peers > 1024) {
        return "btl_velo_spare_peers must be 0 to 1024";
    }
    if (mca_btl_velo_component.stall_warning > 1000000) {
        return "btl_velo_stall_warning must be 0 to 1000000 seconds";
    }
    return NULL;
}
