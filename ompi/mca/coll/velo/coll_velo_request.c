/* Requests: what Open MPI sees of calls that are not waited for. */
#include <string.h>

#include "coll_velo.h"

int mca_coll_velo_free(ompi_request_t **request)
{
    if (!REQUEST_COMPLETE(*request)) {
        return MPI_ERR_REQUEST;
    }
    OMPI_REQUEST_FINI(*request);
    opal_free_list_return(&mca_coll_velo.requests, (opal_free_list_item_t *) *request);
    *request = MPI_REQUEST_NULL;
    return OMPI_SUCCESS;
}

static void construct(mca_coll_velo_request_t *request)
{
    request->super.super.req_type = OMPI_REQUEST_COLL;
    request->super.super.req_status._cancelled = 0;
    request->super.super.req_cancel = NULL;
}

OBJ_CLASS_INSTANCE(mca_coll_velo_request_t, ompi_coll_base_nbc_request_t, construct, NULL);

mca_coll_velo_request_t *mca_coll_velo_request_of(mca_coll_velo_module_t *module, mca_coll_velo_call_t *call, ompi_communicator_t *comm,
                                                  bool persistent)
{
    mca_coll_velo_request_t *request = (mca_coll_velo_request_t *) opal_free_list_wait(&mca_coll_velo.requests);
    if (NULL == request) {
        mca_common_velo_give_up("out of memory");
    }
    OMPI_REQUEST_INIT(&request->super.super, persistent);
    request->super.super.req_mpi_object.comm = comm;
    request->super.super.req_start = NULL;
    request->super.super.req_free = mca_coll_velo_free;
    request->module = module;
    request->send = call->send;
    request->receive = call->receive;
    request->operands = call->operands;
    request->schedule = NULL;
    request->lane = 0;
    request->starts = 0;
    memset(&request->on, 0, sizeof(request->on));
    return request;
}

void mca_coll_velo_activate(mca_coll_velo_request_t *request)
{
    request->super.super.req_complete = REQUEST_PENDING;
    request->super.super.req_state = OMPI_REQUEST_ACTIVE;
    request->super.super.req_status.MPI_ERROR = OMPI_SUCCESS;
    atomic_fetch_add(&request->module->under_way, 1);
}

void mca_coll_velo_end(mca_coll_velo_request_t *request, int error)
{
    mca_coll_velo_module_t *module = request->module;
    request->super.super.req_status.MPI_ERROR = error;
    mca_coll_velo_empty(&request->receive, MPI_SUCCESS == error);
    if (!request->super.super.req_persistent) {
        mca_coll_velo_drop(&request->send);
        mca_coll_velo_drop(&request->receive);
    }
    atomic_fetch_sub(&module->under_way, 1);
    ompi_request_complete(&request->super.super, true);
}
