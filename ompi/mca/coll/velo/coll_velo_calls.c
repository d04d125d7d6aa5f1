/* The operations of MPI, each blocking, non-blocking and persistent: what it asks of a schedule. */
#include "coll_velo.h"

#include <string.h>

/* Each operation: name, parameters, arguments, without what blocking, non-blocking or persistent form adds. */
#define FROM const void *from, mca_coll_velo_count_t from_count, ompi_datatype_t *from_type
#define FROM_EACH \
    const void *from, mca_coll_velo_counts_t from_counts, mca_coll_velo_offsets_t from_offsets, ompi_datatype_t *from_type
#define TO void *to, mca_coll_velo_count_t to_count, ompi_datatype_t *to_type
#define TO_EACH void *to, mca_coll_velo_counts_t to_counts, mca_coll_velo_offsets_t to_offsets, ompi_datatype_t *to_type
#define EACH_OF_ITS_TYPE(offsets)                                                                                             \
    const void *from, mca_coll_velo_counts_t from_counts, offsets from_offsets, ompi_datatype_t *const *from_types, void *to, \
        mca_coll_velo_counts_t to_counts, offsets to_offsets, ompi_datatype_t *const *to_types
#define GIVE_FROM from, from_count, from_type
#define GIVE_FROM_EACH from, from_counts, from_offsets, from_type
#define GIVE_TO to, to_count, to_type
#define GIVE_TO_EACH to, to_counts, to_offsets, to_type
#define GIVE_EACH_OF_ITS_TYPE from, from_counts, from_offsets, from_types, to, to_counts, to_offsets, to_types
#define BLOCK void *to, mca_coll_velo_count_t count, ompi_datatype_t *type
#define OPERANDS const void *from, BLOCK, ompi_op_t *op
#define GIVE_OPERANDS from, to, count, type, op
#define OPERANDS_EACH const void *from, void *to, mca_coll_velo_counts_t counts, ompi_datatype_t *type, ompi_op_t *op
#define COMM ompi_communicator_t *comm

#define OPERATIONS(OPERATION)                                                                                            \
    OPERATION(allgather, (FROM, TO, COMM), (GIVE_FROM, GIVE_TO, comm))                                                   \
    OPERATION(allgatherv, (FROM, TO_EACH, COMM), (GIVE_FROM, GIVE_TO_EACH, comm))                                        \
    OPERATION(allreduce, (OPERANDS, COMM), (GIVE_OPERANDS, comm))                                                        \
    OPERATION(alltoall, (FROM, TO, COMM), (GIVE_FROM, GIVE_TO, comm))                                                    \
    OPERATION(alltoallv, (FROM_EACH, TO_EACH, COMM), (GIVE_FROM_EACH, GIVE_TO_EACH, comm))                               \
    OPERATION(alltoallw, (EACH_OF_ITS_TYPE(mca_coll_velo_offsets_t), COMM), (GIVE_EACH_OF_ITS_TYPE, comm))               \
    OPERATION(barrier, (COMM), (comm))                                                                                   \
    OPERATION(bcast, (BLOCK, int root, COMM), (to, count, type, root, comm))                                             \
    OPERATION(exscan, (OPERANDS, COMM), (GIVE_OPERANDS, comm))                                                           \
    OPERATION(gather, (FROM, TO, int root, COMM), (GIVE_FROM, GIVE_TO, root, comm))                                      \
    OPERATION(gatherv, (FROM, TO_EACH, int root, COMM), (GIVE_FROM, GIVE_TO_EACH, root, comm))                           \
    OPERATION(neighbor_allgather, (FROM, TO, COMM), (GIVE_FROM, GIVE_TO, comm))                                          \
    OPERATION(neighbor_allgatherv, (FROM, TO_EACH, COMM), (GIVE_FROM, GIVE_TO_EACH, comm))                               \
    OPERATION(neighbor_alltoall, (FROM, TO, COMM), (GIVE_FROM, GIVE_TO, comm))                                           \
    OPERATION(neighbor_alltoallv, (FROM_EACH, TO_EACH, COMM), (GIVE_FROM_EACH, GIVE_TO_EACH, comm))                      \
    OPERATION(neighbor_alltoallw, (EACH_OF_ITS_TYPE(mca_coll_velo_byte_offsets_t), COMM), (GIVE_EACH_OF_ITS_TYPE, comm)) \
    OPERATION(reduce, (OPERANDS, int root, COMM), (GIVE_OPERANDS, root, comm))                                           \
    OPERATION(reduce_scatter, (OPERANDS_EACH, COMM), (from, to, counts, type, op, comm))                                 \
    OPERATION(reduce_scatter_block, (OPERANDS, COMM), (GIVE_OPERANDS, comm))                                             \
    OPERATION(scan, (OPERANDS, COMM), (GIVE_OPERANDS, comm))                                                             \
    OPERATION(scatter, (FROM, TO, int root, COMM), (GIVE_FROM, GIVE_TO, root, comm))                                     \
    OPERATION(scatterv, (FROM_EACH, TO, int root, COMM), (GIVE_FROM_EACH, GIVE_TO, root, comm))

