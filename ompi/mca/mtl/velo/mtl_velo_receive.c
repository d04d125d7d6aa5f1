/* MTL verbs irecv, imrecv and cancel. */
#include "mtl_velo.h"

#include "ompi/message/message.h"

static mca_mtl_velo_request_t *request_of(velo_message_receive *receive)
{
    return (mca_mtl_velo_request_t *) ((char *) receive - offsetof(mca_mtl_velo_request_t, receive));
}

static void unpack(velo_message_receive *receive, const void *data, size_t bytes)
{
    struct iovec iov = {.iov_base = (void *) data, .iov_len = bytes};
    uint32_t iov_count = 1;
    (void) opal_convertor_unpack(request_of(receive)->convertor, &iov, &iov_count, &bytes);
}

static void receive_done(velo_message_receive *receive, velo_status status)
{
    mca_mtl_velo_request_t *request = request_of(receive);
    ompi_status_public_t *result = &request->super.ompi_req->req_status;
    const bool truncated = receive->bytes > receive->capacity;
    result->MPI_SOURCE = receive->matched.source;
    result->MPI_TAG = receive->matched.tag;
    result->_ucount = truncated ? receive->capacity : receive->bytes;
    result->MPI_ERROR = VELO_OK != status ? MPI_ERR_OTHER : truncated ? MPI_ERR_TRUNCATE : MPI_SUCCESS;
    request->super.completion_callback(&request->super);
}

static inline void prepare(mca_mtl_velo_request_t *request, opal_convertor_t *convertor)
{
    velo_message_receive *receive = &request->receive;
    request->receives = true;
    request->convertor = convertor;
    receive->done = receive_done;
    receive->buffer = NULL;
    receive->unpack = NULL;
    opal_convertor_get_packed_size(convertor, &receive->capacity);
    if (0 == receive->capacity) {
        return;
    }
    if (opal_convertor_need_buffers(convertor)) {
        size_t start = 0;
        opal_convertor_set_position(convertor, &start);
        receive->unpack = unpack;
    } else {
        opal_convertor_get_current_pointer(convertor, &receive->buffer);
    }
}

int mca_mtl_velo_irecv(mca_mtl_base_module_t *mtl, ompi_communicator_t *comm, int source, int tag,
                       opal_convertor_t *convertor, mca_mtl_request_t *base)
{
    (void) mtl;
    mca_mtl_velo_request_t *request = (mca_mtl_velo_request_t *) base;
    prepare(request, convertor);
    const velo_key pattern = mca_mtl_velo_pattern(comm, source, tag);
    velo_status status = velo_message_receive_start(mca_mtl_velo_module.messenger, pattern.context, pattern.source,
                                                    pattern.tag, &request->receive);
    return VELO_OK == status ? OMPI_SUCCESS : OMPI_ERROR;
}

int mca_mtl_velo_imrecv(mca_mtl_base_module_t *mtl, opal_convertor_t *convertor, struct ompi_message_t **message,
                        mca_mtl_request_t *base)
{
    (void) mtl;
    mca_mtl_velo_request_t *request = (mca_mtl_velo_request_t *) base;
    velo_message *taken = (velo_message *) (*message)->req_ptr;
    ompi_message_return(*message);
    *message = MPI_MESSAGE_NULL;
    prepare(request, convertor);
    velo_status status = velo_message_receive_taken(mca_mtl_velo_module.messenger, taken, &request->receive);
    return VELO_OK == status ? OMPI_SUCCESS : OMPI_ERROR;
}

/* Sends are not cancelled: they may have matched, and MPI lets the attempt fail. */
int mca_mtl_velo_cancel(mca_mtl_base_module_t *mtl, mca_mtl_request_t *base, int flag)
{
    (void) mtl, (void) flag;
    mca_mtl_velo_request_t *request = (mca_mtl_velo_request_t *) base;
    if (request->receives && velo_message_cancel(mca_mtl_velo_module.messenger, &request->receive)) {
        base->ompi_req->req_status._cancelled = true;
        base->completion_callback(base);
    }
    return OMPI_SUCCESS;
}
