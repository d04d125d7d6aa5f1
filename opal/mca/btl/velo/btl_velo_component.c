/* The component: start-up, the engine as its user has it, progress. */
#include "btl_velo.h"

#include <stdlib.h>
#include <string.h>

#include "opal/util/output.h"

#include "velo_config.h"

static mca_btl_base_module_t **component_init(int *count, bool enable_progress_threads, bool enable_mpi_threads);
static int component_progress(void);

mca_btl_base_component_t mca_btl_velo_component = {
    .btl_version = {
        MCA_BTL_VELO_API,
        .mca_component_name = "velo",
        /* What ompi_info shows. */
        MCA_BASE_MAKE_VERSION(component, VELO_VERSION_MAJOR, VELO_VERSION_MINOR, VELO_VERSION_RELEASE),
        .mca_open_component = mca_common_velo_check_version,
        .mca_register_component_params = mca_btl_velo_register,
    },
    .btl_data = {.param_field = MCA_BASE_METADATA_PARAM_CHECKPOINT},
    .btl_init = component_init,
    .btl_progress = component_progress,
};

static void message_arrived(void *context, uint8_t tag, void *data, size_t bytes)
{
    mca_btl_velo_module_t *module = &mca_btl_velo_module;
    (void) context;
    mca_btl_base_module_t *btl =
        OPAL_UNLIKELY(mca_btl_velo_has_network()) && velo_message_is_remote(module->engine) ? &mca_btl_velo_network : &module->super;
    struct mca_btl_base_endpoint_t *source =
        MCA_BTL_VELO_NEEDS_SOURCE(tag) ? mca_btl_velo_endpoint_of(btl, velo_message_source(module->engine)) : NULL;
    mca_btl_base_segment_t segment = {.seg_addr = {.pval = data}, .seg_len = bytes};
    mca_btl_velo_deliver(btl, source, tag, &segment, 1);
}

static void failed(const char *text)
{
    mca_btl_velo_module_t *module = &mca_btl_velo_module;
    if (NULL != module->error_callback) {
        mca_common_velo_complain(text);
        /* Without a text of its own, so that the line above is the last one. */
        module->error_callback(&module->super, MCA_BTL_ERROR_FLAGS_FATAL, NULL, NULL);
    }
}

/* The launcher may never learn that a node is out of reach: ob1 counts its process as failed, and tells the others. */
static void lost(uint64_t process_name)
{
    mca_btl_velo_module_t *module = &mca_btl_velo_module;
    opal_proc_t *proc =
        opal_proc_for_name((opal_process_name_t) {.jobid = (opal_jobid_t) (process_name >> 32), .vpid = (opal_vpid_t) process_name});
    if (NULL != module->error_callback && NULL != proc) {
        module->error_callback(&module->super, MCA_BTL_ERROR_FLAGS_NONFATAL, proc, NULL);
    }
}

static void engine_closed(void)
{
    mca_btl_velo_module.engine = NULL;
    mca_btl_velo_module_clean(&mca_btl_velo_module);
}

static mca_common_velo_user_t user = {
    .message = message_arrived, .failed = failed, .gone = mca_btl_velo_gone, .lost = lost, .closed = engine_closed};
static unsigned modules_open; /* each is finalized */

int mca_btl_velo_finalize(mca_btl_base_module_t *btl)
{
    (void) btl;
    if (0 == --modules_open) {
        mca_common_velo_release(&user);
    }
    return OPAL_SUCCESS;
}

static void open_module(mca_btl_velo_module_t *module, bool threads)
{
    module->engine = mca_common_velo_acquire(&user, threads);
    module->threads = threads;
    if (OPAL_SUCCESS != mca_btl_velo_module_prepare(module)) {
        mca_common_velo_give_up("out of memory");
    }
    if (mca_common_velo_eager_limit() != module->super.btl_eager_limit) {
        module->super.btl_eager_limit = module->super.btl_rndv_eager_limit = mca_common_velo_eager_limit();
    }
}

static mca_btl_base_module_t **component_init(int *count, bool enable_progress_threads, bool enable_mpi_threads)
{
    (void) enable_progress_threads;
    mca_btl_velo_module_t *module = &mca_btl_velo_module;
    *count = 0;
    if (!mca_common_velo_is_named(&opal_btl_base_framework)) {
        mca_common_velo_log(5, "not used: name velo in --mca btl to use it");
        return NULL;
    }
    mca_btl_base_module_t **modules = calloc(2, sizeof(*modules));
    if (NULL == modules) {
        mca_common_velo_give_up("out of memory");
    }
    open_module(module, enable_mpi_threads);
    modules[0] = &module->super;
    *count = 1;
    if (0 < velo_engine_network_eager_limit(module->engine)) {
        mca_btl_velo_module_prepare_network();
        modules[(*count)++] = &mca_btl_velo_network;
    }
    modules_open = (unsigned) *count;
    return modules;
}

static int component_progress(void)
{
    /* Open MPI may call once more after finalize. */
    return NULL != mca_btl_velo_module.engine ? velo_progress(mca_btl_velo_module.engine) : 0;
}
