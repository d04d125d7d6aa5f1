/* MTL verbs send and isend. Data without gaps leaves from the user's buffer. */
#include "mtl_velo.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "opal/runtime/opal_progress.h"

typedef struct data_t {
    void *at;
    size_t bytes;
    void *packed; /* NULL, or `at` if it is a copy */
} data_t;

static int pack(opal_convertor_t *convertor, data_t *data)
{
    size_t start = 0;
    uint32_t iov_count = 1;
    data->at = data->packed = malloc(data->bytes);
    if (NULL == data->packed) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    struct iovec iov = {.iov_base = data->packed, .iov_len = data->bytes};
    opal_convertor_set_position(convertor, &start);
    return opal_convertor_pack(convertor, &iov, &iov_count, &data->bytes) < 0 ? OMPI_ERROR : OMPI_SUCCESS;
}

/* Whether the data is without gaps, and where. */
static inline bool in_place(opal_convertor_t *convertor, data_t *data)
{
    data->packed = NULL;
    /* Contiguous data for which cm has not prepared a convertor, so that this flag is not set. */
    if (!(convertor->flags & CONVERTOR_SEND)) {
        data->at = convertor->pBaseBuf;
        data->bytes = convertor->local_size;
        return true;
    }
    data->at = NULL;
    opal_convertor_get_packed_size(convertor, &data->bytes);
    if (0 == data->bytes) {
        return true;
    }
    if (opal_convertor_need_buffers(convertor)) {
        return false;
    }
    opal_convertor_get_current_pointer(convertor, &data->at);
    return true;
}

static inline int find_data(opal_convertor_t *convertor, data_t *data)
{
    return in_place(convertor, data) ? OMPI_SUCCESS : pack(convertor, data);
}

static inline velo_send_mode mode_of(mca_pml_base_send_mode_t mode)
{
    return MCA_PML_BASE_SEND_SYNCHRONOUS == mode ? VELO_SEND_SYNCHRONOUS
           : MCA_PML_BASE_SEND_BUFFERED == mode  ? VELO_SEND_BUFFERED
                                                 : VELO_SEND_STANDARD;
}

/* Fast path of small messages; false: no effect. */
static inline bool sent_now(ompi_communicator_t *comm, int dest, int tag, opal_convertor_t *convertor,
                            mca_pml_base_send_mode_t mode)
{
    data_t data;
    if (MCA_PML_BASE_SEND_SYNCHRONOUS == mode || !in_place(convertor, &data)) {
        return false;
    }
    velo_peer *peer = mca_mtl_velo_peer(comm, dest);
    return NULL != peer && velo_message_now(mca_mtl_velo_module.messenger, peer, MCA_MTL_VELO_CONTEXT(comm),
                                            ompi_comm_rank(comm), tag, data.at, data.bytes);
}

static inline velo_status start(ompi_communicator_t *comm, int dest, int tag, const data_t *data,
                                mca_pml_base_send_mode_t mode, velo_message_send *send)
{
    return velo_message_start(mca_mtl_velo_module.messenger, mca_mtl_velo_peer(comm, dest), MCA_MTL_VELO_CONTEXT(comm),
                              ompi_comm_rank(comm), tag, data->at, data->bytes, mode_of(mode), send);
}

typedef struct blocking_t {
    velo_message_send send;
    velo_status status;
    atomic_bool done;
} blocking_t;

static void blocking_done(velo_message_send *send, velo_status status)
{
    blocking_t *blocking = (blocking_t *) send;
    blocking->status = status;
    atomic_store_explicit(&blocking->done, true, memory_order_release);
}

__attribute__((noinline)) static int send_and_wait(ompi_communicator_t *comm, int dest, int tag,
                                                   opal_convertor_t *convertor, mca_pml_base_send_mode_t mode)
{
    data_t data;
    int rc = find_data(convertor, &data);
    if (OPAL_UNLIKELY(OMPI_SUCCESS != rc)) {
        free(data.packed);
        return rc;
    }
    blocking_t blocking;
    blocking.send.done = blocking_done;
    blocking.status = VELO_QUEUED;
    atomic_init(&blocking.done, false);
    velo_status status = start(comm, dest, tag, &data, mode, &blocking.send);
    if (VELO_QUEUED == status) {
        while (!atomic_load_explicit(&blocking.done, memory_order_acquire)) {
            opal_progress();
        }
        status = blocking.status;
    }
    if (NULL != data.packed) {
        free(data.packed);
    }
    return VELO_OK == status ? OMPI_SUCCESS : OMPI_ERROR;
}

int mca_mtl_velo_send(mca_mtl_base_module_t *mtl, ompi_communicator_t *comm, int dest, int tag,
                      opal_convertor_t *convertor, mca_pml_base_send_mode_t mode)
{
    (void) mtl;
    if (OPAL_LIKELY(sent_now(comm, dest, tag, convertor, mode))) {
        return OMPI_SUCCESS;
    }
    return send_and_wait(comm, dest, tag, convertor, mode);
}

static void complete(mca_mtl_velo_request_t *request, velo_status status)
{
    free(request->packed);
    request->super.ompi_req->req_status.MPI_ERROR = VELO_OK == status ? OMPI_SUCCESS : OMPI_ERROR;
    request->super.completion_callback(&request->super);
}

static void send_done(velo_message_send *send, velo_status status)
{
    complete((mca_mtl_velo_request_t *) ((char *) send - offsetof(mca_mtl_velo_request_t, send)), status);
}

int mca_mtl_velo_isend(mca_mtl_base_module_t *mtl, ompi_communicator_t *comm, int dest, int tag,
                       opal_convertor_t *convertor, mca_pml_base_send_mode_t mode, bool blocking,
                       mca_mtl_request_t *base)
{
    (void) mtl, (void) blocking;
    mca_mtl_velo_request_t *request = (mca_mtl_velo_request_t *) base;
    request->receives = false;
    request->packed = NULL;
    if (OPAL_LIKELY(sent_now(comm, dest, tag, convertor, mode))) {
        complete(request, VELO_OK);
        return OMPI_SUCCESS;
    }
    data_t data;
    int rc = find_data(convertor, &data);
    if (OPAL_UNLIKELY(OMPI_SUCCESS != rc)) {
        free(data.packed);
        return rc;
    }
    request->packed = data.packed;
    request->send.done = send_done;
    velo_status status = start(comm, dest, tag, &data, mode, &request->send);
    if (VELO_OK == status) {
        complete(request, status);
    } else if (VELO_QUEUED != status) {
        free(data.packed);
        return OMPI_ERROR;
    }
    return OMPI_SUCCESS;
}
