/* BTL verbs atomic_op, atomic_fop, atomic_cswap: active messages that the target's processor executes. */
#include "btl_velo.h"

/* The engine's name of a BTL operation, -1 if it has none. */
static int translate(mca_btl_base_atomic_op_t op)
{
    switch (op) {
    case MCA_BTL_ATOMIC_ADD: return VELO_ATOMIC_ADD;
    case MCA_BTL_ATOMIC_AND: return VELO_ATOMIC_AND;
    case MCA_BTL_ATOMIC_OR: return VELO_ATOMIC_OR;
    case MCA_BTL_ATOMIC_XOR: return VELO_ATOMIC_XOR;
    case MCA_BTL_ATOMIC_SWAP: return VELO_ATOMIC_SWAP;
    case MCA_BTL_ATOMIC_MIN: return VELO_ATOMIC_MIN;
    case MCA_BTL_ATOMIC_MAX: return VELO_ATOMIC_MAX;
    default: return -1;
    }
}

/* On this process's own memory: done within the call. It calls back all the same: where a BTL says that nobody will be called,
 * osc/rdma of Open MPI 4.1 takes 8 bytes of the old value, whatever the width (ompi_osc_rdma_btl_fop). */
static int execute_here(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint, void *local_address,
                        uint64_t address, int operation, unsigned width, uint64_t operand, uint64_t compare,
                        mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext, void *cbdata)
{
    uint64_t old_value;
    if (VELO_OK != velo_atomic_here((velo_atomic) operation, width, address, operand, compare, &old_value)) {
        return OPAL_ERR_NOT_AVAILABLE;
    }
    if (NULL != local_address) {
        mca_btl_velo_store_result(local_address, width, old_value);
    }
    cbfunc(btl, endpoint, local_address, NULL, cbcontext, cbdata, OPAL_SUCCESS);
    return OPAL_SUCCESS;
}

static int start(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint, void *local_address,
                 uint64_t remote_address, int operation, uint64_t operand, uint64_t compare, int flags,
                 mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext, void *cbdata)
{
    unsigned width = (flags & MCA_BTL_ATOMIC_FLAG_32BIT) ? 4 : 8;
    if (operation < 0 || (flags & MCA_BTL_ATOMIC_FLAG_FLOAT)) {
        return OPAL_ERR_NOT_AVAILABLE;
    }
    /* osc/rdma asks for its own process too where BTL self serves it, and there is no endpoint. */
    if (NULL == endpoint || mca_btl_velo_is_own(endpoint)) {
        return execute_here(btl, endpoint, local_address, remote_address, operation, width, operand, compare, cbfunc,
                            cbcontext, cbdata);
    }
    mca_btl_velo_operation_t *started = mca_btl_velo_operation_new(endpoint, local_address, cbfunc, cbcontext, cbdata);
    if (NULL == started) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    started->result_width = NULL == local_address ? 0 : width;
    return mca_btl_velo_operation_started(
        started, velo_atomic_start(mca_btl_velo_module.engine, mca_btl_velo_peer(endpoint), (velo_atomic) operation, width,
                                   remote_address, operand, compare, mca_btl_velo_operation_done, started));
}

int mca_btl_velo_atomic_op(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                           uint64_t remote_address, mca_btl_base_registration_handle_t *remote_handle,
                           mca_btl_base_atomic_op_t op, uint64_t operand, int flags, int order,
                           mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext, void *cbdata)
{
    (void) remote_handle, (void) order;
    return start(btl, endpoint, NULL, remote_address, translate(op), operand, 0, flags, cbfunc, cbcontext, cbdata);
}

int mca_btl_velo_atomic_fop(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint, void *local_address,
                            uint64_t remote_address, mca_btl_base_registration_handle_t *local_handle,
                            mca_btl_base_registration_handle_t *remote_handle, mca_btl_base_atomic_op_t op,
                            uint64_t operand, int flags, int order, mca_btl_base_rdma_completion_fn_t cbfunc,
                            void *cbcontext, void *cbdata)
{
    (void) local_handle, (void) remote_handle, (void) order;
    return start(btl, endpoint, local_address, remote_address, translate(op), operand, 0, flags, cbfunc, cbcontext, cbdata);
}

int mca_btl_velo_atomic_cswap(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                              void *local_address, uint64_t remote_address,
                              mca_btl_base_registration_handle_t *local_handle,
                              mca_btl_base_registration_handle_t *remote_handle, uint64_t compare, uint64_t value,
                              int flags, int order, mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext,
                              void *cbdata)
{
    (void) local_handle, (void) remote_handle, (void) order;
    return start(btl, endpoint, local_address, remote_address, VELO_ATOMIC_CSWAP, value, compare, flags, cbfunc, cbcontext,
                 cbdata);
}