#define LIST(...) __VA_ARGS__

static void begin(mca_coll_velo_call_t *call, const char *operation)
{
    memset(call, 0, sizeof(*call));
    call->request.operation = operation;
}
/* One that boards know: so many blocks. */
#define BEGIN_ON_BOARD(call, name, NAME, count) \
    {                                           \
        begin(call, #name);                     \
        (call)->on_board = VELO_BOARD_##NAME;   \
        (call)->blocks = (uint32_t) (count);    \
    }

/* Of a reduction, what the one who has most to do picks up. */
static int operands_of_others(ompi_communicator_t *comm)
{
    return 1 < ompi_comm_size(comm) ? ompi_comm_size(comm) - 1 : 1;
}

static size_t size_of(const ompi_datatype_t *type)
{
    size_t size;
    ompi_datatype_type_size(type, &size);
    return size;
}

/* --- buffers: what is read, and what is written */

static void set(mca_coll_velo_buffer_t *buffer, const void *user, size_t count, ompi_datatype_t *type)
{
    buffer->user = (char *) user;
    buffer->count = 1;
    buffer->whole = (mca_coll_velo_part_t){.count = count, .type = type};
}

static void divide(mca_coll_velo_buffer_t *buffer, const void *user, uint32_t count)
{
    buffer->user = (char *) user;
    if (!mca_coll_velo_divide(buffer, count)) {
        mca_common_velo_give_up("out of memory");
    }
}

static void divide_equally(mca_coll_velo_buffer_t *buffer, const void *user, uint32_t parts, size_t count, ompi_datatype_t *type)
{
    ptrdiff_t extent;
    ompi_datatype_type_extent(type, &extent);
    divide(buffer, user, parts);
    for (uint32_t i = 0; i < parts; ++i) {
        buffer->parts[i] = (mca_coll_velo_part_t){(ptrdiff_t) (i * count) * extent, count, type};
    }
}

static void divide_as(mca_coll_velo_buffer_t *buffer, const void *user, uint32_t parts, mca_coll_velo_counts_t counts,
                      mca_coll_velo_offsets_t offsets, ompi_datatype_t *type)
{
    ptrdiff_t extent;
    ompi_datatype_type_extent(type, &extent);
    divide(buffer, user, parts);
    for (uint32_t i = 0; i < parts; ++i) {
        buffer->parts[i] = (mca_coll_velo_part_t){MCA_COLL_VELO_OFFSET(offsets, i) * extent, MCA_COLL_VELO_COUNT(counts, i), type};
    }
}

/* The offsets are set after it. */
static void divide_by_types(mca_coll_velo_buffer_t *buffer, const void *user, uint32_t parts, mca_coll_velo_counts_t counts,
                            ompi_datatype_t *const *types)
{
    divide(buffer, user, parts);
    for (uint32_t i = 0; i < parts; ++i) {
        buffer->parts[i] = (mca_coll_velo_part_t){.count = MCA_COLL_VELO_COUNT(counts, i), .type = types[i]};
    }
}

/* In place: what is sent lies in the receive buffer. */
static void finish(mca_coll_velo_call_t *call)
{
    call->send.is_read = true;
    call->receive.is_written = true;
    call->receive.is_read = call->request.in_place;
    call->request.sends = call->send.blocks;
    call->request.send_count = NULL == call->send.blocks ? 0 : call->send.count;
    call->request.receives = call->receive.blocks;
    call->request.receive_count = NULL == call->receive.blocks ? 0 : call->receive.count;
}

/* --- each operation */

static void describe_barrier(mca_coll_velo_call_t *call, COMM)
{
    (void) comm;
    BEGIN_ON_BOARD(call, barrier, BARRIER, 1);
}

static void describe_bcast(mca_coll_velo_call_t *call, BLOCK, int root, COMM)
{
    BEGIN_ON_BOARD(call, bcast, BCAST, 1);
    call->request.root = (uint32_t) root;
    call->request.bytes = (size_t) count * size_of(type);
    set(&call->receive, to, (size_t) count, type);
    call->receive.is_read = ompi_comm_rank(comm) == root;
    call->receive.is_written = !call->receive.is_read;
    call->may_multicast = true;
}

/* Of each of them the same count of elements. */
static void describe_operands(mca_coll_velo_call_t *call, OPERANDS, size_t sent_blocks)
{
    call->request.in_place = MPI_IN_PLACE == from;
    call->request.bytes = (size_t) count * size_of(type);
    if (!call->request.in_place) {
        set(&call->send, from, (size_t) count * sent_blocks, type);
    }
    set(&call->receive, to, (size_t) count * (call->request.in_place ? sent_blocks : 1), type);
    finish(call);
    mca_coll_velo_reduction(call, op, type);
}

static void describe_allreduce(mca_coll_velo_call_t *call, OPERANDS, COMM)
{
    BEGIN_ON_BOARD(call, allreduce, ALLREDUCE, operands_of_others(comm));
    describe_operands(call, GIVE_OPERANDS, 1);
}

static void describe_scan(mca_coll_velo_call_t *call, OPERANDS, COMM)
{
    BEGIN_ON_BOARD(call, scan, SCAN, operands_of_others(comm));
    describe_operands(call, GIVE_OPERANDS, 1);
}

static void describe_exscan(mca_coll_velo_call_t *call, OPERANDS, COMM)
{
    BEGIN_ON_BOARD(call, exscan, EXSCAN, operands_of_others(comm));
    describe_operands(call, GIVE_OPERANDS, 1);
    call->receive.is_written = 0 < ompi_comm_rank(comm);
}

static void describe_reduce_scatter_block(mca_coll_velo_call_t *call, OPERANDS, COMM)
{
    BEGIN_ON_BOARD(call, reduce_scatter_block, REDUCE_SCATTER_BLOCK, ompi_comm_size(comm) * operands_of_others(comm));
    describe_operands(call, GIVE_OPERANDS, (size_t) ompi_comm_size(comm));
}

static void describe_reduce(mca_coll_velo_call_t *call, OPERANDS, int root, COMM)
{
    BEGIN_ON_BOARD(call, reduce, REDUCE, operands_of_others(comm));
    call->request.root = (uint32_t) root;
    describe_operands(call, GIVE_OPERANDS, 1);
    if (ompi_comm_rank(comm) != root) {
        call->receive = (mca_coll_velo_buffer_t){.user = NULL};
    }
}

/* The vector is where the operands are. */
static void describe_reduce_scatter(mca_coll_velo_call_t *call, OPERANDS_EACH, COMM)
{
    BEGIN_ON_BOARD(call, reduce_scatter, REDUCE_SCATTER, operands_of_others(comm));
    mca_coll_velo_reduction(call, op, type);
    const uint32_t ranks = (uint32_t) ompi_comm_size(comm);
    ptrdiff_t extent;
    ompi_datatype_type_extent(type, &extent);
    call->request.in_place = MPI_IN_PLACE == from;
    mca_coll_velo_buffer_t *vector = call->request.in_place ? &call->receive : &call->send;
    divide(vector, call->request.in_place ? to : from, ranks);
    size_t before = 0;
    for (uint32_t i = 0; i < ranks; ++i) {
        const size_t count = MCA_COLL_VELO_COUNT(counts, i);
        vector->parts[i] = (mca_coll_velo_part_t){(ptrdiff_t) before * extent, count, type};
        before += count;
    }
    call->request.bytes = before * size_of(type);
    if (!call->request.in_place) {
        set(&call->receive, to, MCA_COLL_VELO_COUNT(counts, ompi_comm_rank(comm)), type);
    }
    finish(call);
    call->request.sends = vector->blocks;
    call->request.send_count = vector->count;
    call->request.receives = NULL;
    call->request.receive_count = 0;
}

/* To a root: what one that is none sends. */
static void describe_sender(mca_coll_velo_call_t *call, FROM)
{
    set(&call->send, from, (size_t) from_count, from_type);
    call->request.bytes = (size_t) from_count * size_of(from_type);
    finish(call);
}

/* Its own block, unless it is in place. */
static void add_own(mca_coll_velo_call_t *call, FROM)
{
    call->request.in_place = MPI_IN_PLACE == from;
    if (!call->request.in_place) {
        set(&call->send, from, (size_t) from_count, from_type);
    }
    finish(call);
}

static void describe_gather(mca_coll_velo_call_t *call, FROM, TO, int root, COMM)
{
    BEGIN_ON_BOARD(call, gather, GATHER, ompi_comm_size(comm));
    call->request.root = (uint32_t) root;
    if (ompi_comm_rank(comm) != root) {
        describe_sender(call, GIVE_FROM);
        return;
    }
    call->request.bytes = (size_t) to_count * size_of(to_type);
    set(&call->receive, to, (size_t) to_count * (size_t) ompi_comm_size(comm), to_type);
    add_own(call, GIVE_FROM);
}

static void describe_gatherv(mca_coll_velo_call_t *call, FROM, TO_EACH, int root, COMM)
{
    begin(call, "gatherv");
    call->request.root = (uint32_t) root;
    if (ompi_comm_rank(comm) != root) {
        describe_sender(call, GIVE_FROM);
        return;
    }
    divide_as(&call->receive, to, (uint32_t) ompi_comm_size(comm), to_counts, to_offsets, to_type);
    add_own(call, GIVE_FROM);
}

/* From a root: where one that is none receives. */
static void describe_receiver(mca_coll_velo_call_t *call, TO)
{
    set(&call->receive, to, (size_t) to_count, to_type);
    call->request.bytes = (size_t) to_count * size_of(to_type);
    finish(call);
}

static void keep_own(mca_coll_velo_call_t *call, TO)
{
    call->request.in_place = MPI_IN_PLACE == to;
    if (!call->request.in_place) {
        set(&call->receive, to, (size_t) to_count, to_type);
    }
    finish(call);
}

static void describe_scatter(mca_coll_velo_call_t *call, FROM, TO, int root, COMM)
{
    BEGIN_ON_BOARD(call, scatter, SCATTER, ompi_comm_size(comm));
    call->request.root = (uint32_t) root;
    if (ompi_comm_rank(comm) != root) {
        describe_receiver(call, GIVE_TO);
        return;
    }
    call->request.bytes = (size_t) from_count * size_of(from_type);
    set(&call->send, from, (size_t) from_count * (size_t) ompi_comm_size(comm), from_type);
    keep_own(call, GIVE_TO);
}

static void describe_scatterv(mca_coll_velo_call_t *call, FROM_EACH, TO, int root, COMM)
{
    begin(call, "scatterv");
    call->request.root = (uint32_t) root;
    if (ompi_comm_rank(comm) != root) {
        describe_receiver(call, GIVE_TO);
        return;
    }
    divide_as(&call->send, from, (uint32_t) ompi_comm_size(comm), from_counts, from_offsets, from_type);
    keep_own(call, GIVE_TO);
}

static void describe_allgather(mca_coll_velo_call_t *call, FROM, TO, COMM)
{
    BEGIN_ON_BOARD(call, allgather, ALLGATHER, ompi_comm_size(comm));
    call->request.bytes = (size_t) to_count * size_of(to_type);
    set(&call->receive, to, (size_t) to_count * (size_t) ompi_comm_size(comm), to_type);
    add_own(call, GIVE_FROM);
}

static void describe_allgatherv(mca_coll_velo_call_t *call, FROM, TO_EACH, COMM)
{
    const uint32_t ranks = (uint32_t) ompi_comm_size(comm);
    begin(call, "allgatherv");
    divide_as(&call->receive, to, ranks, to_counts, to_offsets, to_type);
    for (uint32_t i = 0; i < ranks; ++i) {
        call->request.bytes += MCA_COLL_VELO_COUNT(to_counts, i) * size_of(to_type);
    }
    add_own(call, GIVE_FROM);
}

static void describe_alltoall(mca_coll_velo_call_t *call, FROM, TO, COMM)
{
    const size_t ranks = (size_t) ompi_comm_size(comm);
    BEGIN_ON_BOARD(call, alltoall, ALLTOALL, ompi_comm_size(comm));
    call->request.in_place = MPI_IN_PLACE == from;
    call->request.bytes = (size_t) to_count * size_of(to_type);
    if (!call->request.in_place) {
        set(&call->send, from, (size_t) from_count * ranks, from_type);
    }
    set(&call->receive, to, (size_t) to_count * ranks, to_type);
    finish(call);
}

static void describe_alltoallv(mca_coll_velo_call_t *call, FROM_EACH, TO_EACH, COMM)
{
    const uint32_t ranks = (uint32_t) ompi_comm_size(comm);
    begin(call, "alltoallv");
    call->request.in_place = MPI_IN_PLACE == from;
    if (!call->request.in_place) {
        divide_as(&call->send, from, ranks, from_counts, from_offsets, from_type);
    }
    divide_as(&call->receive, to, ranks, to_counts, to_offsets, to_type);
    finish(call);
}

static void describe_alltoallw(mca_coll_velo_call_t *call, EACH_OF_ITS_TYPE(mca_coll_velo_offsets_t), COMM)
{
    const uint32_t ranks = (uint32_t) ompi_comm_size(comm);
    begin(call, "alltoallv");
    call->request.in_place = MPI_IN_PLACE == from;
    if (!call->request.in_place) {
        divide_by_types(&call->send, from, ranks, from_counts, from_types);
    }
    divide_by_types(&call->receive, to, ranks, to_counts, to_types);
    for (uint32_t i = 0; i < ranks; ++i) {
        if (!call->request.in_place) {
            call->send.parts[i].offset = MCA_COLL_VELO_OFFSET(from_offsets, i);
        }
        call->receive.parts[i].offset = MCA_COLL_VELO_OFFSET(to_offsets, i);
    }
    finish(call);
}

/* --- neighbours */

static void begin_exchange(mca_coll_velo_call_t *call, COMM, uint32_t *sources, uint32_t *targets)
{
    begin(call, "exchange");
    mca_coll_velo_neighbours(comm, sources, targets);
}

static void finish_exchange(mca_coll_velo_call_t *call, COMM)
{
    mca_coll_velo_address(comm, &call->send, true);
    mca_coll_velo_address(comm, &call->receive, false);
    finish(call);
}

/* The same to each. */
static void send_to_all(mca_coll_velo_call_t *call, uint32_t targets, FROM)
{
    divide(&call->send, from, targets);
    for (uint32_t i = 0; i < targets; ++i) {
        call->send.parts[i] = (mca_coll_velo_part_t){.count = (size_t) from_count, .type = from_type};
    }
}

static void describe_neighbor_allgather(mca_coll_velo_call_t *call, FROM, TO, COMM)
{
    uint32_t sources, targets;
    begin_exchange(call, comm, &sources, &targets);
    send_to_all(call, targets, GIVE_FROM);
    divide_equally(&call->receive, to, sources, (size_t) to_count, to_type);
    finish_exchange(call, comm);
}

static void describe_neighbor_allgatherv(mca_coll_velo_call_t *call, FROM, TO_EACH, COMM)
{
    uint32_t sources, targets;
    begin_exchange(call, comm, &sources, &targets);
    send_to_all(call, targets, GIVE_FROM);
    divide_as(&call->receive, to, sources, to_counts, to_offsets, to_type);
    finish_exchange(call, comm);
}

static void describe_neighbor_alltoall(mca_coll_velo_call_t *call, FROM, TO, COMM)
{
    uint32_t sources, targets;
    begin_exchange(call, comm, &sources, &targets);
    divide_equally(&call->send, from, targets, (size_t) from_count, from_type);
    divide_equally(&call->receive, to, sources, (size_t) to_count, to_type);
    finish_exchange(call, comm);
}

static void describe_neighbor_alltoallv(mca_coll_velo_call_t *call, FROM_EACH, TO_EACH, COMM)
{
    uint32_t sources, targets;
    begin_exchange(call, comm, &sources, &targets);
    divide_as(&call->send, from, targets, from_counts, from_offsets, from_type);
    divide_as(&call->receive, to, sources, to_counts, to_offsets, to_type);
    finish_exchange(call, comm);
}

static void describe_neighbor_alltoallw(mca_coll_velo_call_t *call, EACH_OF_ITS_TYPE(mca_coll_velo_byte_offsets_t), COMM)
{
    uint32_t sources, targets;
    begin_exchange(call, comm, &sources, &targets);
    divide_by_types(&call->send, from, targets, from_counts, from_types);
    for (uint32_t i = 0; i < targets; ++i) {
        call->send.parts[i].offset = MCA_COLL_VELO_OFFSET(from_offsets, i);
    }
    divide_by_types(&call->receive, to, sources, to_counts, to_types);
    for (uint32_t i = 0; i < sources; ++i) {
        call->receive.parts[i].offset = MCA_COLL_VELO_OFFSET(to_offsets, i);
    }
    finish_exchange(call, comm);
}

/* --- forms: blocking, non-blocking, persistent */
#define FORM(form, name, described, parameters, serve)                           \
    static int form parameters                                                   \
    {                                                                            \
        mca_coll_velo_module_t *module = (mca_coll_velo_module_t *) base;        \
        mca_coll_velo_call_t call;                                               \
        describe_##name described;                                               \
        return serve;                                                            \
    }
#define FORMS(name, parameters, arguments)                                                                    \
    FORM(name, name, (&call, LIST arguments), (LIST parameters, mca_coll_base_module_t *base),                \
         mca_coll_velo_run(module, &call))                                                                    \
    FORM(i##name, name, (&call, LIST arguments),                                                              \
         (LIST parameters, ompi_request_t **request, mca_coll_base_module_t *base),                           \
         mca_coll_velo_start(module, &call, comm, request))                                                   \
    FORM(name##_init, name, (&call, LIST arguments),                                                          \
         (LIST parameters, struct ompi_info_t *info, ompi_request_t **request, mca_coll_base_module_t *base), \
         ((void) info, mca_coll_velo_init(module, &call, comm, request)))
OPERATIONS(FORMS)

#define EACH_FORM(DO, name) DO(name) DO(i##name) DO(name##_init)

void mca_coll_velo_offer(mca_coll_base_module_t *module)
{
#define OFFER_FORM(form) module->coll_##form = form;
#define OFFER(name, parameters, arguments) EACH_FORM(OFFER_FORM, name)
    OPERATIONS(OFFER)
}

void mca_coll_velo_take_over(mca_coll_velo_module_t *module, mca_coll_base_comm_coll_t *table)
{
#define RETAIN_FORM(form)                        \
    if (NULL != table->coll_##form##_module) {   \
        OBJ_RETAIN(table->coll_##form##_module); \
    }
#define RETAIN(name, parameters, arguments) EACH_FORM(RETAIN_FORM, name)
#define ENTER_FORM(form)                            \
    table->coll_##form = module->super.coll_##form; \
    table->coll_##form##_module = &module->super;
#define ENTER(name, parameters, arguments) EACH_FORM(ENTER_FORM, name)
    module->previous = *table;
    OPERATIONS(RETAIN)
    if (MCA_COLL_VELO_ENTERS_ITSELF) {
        OPERATIONS(ENTER)
    }
}

void mca_coll_velo_give_back(mca_coll_velo_module_t *module, mca_coll_base_comm_coll_t *table)
{
#define GIVE_BACK_FORM(form)                                                 \
    if (table->coll_##form##_module == &module->super) {                     \
        table->coll_##form = module->previous.coll_##form;                   \
        table->coll_##form##_module = module->previous.coll_##form##_module; \
    }
#define GIVE_BACK(name, parameters, arguments) EACH_FORM(GIVE_BACK_FORM, name)
    OPERATIONS(GIVE_BACK)
}

void mca_coll_velo_drop_previous(mca_coll_velo_module_t *module)
{
#define RELEASE_FORM(form)                                \
    if (NULL != module->previous.coll_##form##_module) {  \
        OBJ_RELEASE(module->previous.coll_##form##_module); \
    }
#define RELEASE(name, parameters, arguments) EACH_FORM(RELEASE_FORM, name)
    OPERATIONS(RELEASE)
}
