/* The coll component "velo": thin glue between MPI's collective operations and schedules behind
 * api/velo_goal.h, in communicators whose processes are one group of one job. One file per concern,
 * none of which calls one that calls it: component, module, calls (the operations), run, board, multicast, request, peers, types
 * (reductions), buffers (data types), neighbours, state. */
#ifndef MCA_COLL_VELO_H
#define MCA_COLL_VELO_H

#include <stdatomic.h>

#include "api/velo_board.h"
#include "api/velo_goal.h"
#include "coll_velo_compat.h"
#include "ompi/datatype/ompi_datatype.h"
#include "ompi/group/group.h"
#include "ompi/op/op.h"
#include "opal/mca/common/velo/common_velo.h"

BEGIN_C_DECLS

OMPI_DECLSPEC extern mca_coll_base_component_t mca_coll_velo_component;

/* While the component is open. */
typedef struct mca_coll_velo_t {
    velo_coll_config config;           /* the parameters; since they were registered */
    velo_performer *performer;         /* NULL: not in use */
    const mca_base_component_t *names; /* of the component */
    opal_free_list_t requests;
} mca_coll_velo_t;
extern mca_coll_velo_t mca_coll_velo;

/* Blocking calls and requests count their runs apart: Open MPI starts requests of its own within progress
 * (MPI_Comm_idup), before a blocking call at some members and after it at others. */
typedef enum mca_coll_velo_sequence_t {
    MCA_COLL_VELO_WAITING,
    MCA_COLL_VELO_REQUESTS,
    MCA_COLL_VELO_SEQUENCES,
} mca_coll_velo_sequence_t;

/* A board of a communicator: for its blocking calls, for its requests, or for one persistent request. */
typedef struct mca_coll_velo_board_t {
    bool is_open;      /* it was asked for */
    bool has_place;    /* in the communicator's store: this one, board or not */
    velo_board *board; /* NULL: there is none */
    uint32_t place;
    uint32_t under_way; /* requests, under the lock of all */
    struct mca_coll_velo_board_t *next;
} mca_coll_velo_board_t;

/* Of a communicator. Requests that are under way keep it. */
typedef struct mca_coll_velo_module_t {
    mca_coll_base_module_t super;
    /* the functions that this module has replaced; it keeps a reference to their modules */
    mca_coll_base_comm_coll_t previous;
    bool enabled;
    uint32_t id, rank, size;
    ompi_communicator_t* comm;
    bool knows_store;
    velo_board_store *store; /* where its boards are, once that is known. NULL: it has none */
    uint64_t among;          /* its members */
    uint64_t name;           /* that no other communicator has */
    mca_coll_velo_board_t boards[MCA_COLL_VELO_SEQUENCES];
    uint32_t persistent; /* requests that have had a board each */
    velo_goal_result told; /* the last failure: Open MPI tries some operations over and over */
    ompi_group_t *members;
    velo_goal_group* groups[MCA_COLL_VELO_SEQUENCES]; /* NULL: nothing was called yet */
    atomic_int under_way;                             /* requests */
    bool nodes_are_known; /* the next two */
    uint32_t ranks_on_node; /* which lie node by node; so many at most on the last. 0: they do not, or nobody wants to know */
    bool spans_job;       /* they do, on all nodes, and the first on each leads it */
    uint32_t multicasts;  /* 0, 1 or MCA_COLL_VELO_UNKNOWN */
} mca_coll_velo_module_t;
OBJ_CLASS_DECLARATION(mca_coll_velo_module_t);

typedef struct mca_coll_velo_part_t {
    ptrdiff_t offset; /* bytes from the buffer's address on */
    size_t count;     /* 0: no matter what the rest is */
    ompi_datatype_t *type;
} mca_coll_velo_part_t;

/* A buffer of a call: one part, or one for each peer. */
typedef struct mca_coll_velo_buffer_t {
    char* user;
    uint32_t count; /* of the parts; 0: there is no buffer */
    bool is_read, is_written;
    bool is_packed, keeps_types;
    mca_coll_velo_part_t whole, *parts;   /* NULL: the whole */
    velo_goal_block whole_block, *blocks; /* of each part: where the schedule finds it */
    char* bytes;                          /* where they begin */
    char* ours;                           /* NULL, or bytes */
    size_t length;                        /* of ours */
} mca_coll_velo_buffer_t;

