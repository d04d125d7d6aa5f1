/* BTL verbs send and sendi. What credits do not allow yet waits in the engine and completes by callback. */
#include "btl_velo.h"

static mca_btl_velo_descriptor_t *descriptor_of(velo_send *send)
{
    return (mca_btl_velo_descriptor_t *) ((char *) send - offsetof(mca_btl_velo_descriptor_t, send));
}

/* Completes the descriptor: calls back if asked to, and frees it if the BTL owns it. */
static void complete(mca_btl_velo_descriptor_t *descriptor, int status)
{
    /* The upper layer may free the descriptor in its callback if it owns it. */
    bool ours = descriptor->super.des_flags & MCA_BTL_DES_FLAGS_BTL_OWNERSHIP;
    if ((descriptor->super.des_flags & MCA_BTL_DES_SEND_ALWAYS_CALLBACK) && NULL != descriptor->super.des_cbfunc) {
        descriptor->super.des_cbfunc(descriptor->endpoint->btl, descriptor->endpoint, &descriptor->super, status);
    }
    if (ours) {
        mca_btl_velo_free(&mca_btl_velo_module.super, &descriptor->super);
    }
}

/* ob1 tries all that was refused again on each progress: n messages, of which k have left since, come to n * n / (2 * k) tries
 * in all. So each progress that lets something leave goes on for one look at the mailbox for so many refusals, and what ob1
 * has pending leaves as it completes the rest, without such a round. */
enum { TRIES_PER_LOOK = 4, MOST_LOOKS = 16384 };

static void queued_send_done(velo_send *send, velo_status status)
{
    mca_btl_velo_descriptor_t *descriptor = descriptor_of(send);
    if (OPAL_UNLIKELY(mca_btl_velo_is_left_open(descriptor->endpoint))) {
        return;
    }
    const uint32_t looks = descriptor->endpoint->refused / TRIES_PER_LOOK;
    if (OPAL_UNLIKELY(0 < looks)) {
        descriptor->endpoint->refused = 0;
        velo_extend_progress(mca_btl_velo_module.engine, looks < MOST_LOOKS ? looks : MOST_LOOKS);
    }
    complete(descriptor, VELO_OK == status ? OPAL_SUCCESS : OPAL_ERROR);
}

/* To this process: not through the mailbox. As with BTL self the upper layer takes the message within the call, so that
 * nothing waits anywhere and messages arrive in the order in which they are sent. */
static int send_to_self(struct mca_btl_base_endpoint_t *endpoint, mca_btl_velo_descriptor_t *descriptor, mca_btl_base_tag_t tag)
{
    mca_btl_velo_deliver(endpoint->btl, endpoint, tag, descriptor->super.des_segments, descriptor->super.des_segment_count);
    complete(descriptor, OPAL_SUCCESS);
    return 1;
}

