/* The BTL component "velo": thin glue between Open MPI's BTL interface and the engine behind api/velo.h. It registers
 * parameters, fills the module and translates types; it takes no decision about packets, credits or transfers.
 * One file per concern: parameters, pvars, component, module (memory, dump, finalize), endpoint, send, rdma, atomics. */
#ifndef MCA_BTL_VELO_H
#define MCA_BTL_VELO_H

#include "btl_velo_compat.h"

#include "opal/class/opal_free_list.h"
#include "opal/mca/btl/base/base.h"
#include "opal/util/proc.h"

#include "api/velo.h"
#include "btl_velo_places.h"

BEGIN_C_DECLS

typedef struct mca_btl_velo_component_t {
    mca_btl_base_component_t super;
    velo_config config; /* the parameters; those with enumerators: mca_btl_velo_config */
    bool closed; /* the engine was open and is not any more */
} mca_btl_velo_component_t;

enum { MCA_BTL_VELO_DESCRIPTOR_SIZES = 4 };

typedef struct mca_btl_velo_module_t {
    mca_btl_base_module_t super;
    velo_engine *engine;
    mca_btl_base_module_error_cb_fn_t error_callback;
    /* Descriptors with room for a control header or a small message, an eager message, a fragment, an eager message to
     * another node. */
    opal_free_list_t descriptors[MCA_BTL_VELO_DESCRIPTOR_SIZES];
    opal_free_list_t operations; /* RMA operations under way */
    struct mca_btl_base_endpoint_t *endpoints; /* all that were ever handed out, newest first */
    mca_btl_velo_places_t places[2];           /* those in use, of this module and of mca_btl_velo_network */
    void (*gone)(uint64_t process_name); /* the MTL's, which has peers of its own; NULL without one */
} mca_btl_velo_module_t;

