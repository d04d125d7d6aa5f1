/* The BTL component "velo": thin glue between Open MPI's BTL interface and the engine behind api/velo.h. It registers
 * parameters, fills the module and translates types; it takes no decision about packets, credits or transfers. What it
 * shares with the MTL is in opal/mca/common/velo.
 * One file per concern: parameters, component, module (memory, dump), endpoint, send, rdma, atomics. */
#ifndef MCA_BTL_VELO_H
#define MCA_BTL_VELO_H

#include "btl_velo_compat.h"

#include "opal/class/opal_free_list.h"
#include "opal/mca/btl/base/base.h"
#include "opal/mca/common/velo/common_velo.h"
#include "opal/util/proc.h"

#include "btl_velo_places.h"

BEGIN_C_DECLS

enum { MCA_BTL_VELO_DESCRIPTOR_SIZES = 4 };

typedef struct mca_btl_velo_module_t {
    mca_btl_base_module_t super;
    velo_engine *engine;
    bool threads; /* several call it */
    mca_btl_base_module_error_cb_fn_t error_callback;
    /* Descriptors with room for a control header or a small message, an eager message, a fragment, an eager message to
     * another node. */
    opal_free_list_t descriptors[MCA_BTL_VELO_DESCRIPTOR_SIZES];
    opal_free_list_t operations; /* RMA operations under way */
    struct mca_btl_base_endpoint_t *endpoints; /* all that were ever handed out, newest first */
    mca_btl_velo_places_t places[2];           /* those in use, of this module and of mca_btl_velo_network */
} mca_btl_velo_module_t;

/* Lives as long as the module: r2 keeps copies of the pointer and may name it again after del_procs. */
struct mca_btl_base_endpoint_t {
    velo_peer *peer; /* NULL until something is sent to it, and for this process */
    struct mca_btl_base_endpoint_t *next;
    mca_btl_base_module_t *btl; /* that ob1 knows it by */
    uint32_t place; /* MCA_BTL_VELO_NOWHERE: the process is gone */
    /* the registration whose data store_deposit stages after the next message to this peer; NULL: none */
    mca_btl_base_registration_handle_t *_Atomic unstaged;
    const opal_proc_t *proc;
    uint32_t refused; /* sends since a queued message has left for this peer; not counted with threads */
};

#define MCA_BTL_VELO_NOWHERE (UINT32_MAX - 1)

/* A BTL descriptor and the engine's message in one: segment 0 is the item's own buffer, segment 1, if there is one,
 * the user's memory. */
typedef struct mca_btl_velo_descriptor_t {
    mca_btl_base_descriptor_t super;
    mca_btl_base_segment_t segments[2];
    velo_send send;
    struct mca_btl_base_endpoint_t *endpoint;
    opal_free_list_t *list;
    size_t capacity;
} mca_btl_velo_descriptor_t;

OBJ_CLASS_DECLARATION(mca_btl_velo_descriptor_t);

OPAL_DECLSPEC extern mca_btl_base_component_t mca_btl_velo_component;
extern mca_btl_velo_module_t mca_btl_velo_module;
/* The same engine for peers on other nodes, where other limits are best: ob1 has them by module. Offered only in a job on
 * several nodes. It reaches every process, this one too: osc/rdma wants one module for all. Messages on this node go by the
 * other one, which is above it in exclusivity. */
extern mca_btl_base_module_t mca_btl_velo_network;

static inline bool mca_btl_velo_has_network(void)
{
    return NULL != mca_btl_velo_network.btl_component;
}

/* Whether the endpoint is that of this process. */
static inline bool mca_btl_velo_is_own(const struct mca_btl_base_endpoint_t *endpoint)
{
    return OPAL_UNLIKELY(NULL == endpoint->peer) && MCA_BTL_VELO_OWN_PLACE == endpoint->place;
}

/* What is for this process, or of it, stays without an answer once it has died, or another process has told Open MPI that it
 * has: that ends the requests itself, and takes what a BTL says of them later for an error that ends the job ("Send error after
 * request freed" of 6.0, pml_ob1_sendreq.h). */
static inline bool mca_btl_velo_is_left_open(const struct mca_btl_base_endpoint_t *endpoint)
{
    return OPAL_UNLIKELY(mca_common_velo_is_fault_tolerant()) &&
           ((NULL != endpoint->peer && velo_peer_has_died(endpoint->peer)) || mca_common_velo_counts_as_failed(endpoint->proc));
}

/* Called before sending: creates the peer. */
static inline velo_peer *mca_btl_velo_peer(struct mca_btl_base_endpoint_t *endpoint)
{
    if (OPAL_UNLIKELY(NULL == endpoint->peer)) {
        endpoint->peer = velo_peer_at(mca_btl_velo_module.engine, endpoint->place);
    }
    return endpoint->peer;
}

/* An eager send is refused while more than this waits for the same peer: ob1 then keeps it in the user's buffer, so
 * that a receiver that does not drain its mailbox stops the sender instead of filling its memory. What waits here
 * completes by callback, which is when ob1 tries again; control fragments are never refused. */
#define MCA_BTL_VELO_QUEUE_LIMIT ((size_t) 64 * 1024)

/* parameters */
int mca_btl_velo_register(void);

/* component */
int mca_btl_velo_finalize(mca_btl_base_module_t *btl);

