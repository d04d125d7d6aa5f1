/* MTL verbs add_procs and del_procs: the way to a peer is that of all components; its share of the pool comes with it. */
#include "mtl_velo.h"

#include <stdio.h>
#include <stdlib.h>

char mca_mtl_velo_self;

int mca_mtl_velo_publish(const velo_messenger *messenger)
{
    size_t bytes;
    const void *address = velo_messenger_address(messenger, &bytes);
    return mca_common_velo_publish(&mca_mtl_velo_component.super.mtl_version, address, bytes);
}

static velo_peer *connect_to(ompi_proc_t *proc)
{
    velo_peer *peer = mca_common_velo_connect(&proc->super);
    void *address = NULL;
    size_t bytes = 0;
    if (NULL == peer) {
        return NULL;
    }
    int rc = mca_common_velo_published(&mca_mtl_velo_component.super.mtl_version, &proc->super.proc_name, &address, &bytes);
    if (OPAL_SUCCESS != rc || NULL == address) {
        return NULL;
    }
    velo_status status = velo_messenger_connect(mca_mtl_velo_module.messenger, peer, address, bytes);
    free(address);
    return VELO_OK == status ? peer : NULL;
}

void *mca_mtl_velo_connect(ompi_proc_t *proc)
{
    void *endpoint = proc == ompi_proc_local() ? (void *) &mca_mtl_velo_self : connect_to(proc);
    if (NULL == endpoint) {
        char text[240];
        snprintf(text, sizeof(text),
                 "mtl velo cannot reach rank %u: all processes have to use it, and those on other nodes have to be "
                 "of this job and reachable by UCX. Otherwise: --mca pml ob1 --mca btl velo,tcp",
                 (unsigned) proc->super.proc_name.vpid);
        mca_common_velo_give_up_process(text);
    }
    proc->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_MTL] = endpoint;
    return endpoint;
}

/* Open MPI may still have the process, and a request that names it. */
void mca_mtl_velo_gone(uint32_t place, uint64_t process_name)
{
    (void) place;
    if (NULL == mca_mtl_velo_module.engine) {
        return; /* finalized; the BTL goes on */
    }
    const ompi_process_name_t name = {.jobid = (uint32_t) (process_name >> 32), .vpid = (uint32_t) process_name};
    ompi_proc_t *proc = ompi_proc_find(&name);
    if (NULL != proc && NULL != proc->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_MTL]) {
        proc->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_MTL] = velo_peer_nobody(mca_mtl_velo_module.engine);
    }
}

int mca_mtl_velo_add_procs(mca_mtl_base_module_t *mtl, size_t count, ompi_proc_t **procs)
{
    (void) mtl;
    static bool said;
    mca_common_velo_say_in_use("mtl", &said);
    for (size_t i = 0; i < count; ++i) {
        (void) mca_mtl_velo_connect(procs[i]);
    }
    return OMPI_SUCCESS;
}

int mca_mtl_velo_del_procs(mca_mtl_base_module_t *mtl, size_t count, ompi_proc_t **procs)
{
    (void) mtl;
    for (size_t i = 0; i < count; ++i) {
        procs[i]->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_MTL] = NULL;
    }
    return OMPI_SUCCESS;
}
