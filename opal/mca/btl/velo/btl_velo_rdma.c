/* BTL verbs get and put: any size, any alignment, any memory. What ob1 registers is data that its peer is about to get. */
#include "btl_velo.h"

#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

OBJ_CLASS_INSTANCE(mca_btl_velo_operation_t, opal_free_list_item_t, NULL, NULL);

mca_btl_velo_operation_t *mca_btl_velo_operation_new(struct mca_btl_base_endpoint_t *endpoint, void *local_address,
                                                     mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext,
                                                     void *cbdata)
{
    mca_btl_velo_operation_t *operation =
        (mca_btl_velo_operation_t *) opal_free_list_get(&mca_btl_velo_module.operations);
    if (NULL != operation) {
        operation->endpoint = endpoint;
        operation->local_address = local_address;
        operation->result_width = 0;
        operation->cbfunc = cbfunc;
        operation->cbcontext = cbcontext;
        operation->cbdata = cbdata;
    }
    return operation;
}

void mca_btl_velo_store_result(void *to, unsigned width, uint64_t result)
{
    if (4 == width) {
        *(uint32_t *) to = (uint32_t) result;
    } else if (8 == width) {
        *(uint64_t *) to = result;
    }
}

void mca_btl_velo_operation_done(void *argument, velo_status status, uint64_t result)
{
    mca_btl_velo_operation_t *operation = (mca_btl_velo_operation_t *) argument;
    mca_btl_velo_store_result(operation->local_address, operation->result_width, result);
    if (VELO_OK == status || !mca_btl_velo_is_left_open(operation->endpoint)) {
        operation->cbfunc(operation->endpoint->btl, operation->endpoint, operation->local_address, NULL,
                          operation->cbcontext, operation->cbdata, VELO_OK == status ? OPAL_SUCCESS : OPAL_ERROR);
    }
    opal_free_list_return(&mca_btl_velo_module.operations, &operation->super);
}

int mca_btl_velo_operation_started(mca_btl_velo_operation_t *operation, velo_status status)
{
    if (status >= VELO_OK) {
        return OPAL_SUCCESS;
    }
    opal_free_list_return(&mca_btl_velo_module.operations, &operation->super);
    return VELO_ERR_UNSUPPORTED == status ? OPAL_ERR_NOT_AVAILABLE : OPAL_ERROR;
}

/* ob1 sends the peer the beginning of a registration: the number of a staged get. */
struct mca_btl_base_registration_handle_t {
    uint64_t told; /* the number of the deposit */
    uint64_t deposit;
    atomic_int users; /* ob1, and whoever stores the data; the last one ends the deposit */
    velo_peer *peer;
    struct mca_btl_base_endpoint_t *endpoint;
};
_Static_assert(0 == offsetof(mca_btl_base_registration_handle_t, told) &&
                   MCA_BTL_VELO_HANDLE_BYTES == sizeof(((mca_btl_base_registration_handle_t *) NULL)->told),
               "what is sent of it");
/* osc/rdma lays the states of a window's ranks out by this size: each begins with words that are changed atomically. Where
 * such a word lies across two cache lines, an atomic takes microseconds, or the kernel ends the process. */
_Static_assert(0 == MCA_BTL_VELO_HANDLE_BYTES % sizeof(uint64_t), "the words of osc/rdma are aligned");

static mca_btl_base_registration_handle_t no_deposit;

mca_btl_base_registration_handle_t *mca_btl_velo_register_mem(mca_btl_base_module_t *btl,
                                                              struct mca_btl_base_endpoint_t *endpoint, void *base,
                                                              size_t size, uint32_t flags)
{
    (void) btl;
    /* ob1 registers, then sends the message that announces it: the data is staged behind that message. */
    const bool is_told = MCA_BTL_REG_FLAG_REMOTE_READ == flags && MCA_BTL_ENDPOINT_ANY != endpoint && !mca_btl_velo_is_own(endpoint) &&
                         NULL != mca_btl_velo_peer(endpoint);
    mca_btl_base_registration_handle_t *handle =
        is_told && NULL == atomic_load(&endpoint->unstaged) ? malloc(sizeof(*handle)) : NULL;
    if (NULL == handle) {
        return &no_deposit;
    }
    *handle = (mca_btl_base_registration_handle_t){
        .deposit = velo_deposit_begin(endpoint->peer, base, size), .users = 2, .peer = endpoint->peer, .endpoint = endpoint};
    handle->told = VELO_DEPOSIT_NUMBER(handle->deposit);
    mca_btl_base_registration_handle_t *none = NULL;
    if (0 == handle->told || !atomic_compare_exchange_strong(&endpoint->unstaged, &none, handle)) {
        handle->told = 0; /* another thread's is to be stored first: nobody hears of this one */
        handle->users = 1;
    }
    return handle;
}