/* Operator and type of a reduction that MPI, or a function of the user, computes. */
typedef struct mca_coll_velo_operands_t {
    ompi_op_t *op;
    ompi_datatype_t *type;
} mca_coll_velo_operands_t;

typedef struct mca_coll_velo_call_t {
    velo_goal_request request;
    velo_board_operation on_board; /* NONE: by a schedule at all members */
    uint32_t blocks;               /* in that case: of so many bytes each */
    mca_coll_velo_buffer_t send, receive;
    mca_coll_velo_operands_t operands;
    bool may_multicast;
} mca_coll_velo_call_t;

typedef struct mca_coll_velo_request_t {
    ompi_coll_base_nbc_request_t super;
    struct mca_coll_velo_request_t* next_over; /* of those on a board that end together */
    int error;
    mca_coll_velo_module_t *module;
    mca_coll_velo_buffer_t send, receive;
    mca_coll_velo_operands_t operands;
    /* Of a persistent one: by a schedule, or over a board. */
    velo_goal_schedule *schedule;
    uint32_t lane;
    uint64_t starts;
    mca_coll_velo_board_t on;
    velo_board_operation on_board;
    velo_goal_request asked;
} mca_coll_velo_request_t;
OBJ_CLASS_DECLARATION(mca_coll_velo_request_t);

/* state: logs a failure, once if the operation goes on. Returns an MPI error code for the status of a request. */
int mca_coll_velo_report(mca_coll_velo_module_t *module, velo_goal_result result);

/* module */
mca_coll_base_module_t *mca_coll_velo_comm_query(ompi_communicator_t *comm, int *priority);

/* nodes */
#define MCA_COLL_VELO_UNKNOWN UINT32_MAX
typedef struct mca_coll_velo_nodes_t {
    uint32_t size;    /* of the job */
    uint32_t *leader; /* of the node of each of its ranks: the lowest rank there. NULL: memory has run out */
    uint32_t count;   /* of nodes */
} mca_coll_velo_nodes_t;
const mca_coll_velo_nodes_t *mca_coll_velo_nodes(void);
void mca_coll_velo_forget_nodes(void);
/* Of this node, with the number of its ranks. */
uint32_t mca_coll_velo_own_leader(uint32_t *here);
/* Sets ranks_on_node and spans_job. */
void mca_coll_velo_lie_on_nodes(mca_coll_velo_module_t *module);

/* multicast */
/* What a process publishes. */
typedef struct mca_coll_velo_place_t {
    uint8_t key[16];
    uint32_t leader;  /* of its node: the rank in the job */
    uint32_t address; /* of its interface; 0: it has none, or does not lead */
    uint32_t mtu;
    char boards[VELO_BOARD_ADDRESS]; /* 0: it has none */
} mca_coll_velo_place_t;
void mca_coll_velo_describe_multicast(mca_coll_velo_place_t* place);
void mca_coll_velo_forget_multicast(void);
/* How a broadcast goes, if by multicast. */
void mca_coll_velo_multicast(mca_coll_velo_module_t* module, velo_goal_request* request);

/* peers */
void mca_coll_velo_publish(const mca_coll_velo_place_t *place);
void mca_coll_velo_place_of(uint32_t process, mca_coll_velo_place_t* place);
velo_goal_group* mca_coll_velo_group(mca_coll_velo_module_t* module, mca_coll_velo_sequence_t sequence);

/* calls */
void mca_coll_velo_offer(mca_coll_base_module_t *module);
/* What serves the communicator is kept as the previous. */
void mca_coll_velo_take_over(mca_coll_velo_module_t* module, mca_coll_base_comm_coll_t* table);
void mca_coll_velo_give_back(mca_coll_velo_module_t* module, mca_coll_base_comm_coll_t* table);
void mca_coll_velo_drop_previous(mca_coll_velo_module_t *module);

/* neighbours: how many send to this process, and are sent to */
void mca_coll_velo_neighbours(ompi_communicator_t* comm, uint32_t* sources, uint32_t* targets);
/* Sets peer and tag of each block; MPI_PROC_NULL gets no part. */
void mca_coll_velo_address(ompi_communicator_t* comm, mca_coll_velo_buffer_t* buffer, bool to_targets);