/* module */
int mca_btl_velo_module_prepare(mca_btl_velo_module_t *module);
/* Makes mca_btl_velo_network. The engine is open. */
void mca_btl_velo_module_prepare_network(void);
void mca_btl_velo_module_clean(mca_btl_velo_module_t *module);
mca_btl_base_descriptor_t *mca_btl_velo_alloc(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                                              uint8_t order, size_t size, uint32_t flags);
int mca_btl_velo_free(mca_btl_base_module_t *btl, mca_btl_base_descriptor_t *descriptor);
mca_btl_base_descriptor_t *mca_btl_velo_prepare_src(mca_btl_base_module_t *btl,
                                                    struct mca_btl_base_endpoint_t *endpoint,
                                                    opal_convertor_t *convertor, uint8_t order, size_t reserve,
                                                    size_t *size, uint32_t flags);
void mca_btl_velo_dump(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint, int verbose);

/* endpoint */
int mca_btl_velo_add_procs(mca_btl_base_module_t *btl, size_t count, opal_proc_t **procs,
                           struct mca_btl_base_endpoint_t **endpoints, opal_bitmap_t *reachable);
int mca_btl_velo_del_procs(mca_btl_base_module_t *btl, size_t count, opal_proc_t **procs,
                           struct mca_btl_base_endpoint_t **endpoints);
/* The module's endpoint of the peer at this index; NULL: add_procs has not made one. */
struct mca_btl_base_endpoint_t *mca_btl_velo_endpoint_of(const mca_btl_base_module_t *btl, uint32_t place);
/* velo_config.gone: sends to the endpoint, which r2 may still use, go to the null peer from now on. */
void mca_btl_velo_gone(uint32_t place, uint64_t process_name);
void mca_btl_velo_free_endpoints(mca_btl_velo_module_t *module);

/* send */
int mca_btl_velo_send(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                      mca_btl_base_descriptor_t *descriptor, mca_btl_base_tag_t tag);
int mca_btl_velo_sendi(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                       opal_convertor_t *convertor, void *header, size_t header_size, size_t payload_size,
                       uint8_t order, uint32_t flags, mca_btl_base_tag_t tag, mca_btl_base_descriptor_t **descriptor);

/* rdma */
mca_btl_base_registration_handle_t *mca_btl_velo_register_mem(mca_btl_base_module_t *btl,
                                                              struct mca_btl_base_endpoint_t *endpoint, void *base,
                                                              size_t size, uint32_t flags);
int mca_btl_velo_deregister_mem(mca_btl_base_module_t *btl, mca_btl_base_registration_handle_t *handle);
enum { MCA_BTL_VELO_HANDLE_BYTES = 8 };
/* Stages the data of the last registration. Called after btl_send has sent the message that announces it. */
void mca_btl_velo_store_deposit(struct mca_btl_base_endpoint_t *endpoint);
int mca_btl_velo_get(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint, void *local_address,
                     uint64_t remote_address, mca_btl_base_registration_handle_t *local_handle,
                     mca_btl_base_registration_handle_t *remote_handle, size_t size, int flags, int order,
                     mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext, void *cbdata);
int mca_btl_velo_put(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint, void *local_address,
                     uint64_t remote_address, mca_btl_base_registration_handle_t *local_handle,
                     mca_btl_base_registration_handle_t *remote_handle, size_t size, int flags, int order,
                     mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext, void *cbdata);

/* State of an operation that the engine does not keep. */
typedef struct mca_btl_velo_operation_t {
    opal_free_list_item_t super;
    struct mca_btl_base_endpoint_t *endpoint;
    void *local_address;
    unsigned result_width; /* bytes of an atomic's old value to store at local_address; 0: none */
    mca_btl_base_rdma_completion_fn_t cbfunc;
    void *cbcontext;
    void *cbdata;
} mca_btl_velo_operation_t;

OBJ_CLASS_DECLARATION(mca_btl_velo_operation_t);

mca_btl_velo_operation_t *mca_btl_velo_operation_new(struct mca_btl_base_endpoint_t *endpoint, void *local_address,
                                                     mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext,
                                                     void *cbdata);
/* The old value of an atomic; a width of 0: nobody wants it. */
void mca_btl_velo_store_result(void *to, unsigned width, uint64_t result);
/* velo_rma_done_fn: reports to the upper layer and frees the operation. */
void mca_btl_velo_operation_done(void *argument, velo_status status, uint64_t result);
/* The BTL return code of an operation that was started with `status`; frees it if no callback will come. */
int mca_btl_velo_operation_started(mca_btl_velo_operation_t *operation, velo_status status);

/* atomics */
int mca_btl_velo_atomic_op(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                           uint64_t remote_address, mca_btl_base_registration_handle_t *remote_handle,
                           mca_btl_base_atomic_op_t op, uint64_t operand, int flags, int order,
                           mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext, void *cbdata);
int mca_btl_velo_atomic_fop(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint, void *local_address,
                            uint64_t remote_address, mca_btl_base_registration_handle_t *local_handle,
                            mca_btl_base_registration_handle_t *remote_handle, mca_btl_base_atomic_op_t op,
                            uint64_t operand, int flags, int order, mca_btl_base_rdma_completion_fn_t cbfunc,
                            void *cbcontext, void *cbdata);
int mca_btl_velo_atomic_cswap(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                              void *local_address, uint64_t remote_address,
                              mca_btl_base_registration_handle_t *local_handle,
                              mca_btl_base_registration_handle_t *remote_handle, uint64_t compare, uint64_t value,
                              int flags, int order, mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext,
                              void *cbdata);

END_C_DECLS

#endif