/* Lives as long as the module: r2 keeps copies of the pointer and may name it again after del_procs. */
struct mca_btl_base_endpoint_t {
    velo_peer *peer; /* NULL until something is sent to it, and for this process */
    struct mca_btl_base_endpoint_t *next;
    mca_btl_base_module_t *btl; /* that ob1 knows it by */
    uint32_t place; /* MCA_BTL_VELO_NOWHERE: the process is gone */
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

OPAL_DECLSPEC extern mca_btl_velo_component_t mca_btl_velo_component;
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

/* For whatever sends to another process: the peer exists from now on. */
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

/* What is sent without a rendezvous in a large job, in whose mailboxes a peer has few slots, where the user has not set
 * btl_velo_eager_limit: 4 KiB and ob1's header. */
#define MCA_BTL_VELO_EAGER_HEADER ((size_t) 64)
#define MCA_BTL_VELO_SMALL_EAGER_LIMIT ((size_t) 4096 + MCA_BTL_VELO_EAGER_HEADER)
#define MCA_BTL_VELO_SMALL_EAGER_SLOTS 512

#define MCA_BTL_VELO_SLOT ((size_t) 64) /* bytes */
/* To other nodes a rendezvous costs two more journeys than a copy: up to 128 KiB travel at once, as far as half of a peer's
 * slots hold them. */
#define MCA_BTL_VELO_NETWORK_EAGER_LIMIT ((size_t) 131072 + MCA_BTL_VELO_EAGER_HEADER)

/* What a process publishes its address under. Without a version: peers of another one are refused with a message. */
#define MCA_BTL_VELO_ADDRESS_KEY "btl.velo.address"

/* parameters */
/* True if nobody has set the parameter. */
bool mca_btl_velo_is_default(const char *name);
int mca_btl_velo_register(void);
void mca_btl_velo_deregister(void);
/* True if the values are there. */
bool mca_btl_velo_registered(void);
/* Registers the rows of the table that have this owner, with `config`, at its defaults, as their storage. */
int mca_btl_velo_register_rows(const mca_base_component_t *component, velo_parameter_owner owner, void *config);
/* The parameters as they are set, everything else 0. */
velo_config mca_btl_velo_config(void);
/* Whether processes on other nodes are to be served. */
bool mca_btl_velo_spans_nodes(void);
/* What is wrong with the values that are not the engine's to check, once all are final; NULL if nothing is. */
const char *mca_btl_velo_wrong_parameter(mca_btl_base_module_t *module);

/* pvars */
int mca_btl_velo_register_pvars(void);

/* component */
/* True if the user named velo in the list of this framework's components: it never takes over by itself. */
bool mca_btl_velo_is_named(const mca_base_framework_t *framework);
/* Processes of this job; 0 if the process manager does not tell. */
uint32_t mca_btl_velo_job_size(void);
/* The engine serves the BTL and the MTL in the same process: whoever needs it first opens it, whoever leaves last closes
 * it. Gives up if it cannot be had. */
velo_engine *mca_btl_velo_acquire_engine(bool threads);
void mca_btl_velo_release_engine(void);
/* While an engine is open, Open MPI's waits inside its process manager make progress, where a component can see to that. */
void mca_btl_velo_waits_progress(void);
void mca_btl_velo_waits_end(void);
/* Payload that is sent without a rendezvous unless a parameter says otherwise. The engine is open. */
size_t mca_btl_velo_eager_payload(void);
/* OPAL_SUCCESS if this is the Open MPI that the plugin was built for. */
int mca_btl_velo_check_version(void);
void mca_btl_velo_log(void *context, int level, const char *text);
void mca_btl_velo_fatal(void *context, velo_status status, const char *text);
/* Ends the job with a message: velo was asked for by name and cannot be had as asked. Falling back to another
 * transport, or letting Open MPI report unreachable processes, would hide the reason. */
void mca_btl_velo_give_up(const char *text) __opal_attribute_noreturn__;

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
int mca_btl_velo_finalize(mca_btl_base_module_t *btl);

/* endpoint */
/* The peer, the same one each time; NULL if it is not within reach. */
velo_peer *mca_btl_velo_connect(const opal_proc_t *proc);
int mca_btl_velo_add_procs(mca_btl_base_module_t *btl, size_t count, opal_proc_t **procs,
                           struct mca_btl_base_endpoint_t **endpoints, opal_bitmap_t *reachable);
int mca_btl_velo_del_procs(mca_btl_base_module_t *btl, size_t count, opal_proc_t **procs,
                           struct mca_btl_base_endpoint_t **endpoints);
/* The module's endpoint of the peer in that place, if add_procs has made one, or NULL. */
struct mca_btl_base_endpoint_t *mca_btl_velo_endpoint_of(const mca_btl_base_module_t *btl, uint32_t place);
/* velo_config.gone: the endpoint, which r2 may still name, leads nowhere from now on. */
void mca_btl_velo_gone(void *context, uint32_t place, uint64_t process_name);
void mca_btl_velo_free_endpoints(mca_btl_velo_module_t *module);

/* send */
int mca_btl_velo_send(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                      mca_btl_base_descriptor_t *descriptor, mca_btl_base_tag_t tag);
int mca_btl_velo_sendi(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                       opal_convertor_t *convertor, void *header, size_t header_size, size_t payload_size,
                       uint8_t order, uint32_t flags, mca_btl_base_tag_t tag, mca_btl_base_descriptor_t **descriptor);

/* rdma */
int mca_btl_velo_get(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint, void *local_address,
                     uint64_t remote_address, mca_btl_base_registration_handle_t *local_handle,
                     mca_btl_base_registration_handle_t *remote_handle, size_t size, int flags, int order,
                     mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext, void *cbdata);
int mca_btl_velo_put(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint, void *local_address,
                     uint64_t remote_address, mca_btl_base_registration_handle_t *local_handle,
                     mca_btl_base_registration_handle_t *remote_handle, size_t size, int flags, int order,
                     mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext, void *cbdata);

/* What the engine does not know about an operation that it carries out. */
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