/* buffers: first so many parts, to be filled in */
bool mca_coll_velo_divide(mca_coll_velo_buffer_t* buffer, uint32_t count);
/* Where each block will be. */
void mca_coll_velo_lay_out(mca_coll_velo_buffer_t* buffer);
/* True: the buffer is used in place (one part, no gaps), `bytes` is set, and nothing else is to be done. */
static inline bool mca_coll_velo_is_plain(mca_coll_velo_buffer_t* buffer)
{
    const uint32_t plain = OPAL_DATATYPE_FLAG_CONTIGUOUS | OPAL_DATATYPE_FLAG_NO_GAPS;
    if (NULL != buffer->parts) {
        return false;
    }
    if (0 == buffer->count) {
        return true;
    }
    if (0 == buffer->whole.count || plain != (buffer->whole.type->super.flags & plain)) {
        return false;
    }
    buffer->bytes = buffer->user + buffer->whole.type->super.true_lb;
    return true;
}
/* Before a run and after it. is_whole false: the run has failed, and what it has not written into `ours` must not
 * reach the user. */
bool mca_coll_velo_fill(mca_coll_velo_buffer_t* buffer);
void mca_coll_velo_empty(mca_coll_velo_buffer_t* buffer, bool is_whole);
/* Converts between elements laid out by their type, from `user` on, and `length` packed bytes. */
void mca_coll_velo_convert(ompi_datatype_t* type, size_t count, char* user, char* bytes, size_t length, bool pack);
/* The types that are needed for that, until the end. */
void mca_coll_velo_keep_types(mca_coll_velo_buffer_t* buffer);
void mca_coll_velo_drop(mca_coll_velo_buffer_t* buffer);

/* board: what a process publishes of its own */
void mca_coll_velo_describe_boards(mca_coll_velo_place_t *place);
void mca_coll_velo_forget_boards(void);
/* The board of a blocking call; NULL: it runs as a schedule. All members decide alike, here and below. */
velo_board *mca_coll_velo_board(mca_coll_velo_module_t *module, const mca_coll_velo_call_t *call);
/* A request; NULL: it does not go over one. */
ompi_request_t *mca_coll_velo_start_on_board(mca_coll_velo_module_t *module, mca_coll_velo_call_t *call,
                                             ompi_communicator_t *comm);
/* True: the persistent request, whose buffers are set, has a board of its own. */
bool mca_coll_velo_init_on_board(mca_coll_velo_request_t *request, const mca_coll_velo_call_t *call);
void mca_coll_velo_restart_on_board(mca_coll_velo_request_t *request);
void mca_coll_velo_close_board(mca_coll_velo_module_t *module, mca_coll_velo_board_t *board);
/* Of MPI, for what came of it. */
int mca_coll_velo_error_of_board(velo_status status);

/* types */
void mca_coll_velo_reduction(mca_coll_velo_call_t* call, ompi_op_t* op, ompi_datatype_t* type);
/* velo_goal_start.combine for mca_coll_velo_operands_t. Called in a thread that is in MPI, since functions of the
 * user are. */
void mca_coll_velo_combine(const mca_coll_velo_operands_t* operands, const void* first, const void* second, void* result,
                           size_t bytes);

/* request: of a call, whose buffers it keeps */
mca_coll_velo_request_t* mca_coll_velo_request_of(mca_coll_velo_module_t* module, mca_coll_velo_call_t* call, ompi_communicator_t* comm,
                                                  bool persistent);
void mca_coll_velo_activate(mca_coll_velo_request_t* request);
void mca_coll_velo_end(mca_coll_velo_request_t* request, int error);
/* req_free for a request without memory of its own; MPI_ERR_REQUEST while it is under way. */
int mca_coll_velo_free(ompi_request_t **request);

/* run: waited for, or as a request */
int mca_coll_velo_run(mca_coll_velo_module_t *module, mca_coll_velo_call_t *call);
int mca_coll_velo_start(mca_coll_velo_module_t *module, mca_coll_velo_call_t *call, ompi_communicator_t *comm,
                        ompi_request_t **request);
int mca_coll_velo_init(mca_coll_velo_module_t* module, mca_coll_velo_call_t* call, ompi_communicator_t* comm,
                       ompi_request_t** request);

END_C_DECLS

#endif
