/* MTL verbs iprobe and improbe. If nothing matches, they make progress and look once more. */
#include "mtl_velo.h"

#include "ompi/message/message.h"
#include "opal/runtime/opal_progress.h"

/* Not MPI_ERROR: it belongs to calls that complete several requests. */
static void fill(ompi_status_public_t *status, const velo_key *key, size_t bytes)
{
    if (MPI_STATUS_IGNORE != status) {
        status->MPI_SOURCE = key->source;
        status->MPI_TAG = key->tag;
        status->_ucount = bytes;
        status->_cancelled = 0;
    }
}

int mca_mtl_velo_iprobe(mca_mtl_base_module_t *mtl, ompi_communicator_t *comm, int source, int tag, int *flag,
                        ompi_status_public_t *status)
{
    (void) mtl;
    velo_messenger *messenger = mca_mtl_velo_module.messenger;
    const velo_key pattern = mca_mtl_velo_pattern(comm, source, tag);
    velo_key key;
    size_t bytes;
    bool found = velo_message_probe(messenger, pattern, &key, &bytes);
    if (!found) {
        opal_progress();
        found = velo_message_probe(messenger, pattern, &key, &bytes);
    }
    if (found) {
        fill(status, &key, bytes);
    }
    *flag = found;
    return OMPI_SUCCESS;
}

int mca_mtl_velo_improbe(mca_mtl_base_module_t *mtl, ompi_communicator_t *comm, int source, int tag, int *matched,
                         struct ompi_message_t **message, ompi_status_public_t *status)
{
    (void) mtl;
    velo_messenger *messenger = mca_mtl_velo_module.messenger;
    const velo_key pattern = mca_mtl_velo_pattern(comm, source, tag);
    velo_key key;
    size_t bytes;
    ompi_message_t *handle = ompi_message_alloc();
    if (NULL == handle) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    velo_message *taken = velo_message_take(messenger, pattern, &key, &bytes);
    if (NULL == taken) {
        opal_progress();
        taken = velo_message_take(messenger, pattern, &key, &bytes);
    }
    *matched = NULL != taken;
    if (NULL == taken) {
        ompi_message_return(handle);
        *message = MPI_MESSAGE_NULL;
        return OMPI_SUCCESS;
    }
    handle->comm = comm;
    handle->req_ptr = taken;
    handle->peer = key.source;
    handle->count = bytes;
    *message = handle;
    fill(status, &key, bytes);
    return OMPI_SUCCESS;
}