static void release(mca_btl_base_registration_handle_t *handle)
{
    if (1 == atomic_fetch_sub(&handle->users, 1)) {
        velo_deposit_end(handle->peer, handle->deposit);
        free(handle);
    }
}

void mca_btl_velo_store_deposit(struct mca_btl_base_endpoint_t *endpoint)
{
    if (NULL == atomic_load_explicit(&endpoint->unstaged, memory_order_relaxed)) {
        return;
    }
    mca_btl_base_registration_handle_t *handle = atomic_exchange(&endpoint->unstaged, NULL);
    if (NULL != handle) {
        velo_deposit_store(handle->peer, handle->deposit);
        release(handle);
    }
}

int mca_btl_velo_deregister_mem(mca_btl_base_module_t *btl, mca_btl_base_registration_handle_t *handle)
{
    (void) btl;
    if (&no_deposit == handle) {
        return OPAL_SUCCESS;
    }
    mca_btl_base_registration_handle_t *its = handle;
    if (0 != handle->told && atomic_compare_exchange_strong(&handle->endpoint->unstaged, &its, NULL)) {
        release(handle);
    }
    /* The data is the program's again after this call, so wait for a thread that stages it: for one ring at most. */
    while (1 != atomic_load(&handle->users)) {
        sched_yield();
    }
    release(handle);
    return OPAL_SUCCESS;
}

static uint32_t deposit_of(const mca_btl_base_registration_handle_t *handle)
{
    uint64_t deposit = 0;
    if (NULL != handle) {
        memcpy(&deposit, handle, sizeof(deposit));
    }
    return deposit > UINT32_MAX ? 0 : (uint32_t) deposit;
}

enum direction { GET, PUT };

/* From this process to itself. */
static int transfer_here(enum direction direction, struct mca_btl_base_endpoint_t *endpoint, void *local, uint64_t remote,
                         size_t size, mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext, void *cbdata)
{
    void *other = (void *) (uintptr_t) remote;
    memmove(GET == direction ? local : other, GET == direction ? other : local, size);
    cbfunc(endpoint->btl, endpoint, local, NULL, cbcontext, cbdata, OPAL_SUCCESS);
    return OPAL_SUCCESS;
}

static int transfer(enum direction direction, struct mca_btl_base_endpoint_t *endpoint, void *local, uint64_t remote,
                    uint32_t deposit, size_t size, mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext, void *cbdata)
{
    if (mca_btl_velo_is_own(endpoint)) {
        return transfer_here(direction, endpoint, local, remote, size, cbfunc, cbcontext, cbdata);
    }
    velo_engine *engine = mca_btl_velo_module.engine;
    mca_btl_velo_operation_t *operation = mca_btl_velo_operation_new(endpoint, local, cbfunc, cbcontext, cbdata);
    if (NULL == operation) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    velo_status status =
        GET == direction
            ? velo_get_deposited(engine, mca_btl_velo_peer(endpoint), deposit, local, remote, size, mca_btl_velo_operation_done,
                                 operation)
            : velo_put(engine, mca_btl_velo_peer(endpoint), local, remote, size, mca_btl_velo_operation_done, operation);
    return mca_btl_velo_operation_started(operation, status);
}

int mca_btl_velo_get(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint, void *local_address,
                     uint64_t remote_address, mca_btl_base_registration_handle_t *local_handle,
                     mca_btl_base_registration_handle_t *remote_handle, size_t size, int flags, int order,
                     mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext, void *cbdata)
{
    (void) btl, (void) local_handle, (void) flags, (void) order;
    return transfer(GET, endpoint, local_address, remote_address, deposit_of(remote_handle), size, cbfunc, cbcontext, cbdata);
}

int mca_btl_velo_put(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint, void *local_address,
                     uint64_t remote_address, mca_btl_base_registration_handle_t *local_handle,
                     mca_btl_base_registration_handle_t *remote_handle, size_t size, int flags, int order,
                     mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext, void *cbdata)
{
    (void) btl, (void) local_handle, (void) remote_handle, (void) flags, (void) order;
    return transfer(PUT, endpoint, local_address, remote_address, 0, size, cbfunc, cbcontext, cbdata);
}
