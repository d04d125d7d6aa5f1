/* The BTL's parameters: those of the engine, and the defaults of those that every BTL has. */
#include "btl_velo.h"

#include <stdint.h>
#include <string.h>

/* Where Open MPI keeps the value of a parameter that every BTL has. */
static size_t *of_base(mca_btl_base_module_t *module, const velo_parameter *parameter)
{
    return 0 == strcmp("eager_limit", parameter->key)        ? &module->btl_eager_limit
           : 0 == strcmp("rndv_eager_limit", parameter->key) ? &module->btl_rndv_eager_limit
                                                             : &module->btl_max_send_size;
}

/* Defaults of the parameters that every BTL has. mca_btl_base_param_register comes last: it removes flags of verbs
 * that are not there. */
static int register_module_parameters(mca_btl_base_module_t *module)
{
    /* Above sm and vader, so that a user who names velo gets it; component_init keeps out where nobody does. */
    module->btl_exclusivity = MCA_BTL_EXCLUSIVITY_HIGH + 1;
    /* Payload and ob1's header: fastest on one node (design/shared-memory.md). */
    for (unsigned i = 0; i < VELO_PARAMETERS; ++i) {
        if (VELO_PARAMETER_OF_BASE == velo_parameter_at(i)->owner) {
            *of_base(module, velo_parameter_at(i)) = (size_t) velo_parameter_at(i)->number;
        }
    }
    module->btl_min_rdma_pipeline_size = SIZE_MAX;
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
    return mca_btl_base_param_register(&mca_btl_velo_component.btl_version, module);
}

int mca_btl_velo_register(void)
{
    int rc = mca_common_velo_register();
    rc |= register_module_parameters(&mca_btl_velo_module.super);
    return OPAL_SUCCESS == rc ? OPAL_SUCCESS : OPAL_ERR_BAD_PARAM;
}
