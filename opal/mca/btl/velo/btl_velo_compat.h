/* Every difference between the Open MPI series that the BTL is built for is in this file. configure accepts the series
 * that appear here: 4.1 with the BTL API 3.1.0, 5.0 and 6.0 with 3.3.0. */
#ifndef MCA_BTL_VELO_COMPAT_H
#define MCA_BTL_VELO_COMPAT_H

#include "opal_config.h"

#include "opal/mca/btl/btl.h"

#if BTL_VERSION == 310
#define MCA_BTL_VELO_API MCA_BTL_BASE_VERSION_3_1_0
#elif BTL_VERSION == 330
#define MCA_BTL_VELO_API MCA_BTL_BASE_VERSION_3_3_0
#else
#error "Velo supports the BTL API 3.1.0 of Open MPI 4.1 and 3.3.0 of Open MPI 5.0 and 6.0"
#endif

/* --- receiving: the segments, the first of which has the header, are valid during the call only */

/* From 5.0 on the base offers RMA by active messages and answers to the endpoint that a message came from. It is the only
 * one to ask for it. */
#if BTL_VERSION == 310
#define MCA_BTL_VELO_NEEDS_SOURCE(tag) false
#else
#define MCA_BTL_VELO_NEEDS_SOURCE(tag) ((tag) >= MCA_BTL_TAG_BTL_BASE && (tag) < MCA_BTL_TAG_BTL)
#endif

static inline void mca_btl_velo_deliver(mca_btl_base_module_t *module, struct mca_btl_base_endpoint_t *source, uint8_t tag,
                                        mca_btl_base_segment_t *segments, size_t count)
{
    mca_btl_active_message_callback_t *callback = mca_btl_base_active_message_trigger + tag;
#if BTL_VERSION == 310
    (void) source;
    /* As for any BTL, the callback reads nothing else. */
    mca_btl_base_descriptor_t descriptor;
    descriptor.des_segments = segments;
    descriptor.des_segment_count = count;
    callback->cbfunc(module, tag, &descriptor, callback->cbdata);
#else
    const mca_btl_base_receive_descriptor_t descriptor = {
        .endpoint = source, .des_segments = segments, .des_segment_count = count, .tag = tag, .cbdata = callback->cbdata};
    callback->cbfunc(module, &descriptor);
#endif
}

/* --- remote memory access */

/* Completion at the origin means completion at the target, for put and for atomics; 4.1 takes that for granted. */
#ifdef MCA_BTL_FLAGS_RDMA_REMOTE_COMPLETION
#define MCA_BTL_VELO_REMOTE_COMPLETION MCA_BTL_FLAGS_RDMA_REMOTE_COMPLETION
#else
#define MCA_BTL_VELO_REMOTE_COMPLETION 0
#endif

#endif
