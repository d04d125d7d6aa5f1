/* The MTL component "velo": thin glue between Open MPI's MTL interface, which pml cm calls, and the engine's messages
 * behind api/velo_messages.h. The engine itself, its parameters and the way to a peer are shared with the BTL: opal/mca/common/velo.
 * One file per concern: component, module, peers, send, receive, probe, pvars. */
#ifndef MCA_MTL_VELO_H
#define MCA_MTL_VELO_H

#include "mtl_velo_compat.h"

#include "ompi/communicator/communicator.h"
#include "ompi/proc/proc.h"
#include "opal/datatype/opal_convertor.h"
#include "opal/mca/common/velo/common_velo.h"

#include "api/velo_messages.h"

BEGIN_C_DECLS

typedef struct mca_mtl_velo_component_t {
    mca_mtl_base_component_t super;
    velo_messenger_config config; /* the parameters */
} mca_mtl_velo_component_t;

typedef struct mca_mtl_velo_module_t {
    mca_mtl_base_module_t super;
    velo_engine *engine;
    velo_messenger *messenger;
} mca_mtl_velo_module_t;

/* In pml cm's request, behind what belongs to cm. */
typedef struct mca_mtl_velo_request_t {
    mca_mtl_request_t super;
    union {
        velo_message_send send;
        velo_message_receive receive;
    };
    bool receives;
    void *packed;                /* of a send of data with gaps; ours */
    opal_convertor_t *convertor; /* of a receive */
} mca_mtl_velo_request_t;

OMPI_DECLSPEC extern mca_mtl_velo_component_t mca_mtl_velo_component;
extern mca_mtl_velo_module_t mca_mtl_velo_module;

/* component */
/* Progress is not called any more. */
void mca_mtl_velo_stop(void);
extern mca_common_velo_user_t mca_mtl_velo_user;

/* pvars */
int mca_mtl_velo_register_pvars(void);

/* peers */
int mca_mtl_velo_add_procs(mca_mtl_base_module_t *mtl, size_t count, ompi_proc_t **procs);
int mca_mtl_velo_del_procs(mca_mtl_base_module_t *mtl, size_t count, ompi_proc_t **procs);
int mca_mtl_velo_publish(const velo_messenger *messenger);

/* The process of another job has ended. */
void mca_mtl_velo_gone(uint32_t place, uint64_t process_name);

/* Stands for this process among the endpoints. */
extern char mca_mtl_velo_self;
/* Connects, or gives up. */
void *mca_mtl_velo_connect(ompi_proc_t *proc);

/* NULL: this process itself. */
static inline velo_peer *mca_mtl_velo_peer(ompi_communicator_t *comm, int rank)
{
    ompi_proc_t *proc = ompi_comm_peer_lookup(comm, rank);
    void *endpoint = proc->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_MTL];
    if (OPAL_UNLIKELY(NULL == endpoint)) {
        endpoint = mca_mtl_velo_connect(proc);
    }
    return endpoint == &mca_mtl_velo_self ? NULL : (velo_peer *) endpoint;
}

/* What a receive or a probe asks for. */
static inline velo_key mca_mtl_velo_pattern(ompi_communicator_t *comm, int source, int tag)
{
    _Static_assert(MPI_ANY_SOURCE == VELO_ANY_SOURCE, "the same value");
    return (velo_key){MCA_MTL_VELO_CONTEXT(comm), source, MPI_ANY_TAG == tag ? VELO_ANY_TAG : tag};
}

/* send */
int mca_mtl_velo_send(mca_mtl_base_module_t *mtl, ompi_communicator_t *comm, int dest, int tag,
                      opal_convertor_t *convertor, mca_pml_base_send_mode_t mode);
int mca_mtl_velo_isend(mca_mtl_base_module_t *mtl, ompi_communicator_t *comm, int dest, int tag,
                       opal_convertor_t *convertor, mca_pml_base_send_mode_t mode, bool blocking,
                       mca_mtl_request_t *request);

/* receive */
int mca_mtl_velo_irecv(mca_mtl_base_module_t *mtl, ompi_communicator_t *comm, int source, int tag,
                       opal_convertor_t *convertor, mca_mtl_request_t *request);
int mca_mtl_velo_imrecv(mca_mtl_base_module_t *mtl, opal_convertor_t *convertor, struct ompi_message_t **message,
                        mca_mtl_request_t *request);
int mca_mtl_velo_cancel(mca_mtl_base_module_t *mtl, mca_mtl_request_t *request, int flag);

/* probe */
int mca_mtl_velo_iprobe(mca_mtl_base_module_t *mtl, ompi_communicator_t *comm, int source, int tag, int *flag,
                        ompi_status_public_t *status);
int mca_mtl_velo_improbe(mca_mtl_base_module_t *mtl, ompi_communicator_t *comm, int source, int tag, int *matched,
                         struct ompi_message_t **message, ompi_status_public_t *status);

END_C_DECLS

#endif
