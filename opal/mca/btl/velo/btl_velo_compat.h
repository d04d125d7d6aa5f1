/* Every difference between the Open MPI series that Velo is built for is in this file. configure accepts the series
 * that appear here. */
#ifndef MCA_BTL_VELO_COMPAT_H
#define MCA_BTL_VELO_COMPAT_H

#include "opal_config.h"

#include "opal/mca/btl/btl.h"

#if BTL_VERSION != 310
#error "Velo supports the BTL API 3.1.0 of Open MPI 4.1"
#endif

/* Hands a received message to the upper layer. `data` is valid during the call only. */
static inline void mca_btl_velo_deliver(mca_btl_base_module_t *module, uint8_t tag, void *data, size_t bytes)
{
    mca_btl_active_message_callback_t *callback = mca_btl_base_active_message_trigger + tag;
    mca_btl_base_segment_t segment = {.seg_addr = {.pval = data}, .seg_len = bytes};
    mca_btl_base_descriptor_t descriptor = {.des_segments = &segment, .des_segment_count = 1};
    callback->cbfunc(module, tag, &descriptor, callback->cbdata);
}

#endif
