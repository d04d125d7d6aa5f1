/* The module: finalize, and the beginning and end of communicators. */
#include "mtl_velo.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>

static int add_comm(mca_mtl_base_module_t *mtl, ompi_communicator_t *comm)
{
    (void) mtl, (void) comm; /* a message may come before its communicator exists here; it waits */
    return OMPI_SUCCESS;
}

static int del_comm(mca_mtl_base_module_t *mtl, ompi_communicator_t *comm)
{
    (void) mtl;
    if (NULL != mca_mtl_velo_module.messenger) {
        velo_message_forget(mca_mtl_velo_module.messenger, MCA_MTL_VELO_CONTEXT(comm));
    }
    return OMPI_SUCCESS;
}

static void log_state(const velo_messenger *messenger)
{
    velo_messenger_state state;
    char line[480];
    velo_messenger_observe(messenger, &state);
    snprintf(line, sizeof(line),
             "mtl: sent %" PRIu64 " eager, %" PRIu64 " by rendezvous (%" PRIu64 " of them for want of room in a pool); "
             "received %" PRIu64 " expected, %" PRIu64 " unexpected; pool %" PRIu64 " bytes (%" PRIu64
             " for each sender), at most %" PRIu64 " used; at most %" PRIu64 " headers; %" PRIu64 " bytes of memory; %" PRIu64 " headers for each sender; held back at most %" PRIu64,
             state.eager, state.rendezvous, state.degraded, state.matched_at_once, state.unexpected, state.pool_bytes,
             state.share_bytes, state.pool_most_bytes, state.headers_most, state.memory_bytes, state.share_headers,
             state.held_most);
    mca_common_velo_log(5, line);
}

static int finalize(mca_mtl_base_module_t *mtl)
{
    mca_mtl_velo_module_t *module = (mca_mtl_velo_module_t *) mtl;
    velo_messenger *messenger = module->messenger;
    if (NULL == messenger) {
        return OMPI_SUCCESS;
    }
    mca_mtl_velo_stop();
    log_state(messenger);
    module->messenger = NULL;
    module->engine = NULL;
    velo_messenger_close(messenger);
    mca_common_velo_release(&mca_mtl_velo_user);
    return OMPI_SUCCESS;
}

mca_mtl_velo_module_t mca_mtl_velo_module = {
    .super = {
        .mtl_max_contextid = INT_MAX,
        .mtl_max_tag = INT_MAX,
        .mtl_flags = MCA_MTL_VELO_FLAGS,
        .mtl_add_procs = mca_mtl_velo_add_procs,
        .mtl_del_procs = mca_mtl_velo_del_procs,
        .mtl_finalize = finalize,
        .mtl_send = mca_mtl_velo_send,
        .mtl_isend = mca_mtl_velo_isend,
        .mtl_irecv = mca_mtl_velo_irecv,
        .mtl_iprobe = mca_mtl_velo_iprobe,
        .mtl_imrecv = mca_mtl_velo_imrecv,
        .mtl_improbe = mca_mtl_velo_improbe,
        .mtl_cancel = mca_mtl_velo_cancel,
        .mtl_add_comm = add_comm,
        .mtl_del_comm = del_comm,
    },
};