static int sendi_to_self(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                         opal_convertor_t *convertor, void *header, size_t header_size, size_t payload_size,
                         uint8_t order, mca_btl_base_tag_t tag, mca_btl_base_descriptor_t **descriptor)
{
    const uint32_t flags = MCA_BTL_DES_FLAGS_BTL_OWNERSHIP;
    /* Without data the convertor is not prepared. */
    mca_btl_base_descriptor_t *base =
        payload_size > 0
            ? mca_btl_velo_prepare_src(btl, endpoint, convertor, order, header_size, &payload_size, flags)
            : mca_btl_velo_alloc(btl, endpoint, order, header_size, flags);
    if (NULL == base) {
        if (NULL != descriptor) {
            *descriptor = NULL;
        }
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    memcpy(base->des_segments[0].seg_addr.pval, header, header_size);
    (void) send_to_self(endpoint, (mca_btl_velo_descriptor_t *) base, tag);
    return OPAL_SUCCESS;
}

int mca_btl_velo_send(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                      mca_btl_base_descriptor_t *base, mca_btl_base_tag_t tag)
{
    (void) btl;
    mca_btl_velo_descriptor_t *descriptor = (mca_btl_velo_descriptor_t *) base;
    velo_send *send = &descriptor->send;
    if (mca_btl_velo_is_own(endpoint)) {
        descriptor->endpoint = endpoint;
        return send_to_self(endpoint, descriptor, tag);
    }
    /* A queued message must call back, and it may be on its way before velo_send_start returns. */
    uint32_t flags = base->des_flags;
    base->des_flags |= MCA_BTL_DES_SEND_ALWAYS_CALLBACK;
    descriptor->endpoint = endpoint;
    send->part[0] = base->des_segments[0].seg_addr.pval;
    send->bytes[0] = base->des_segments[0].seg_len;
    send->part[1] = base->des_segment_count > 1 ? base->des_segments[1].seg_addr.pval : NULL;
    send->bytes[1] = base->des_segment_count > 1 ? base->des_segments[1].seg_len : 0;
    send->tag = tag;
    send->done = queued_send_done;

    velo_status status = velo_send_start(mca_btl_velo_module.engine, mca_btl_velo_peer(endpoint), send);
    mca_btl_velo_store_deposit(endpoint);
    if (VELO_QUEUED == status || (VELO_ERR_REMOTE == status && mca_btl_velo_is_left_open(endpoint))) {
        return OPAL_SUCCESS;
    }
    base->des_flags = flags;
    if (VELO_OK != status) {
        return OPAL_ERROR;
    }
    complete(descriptor, OPAL_SUCCESS);
    return 1;
}

static bool may_queue(const velo_peer *peer)
{
    return velo_peer_queued_bytes(peer) < MCA_BTL_VELO_QUEUE_LIMIT;
}

#define RARE __attribute__((noinline, cold))

/* ob1 copies the message into this descriptor and sends it, or, without one, tries again later; its request is complete, and
 * MPI_Send returns, when the message has left. */
RARE static int refuse_now(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint, uint8_t order, size_t size,
                      uint32_t flags, mca_btl_base_descriptor_t **descriptor)
{
    if (NULL != descriptor) {
        *descriptor = may_queue(mca_btl_velo_peer(endpoint)) ? mca_btl_velo_alloc(btl, endpoint, order, size, flags) : NULL;
        if (NULL != *descriptor) {
            ((mca_btl_velo_descriptor_t *) *descriptor)->send.collectable = true;
        } else if (!mca_btl_velo_module.threads) {
            ++endpoint->refused;
        }
    }
    return OPAL_ERR_OUT_OF_RESOURCE;
}

/* Non-contiguous data has to be packed somewhere. What does not leave at once is packed again, by ob1. */
RARE static int sendi_with_gaps(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                           opal_convertor_t *convertor, void *header, size_t header_size, size_t payload_size,
                           uint8_t order, uint32_t flags, mca_btl_base_tag_t tag, mca_btl_base_descriptor_t **descriptor)
{
    int rc = OPAL_ERR_OUT_OF_RESOURCE;
    size_t bytes = payload_size, start = 0;
    mca_btl_base_descriptor_t *packed =
        0 == velo_peer_queued_bytes(mca_btl_velo_peer(endpoint))
            ? mca_btl_velo_prepare_src(btl, endpoint, convertor, order, 0, &bytes, flags)
            : NULL;
    if (NULL != packed) {
        opal_convertor_t contiguous;
        OBJ_CONSTRUCT(&contiguous, opal_convertor_t);
        (void) opal_convertor_copy_and_prepare_for_send(convertor, &opal_datatype_uint1, payload_size,
                                                        packed->des_segments[0].seg_addr.pval, 0, &contiguous);
        if (!opal_convertor_need_buffers(&contiguous)) {
            rc = mca_btl_velo_sendi(btl, endpoint, &contiguous, header, header_size, payload_size, order, flags, tag, NULL);
        }
        OBJ_DESTRUCT(&contiguous);
        (void) mca_btl_velo_free(btl, packed);
        if (OPAL_SUCCESS != rc) {
            (void) opal_convertor_set_position(convertor, &start);
        }
    }
    return OPAL_SUCCESS == rc ? rc : refuse_now(btl, endpoint, order, header_size + payload_size, flags, descriptor);
}

/* Whoever is not connected yet, or this process. */
RARE static int sendi_to_unmet(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                          opal_convertor_t *convertor, void *header, size_t header_size, size_t payload_size,
                          uint8_t order, uint32_t flags, mca_btl_base_tag_t tag, mca_btl_base_descriptor_t **descriptor)
{
    if (mca_btl_velo_is_own(endpoint)) {
        return sendi_to_self(btl, endpoint, convertor, header, header_size, payload_size, order, tag, descriptor);
    }
    return NULL != mca_btl_velo_peer(endpoint)
               ? mca_btl_velo_sendi(btl, endpoint, convertor, header, header_size, payload_size, order, flags, tag, descriptor)
               : OPAL_ERR_OUT_OF_RESOURCE;
}

/* The slow paths are tail calls with the same arguments, so the fast path saves few registers. */
int mca_btl_velo_sendi(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                       opal_convertor_t *convertor, void *header, size_t header_size, size_t payload_size,
                       uint8_t order, uint32_t flags, mca_btl_base_tag_t tag, mca_btl_base_descriptor_t **descriptor)
{
    if (OPAL_UNLIKELY(NULL == endpoint->peer)) {
        return sendi_to_unmet(btl, endpoint, convertor, header, header_size, payload_size, order, flags, tag, descriptor);
    }
    void *payload = NULL;
    if (payload_size > 0) {
        if (opal_convertor_need_buffers(convertor)) {
            return sendi_with_gaps(btl, endpoint, convertor, header, header_size, payload_size, order, flags, tag, descriptor);
        }
        opal_convertor_get_current_pointer(convertor, &payload);
    }
    const size_t size = header_size + payload_size;
    if (OPAL_LIKELY(VELO_OK == velo_send_now(endpoint->peer, tag, header, header_size, payload, payload_size))) {
        return OPAL_SUCCESS;
    }
    return refuse_now(btl, endpoint, order, size, flags, descriptor);
}
