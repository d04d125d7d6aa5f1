/* The module and its BTL verbs for descriptors: alloc, free, prepare_src; dump. */
#include "btl_velo.h"

#include <limits.h>

#include "opal/util/output.h"

static void descriptor_construct(mca_btl_velo_descriptor_t *descriptor)
{
    descriptor->super.des_segments = descriptor->segments;
    descriptor->endpoint = NULL;
}

OBJ_CLASS_INSTANCE(mca_btl_velo_descriptor_t, mca_btl_base_descriptor_t, descriptor_construct, NULL);

static int register_error(mca_btl_base_module_t *btl, mca_btl_base_module_error_cb_fn_t callback)
{
    (void) btl;
    mca_btl_velo_module.error_callback = callback;
    return OPAL_SUCCESS;
}

mca_btl_velo_module_t mca_btl_velo_module = {
    .super = {
        .btl_component = &mca_btl_velo_component,
        .btl_add_procs = mca_btl_velo_add_procs,
        .btl_del_procs = mca_btl_velo_del_procs,
        .btl_finalize = mca_btl_velo_finalize,
        .btl_alloc = mca_btl_velo_alloc,
        .btl_free = mca_btl_velo_free,
        .btl_prepare_src = mca_btl_velo_prepare_src,
        .btl_send = mca_btl_velo_send,
        .btl_sendi = mca_btl_velo_sendi,
        .btl_register_mem = mca_btl_velo_register_mem,
        .btl_deregister_mem = mca_btl_velo_deregister_mem,
        .btl_registration_handle_size = MCA_BTL_VELO_HANDLE_BYTES,
        .btl_put_local_registration_threshold = SIZE_MAX, /* no other memory has to be registered */
        .btl_get_local_registration_threshold = SIZE_MAX,
        .btl_put = mca_btl_velo_put,
        .btl_get = mca_btl_velo_get,
        .btl_dump = mca_btl_velo_dump,
        .btl_atomic_op = mca_btl_velo_atomic_op,
        .btl_atomic_fop = mca_btl_velo_atomic_fop,
        .btl_atomic_cswap = mca_btl_velo_atomic_cswap,
        .btl_register_error = register_error,
    },
};

mca_btl_base_module_t mca_btl_velo_network;

