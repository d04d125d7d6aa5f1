/* BTL verbs add_procs and del_procs. Called for all processes of the job at once, for some of them later, or for
 * processes of another job; peers are known by their process name only. */
#include "btl_velo.h"

#include <stdlib.h>

#include "opal/mca/hwloc/base/base.h"
#include "opal/mca/pmix/pmix.h"

/* The reason why a peer cannot be served, once for each process: with many peers it is mostly the same one. */
static void report_unreachable(velo_status status, const char *reason)
{
    static bool reported = false;
    bool loud = VELO_ERR_UNREACHABLE != status || !reported;
    reported = true;
    if (loud) {
        mca_btl_velo_complain(reason);
    } else {
        mca_btl_velo_log(NULL, 5, reason);
    }
}

static struct mca_btl_base_endpoint_t *connect_to(opal_proc_t *proc)
{
    void *address = NULL;
    size_t bytes = 0;
    int rc;
    OPAL_MODEX_RECV(rc, &mca_btl_velo_component.super.btl_version, &proc->proc_name, &address, &bytes);
    if (OPAL_SUCCESS != rc || NULL == address) {
        mca_btl_velo_log(NULL, 5, "a process on this node does not use velo");
        return NULL;
    }
    struct mca_btl_base_endpoint_t *endpoint = calloc(1, sizeof(*endpoint));
    char error[512];
    velo_status status = VELO_ERR_RESOURCE;
    if (NULL != endpoint) {
        status = velo_peer_connect(mca_btl_velo_module.engine, address, bytes, &endpoint->peer, error, sizeof(error));
    }
    free(address);
    if (VELO_OK != status) {
        report_unreachable(status, NULL != endpoint ? error : "out of memory");
        free(endpoint);
        return NULL;
    }
    endpoint->proc = proc;
    return endpoint;
}

int mca_btl_velo_add_procs(mca_btl_base_module_t *btl, size_t count, opal_proc_t **procs,
                           struct mca_btl_base_endpoint_t **endpoints, opal_bitmap_t *reachable)
{
    (void) btl;
    const opal_proc_t *self = opal_proc_local_get();
    for (size_t i = 0; i < count; ++i) {
        endpoints[i] = NULL;
        if (procs[i] == self || !OPAL_PROC_ON_LOCAL_NODE(procs[i]->proc_flags)) {
            continue;
        }
        endpoints[i] = connect_to(procs[i]);
        if (NULL != endpoints[i] && NULL != reachable) {
            (void) opal_bitmap_set_bit(reachable, (int) i);
        }
    }
    return OPAL_SUCCESS;
}

int mca_btl_velo_del_procs(mca_btl_base_module_t *btl, size_t count, opal_proc_t **procs,
                           struct mca_btl_base_endpoint_t **endpoints)
{
    (void) btl, (void) procs;
    for (size_t i = 0; i < count; ++i) {
        free(endpoints[i]);
        endpoints[i] = NULL;
    }
    return OPAL_SUCCESS;
}
