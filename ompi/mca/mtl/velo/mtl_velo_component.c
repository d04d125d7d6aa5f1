/* The component: parameters, the decision whether it is used, start-up. */
#include "mtl_velo.h"

#include <limits.h>

#include "ompi/runtime/mpiruntime.h"
#include "opal/mca/base/mca_base_var.h"
#include "opal/util/output.h"

static int component_register(void);
static int component_query(mca_base_module_t **module, int *priority);
/* A peer that is there no more: it was met before it has died. */
static bool is_dead(void *nothing, uint32_t context, int32_t source)
{
    (void) nothing;
    ompi_communicator_t *comm = INT_MAX < context ? NULL : ompi_comm_lookup(context);
    if (NULL == comm || source >= (OMPI_COMM_IS_INTER(comm) ? ompi_comm_remote_size(comm) : ompi_comm_size(comm))) {
        return false;
    }
    void *endpoint = ompi_comm_peer_lookup(comm, source)->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_MTL];
    return NULL != endpoint && endpoint != &mca_mtl_velo_self && velo_peer_has_died(endpoint);
}

static mca_mtl_base_module_t *component_init(MCA_MTL_VELO_INIT_ARGUMENTS);

mca_mtl_velo_component_t mca_mtl_velo_component = {
    .super = {
        .mtl_version = {
            MCA_MTL_BASE_VERSION_2_0_0,
            .mca_component_name = "velo",
            MCA_BASE_MAKE_VERSION(component, OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION),
            .mca_open_component = mca_common_velo_check_version,
            .mca_query_component = component_query,
            .mca_register_component_params = component_register,
        },
        .mtl_data = {.param_field = MCA_BASE_METADATA_PARAM_NONE},
        .mtl_init = component_init,
    },
};

static int component_register(void)
{
    (void) mca_base_var_group_component_register(&mca_mtl_velo_component.super.mtl_version,
                                                 "Messages with matching of their own over Velo's mailbox, in bounded "
                                                 "memory. Mailbox, credits and single copy: btl_velo_*");
    mca_mtl_velo_component.config = velo_default_messenger_config();
    int rc = mca_common_velo_register_rows(&mca_mtl_velo_component.super.mtl_version, VELO_PARAMETER_OF_MESSENGER,
                                        &mca_mtl_velo_component.config);
    rc |= mca_mtl_velo_register_pvars();
    return OMPI_SUCCESS == rc ? OMPI_SUCCESS : OMPI_ERR_BAD_PARAM;
}

static int component_query(mca_base_module_t **module, int *priority)
{
    /* Who names it gets it, in pml cm's place too. */
    enum { PRIORITY = 100 };
    *module = NULL;
    *priority = -1;
    if (!mca_common_velo_is_named(&ompi_mtl_base_framework)) {
        return OMPI_ERR_NOT_AVAILABLE;
    }
    *module = (mca_base_module_t *) &mca_mtl_velo_module.super;
    *priority = PRIORITY;
    return OMPI_SUCCESS;
}

/* Processes that may send to this one: those of the job, and spare ones of other jobs. */
static uint32_t senders(void)
{
    uint32_t size = mca_common_velo_job_size();
    if (0 == size) {
        mca_common_velo_give_up("the size of the job is not known");
    }
    return size + mca_common_velo_config().spare_peers;
}

mca_common_velo_user_t mca_mtl_velo_user = {.gone = mca_mtl_velo_gone};

static int component_progress(void)
{
    return velo_progress(mca_mtl_velo_module.engine);
}

static mca_mtl_base_module_t *component_init(MCA_MTL_VELO_INIT_ARGUMENTS)
{
    (void) enable_progress_threads;
    mca_mtl_velo_module_t *module = &mca_mtl_velo_module;
    module->engine = mca_common_velo_acquire(&mca_mtl_velo_user, enable_mpi_threads);
    velo_messenger_config config = mca_mtl_velo_component.config;
    config.everywhere = !mca_common_velo_is_default("eager_limit");
    config.eager_limit = mca_common_velo_eager_limit() - MCA_COMMON_VELO_EAGER_HEADER;
    config.sharers = senders();
    char error[512];
    if (VELO_OK != velo_messenger_open(module->engine, &config, &module->messenger, error, sizeof(error))) {
        mca_common_velo_give_up(error);
    }
    velo_messenger_watch(module->messenger, is_dead, NULL);
    if (OMPI_SUCCESS != mca_mtl_velo_publish(module->messenger)) {
        mca_common_velo_give_up("cannot publish the share of the pool");
    }
    if (OPAL_SUCCESS != opal_progress_register(component_progress)) {
        mca_common_velo_give_up("out of memory");
    }
    module->super.mtl_request_size = sizeof(mca_mtl_velo_request_t) - sizeof(mca_mtl_request_t);
    return &module->super;
}

void mca_mtl_velo_stop(void)
{
    (void) opal_progress_unregister(component_progress);
}