static int init_descriptor(opal_free_list_item_t *item, void *context)
{
    opal_free_list_t *list = (opal_free_list_t *) context;
    mca_btl_velo_descriptor_t *descriptor = (mca_btl_velo_descriptor_t *) item;
    descriptor->list = list;
    descriptor->capacity = list->fl_payload_buffer_size;
    descriptor->segments[0].seg_addr.pval = item->ptr;
    return OPAL_SUCCESS;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

int mca_btl_velo_module_prepare(mca_btl_velo_module_t *module)
{
    const size_t capacity[MCA_BTL_VELO_DESCRIPTOR_SIZES] = {256, larger(256, module->super.btl_eager_limit),
                                                            mca_common_velo_fragment_bytes(),
                                                            mca_common_velo_max_message_bytes()};
    /* A few to begin with, and no upper bound: how many are in use the queue limit of sendi and ob1 decide. */
    enum { AT_FIRST = 4, UNBOUNDED = -1, STEP = 16 };
    for (int i = 0; i < MCA_BTL_VELO_DESCRIPTOR_SIZES; ++i) {
        const int first = i < MCA_BTL_VELO_DESCRIPTOR_SIZES - 1 ? AT_FIRST : 0;
        OBJ_CONSTRUCT(&module->descriptors[i], opal_free_list_t);
        int rc = opal_free_list_init(&module->descriptors[i], sizeof(mca_btl_velo_descriptor_t), opal_cache_line_size,
                                     OBJ_CLASS(mca_btl_velo_descriptor_t), capacity[i], opal_cache_line_size, first,
                                     UNBOUNDED, STEP, NULL, 0, NULL, init_descriptor, &module->descriptors[i]);
        if (OPAL_SUCCESS != rc) {
            return rc;
        }
    }
    OBJ_CONSTRUCT(&module->operations, opal_free_list_t);
    return opal_free_list_init(&module->operations, sizeof(mca_btl_velo_operation_t), opal_cache_line_size,
                               OBJ_CLASS(mca_btl_velo_operation_t), 0, 0, AT_FIRST, UNBOUNDED, STEP, NULL, 0, NULL,
                               NULL, NULL);
}

/* The exclusivity that comes after this one and after that of BTL self. */
static uint32_t below(uint32_t exclusivity)
{
    const uint32_t most = exclusivity < MCA_BTL_EXCLUSIVITY_HIGH ? exclusivity : MCA_BTL_EXCLUSIVITY_HIGH;
    return most > 0 ? most - 1 : 0;
}

void mca_btl_velo_module_prepare_network(void)
{
    mca_btl_base_module_t *network = &mca_btl_velo_network;
    *network = mca_btl_velo_module.super;
    network->btl_register_mem = NULL;
    network->btl_deregister_mem = NULL;
    network->btl_registration_handle_size = 0;
    /* What sendi refuses there, ob1 gives as it lies. */
    network->btl_flags |= MCA_BTL_FLAGS_SEND_INPLACE;
    /* Of the processes here, this node's module and BTL self serve the messages; ob1 uses those alone if most of the bandwidth
     * is theirs, and osc/rdma the one with the least latency of those that reach all processes of a window. */
    network->btl_exclusivity = below(network->btl_exclusivity);
    network->btl_bandwidth = 1;
    network->btl_latency += 10;
    if (mca_common_velo_is_default("eager_limit")) {
        network->btl_eager_limit = larger(velo_engine_network_eager_limit(mca_btl_velo_module.engine),
                                          MCA_COMMON_VELO_SMALL_EAGER_LIMIT);
        if (mca_common_velo_is_default("rndv_eager_limit")) {
            network->btl_rndv_eager_limit = network->btl_eager_limit;
        }
    }
}

mca_btl_base_descriptor_t *mca_btl_velo_alloc(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                                              uint8_t order, size_t size, uint32_t flags)
{
    (void) btl;
    mca_btl_velo_module_t *module = &mca_btl_velo_module;
    for (int i = 0; i < MCA_BTL_VELO_DESCRIPTOR_SIZES; ++i) {
        if (size > module->descriptors[i].fl_payload_buffer_size) {
            continue;
        }
        mca_btl_velo_descriptor_t *descriptor =
            (mca_btl_velo_descriptor_t *) opal_free_list_get(&module->descriptors[i]);
        if (NULL == descriptor) {
            return NULL;
        }
        descriptor->endpoint = endpoint;
        descriptor->send.collectable = false;
        descriptor->segments[0].seg_len = size;
        descriptor->super.des_segments = descriptor->segments;
        descriptor->super.des_segment_count = 1;
        descriptor->super.des_flags = flags;
        descriptor->super.order = order;
        return &descriptor->super;
    }
    return NULL;
}

int mca_btl_velo_free(mca_btl_base_module_t *btl, mca_btl_base_descriptor_t *base)
{
    (void) btl;
    mca_btl_velo_descriptor_t *descriptor = (mca_btl_velo_descriptor_t *) base;
    opal_free_list_return(descriptor->list, &descriptor->super.super);
    return OPAL_SUCCESS;
}

/* Contiguous data stays where it is: the engine copies it into packets, from the user's buffer, when credits allow. The request
 * of what is sent so is complete when it has left. */
mca_btl_base_descriptor_t *mca_btl_velo_prepare_src(mca_btl_base_module_t *btl,
                                                    struct mca_btl_base_endpoint_t *endpoint,
                                                    opal_convertor_t *convertor, uint8_t order, size_t reserve,
                                                    size_t *size, uint32_t flags)
{
    const bool packs = opal_convertor_need_buffers(convertor);
    mca_btl_base_descriptor_t *descriptor =
        mca_btl_velo_alloc(btl, endpoint, order, packs ? reserve + *size : reserve, flags);
    if (NULL == descriptor) {
        return NULL;
    }
    ((mca_btl_velo_descriptor_t *) descriptor)->send.collectable = true;
    if (!packs) {
        void *data;
        opal_convertor_get_current_pointer(convertor, &data);
        descriptor->des_segments[1].seg_addr.pval = data;
        descriptor->des_segments[1].seg_len = *size;
        descriptor->des_segment_count = 2;
        return descriptor;
    }
    struct iovec iov = {.iov_base = (char *) descriptor->des_segments[0].seg_addr.pval + reserve, .iov_len = *size};
    uint32_t iov_count = 1;
    if (opal_convertor_pack(convertor, &iov, &iov_count, size) < 0) {
        mca_btl_velo_free(btl, descriptor);
        return NULL;
    }
    descriptor->des_segments[0].seg_len = reserve + *size;
    return descriptor;
}

void mca_btl_velo_dump(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint, int verbose)
{
    (void) btl, (void) verbose; /* whoever asks for a dump wants to see it */
    velo_dump(mca_btl_velo_module.engine, NULL != endpoint ? endpoint->peer : NULL, 0);
}

void mca_btl_velo_module_clean(mca_btl_velo_module_t *module)
{
    mca_btl_velo_free_endpoints(module);
    for (int i = 0; i < MCA_BTL_VELO_DESCRIPTOR_SIZES; ++i) {
        OBJ_DESTRUCT(&module->descriptors[i]);
    }
    OBJ_DESTRUCT(&module->operations);
}
