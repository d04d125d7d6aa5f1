/* The operations of MPI, each blocking and non-blocking: what it asks of a schedule, or that the previous component serves
 * it. */
#include "coll_velo.h"

#include <limits.h>
#include <string.h>

/* Every operation that is served: name, parameters, arguments, in both forms. */
#define BLOCKS \
    const void *from, int from_count, ompi_datatype_t *from_type, void *to, int to_count, ompi_datatype_t *to_type
#define GIVE_BLOCKS from, from_count, from_type, to, to_count, to_type
#define OPERANDS const void *from, void *to, int count, ompi_datatype_t *type, ompi_op_t *op
#define GIVE_OPERANDS from, to, count, type, op
#define COMM ompi_communicator_t *comm

#define OPERATIONS(OPERATION)                                                                                        \
    OPERATION(allgather, (BLOCKS, COMM), (GIVE_BLOCKS, comm))                                                        \
    OPERATION(allreduce, (OPERANDS, COMM), (GIVE_OPERANDS, comm))                                                    \
    OPERATION(alltoall, (BLOCKS, COMM), (GIVE_BLOCKS, comm))                                                         \
    OPERATION(barrier, (COMM), (comm))                                                                               \
    OPERATION(bcast, (void *to, int count, ompi_datatype_t *type, int root, COMM), (to, count, type, root, comm))    \
    OPERATION(exscan, (OPERANDS, COMM), (GIVE_OPERANDS, comm))                                                       \
    OPERATION(gather, (BLOCKS, int root, COMM), (GIVE_BLOCKS, root, comm))                                           \
    OPERATION(reduce, (OPERANDS, int root, COMM), (GIVE_OPERANDS, root, comm))                                       \
    OPERATION(reduce_scatter_block, (OPERANDS, COMM), (GIVE_OPERANDS, comm))                                         \
    OPERATION(scan, (OPERANDS, COMM), (GIVE_OPERANDS, comm))                                                         \
    OPERATION(scatter, (BLOCKS, int root, COMM), (GIVE_BLOCKS, root, comm))

#define LIST(...) __VA_ARGS__

static const char *algorithm(const char *word)
{
    return 0 == strcmp("auto", word) ? NULL : word;
}
#define BEGIN(call, name)                       \
    {                                           \
        memset(call, 0, sizeof(*(call)));       \
        (call)->request.operation = #name;      \
        (call)->request.algorithm = algorithm(mca_coll_velo_component.config.name##_algorithm); \
    }

static mca_coll_velo_buffer_t source(const void *user, size_t count, ompi_datatype_t *type)
{
    return (mca_coll_velo_buffer_t){.user = (void *) user, .count = count, .type = type};
}

static mca_coll_velo_buffer_t target(void *user, size_t count, ompi_datatype_t *type)
{
    return (mca_coll_velo_buffer_t){.user = user, .count = count, .type = type, .is_written = true};
}

/* The bytes of one block, the same for all; false if all of them are more than the interface of data types takes. */
static bool set_bytes(mca_coll_velo_call_t *call, size_t count, const ompi_datatype_t *type, size_t blocks)
{
    size_t size;
    ompi_datatype_type_size(type, &size);
    call->request.bytes = count * size;
    return call->request.bytes <= INT_MAX / blocks;
}

static bool describe_barrier(mca_coll_velo_call_t *call, COMM)
{
    (void) comm;
    BEGIN(call, barrier);
    return true;
}

static bool describe_bcast(mca_coll_velo_call_t *call, void *to, int count, ompi_datatype_t *type, int root, COMM)
{
    BEGIN(call, bcast);
    call->request.root = (uint32_t) root;
    call->receive = target(to, (size_t) count, type);
    call->is_read = ompi_comm_rank(comm) == root;
    call->receive.is_written = !call->is_read;
    call->may_multicast = true;
    return set_bytes(call, (size_t) count, type, 1);
}

/* Of each of them the same count of elements. */
static bool describe_operands(mca_coll_velo_call_t *call, OPERANDS, size_t sent_blocks)
{
    call->request.in_place = MPI_IN_PLACE == from;
    call->is_read = true;
    if (!call->request.in_place) {
        call->send = source(from, (size_t) count * sent_blocks, type);
    }
    call->receive = target(to, (size_t) count, type);
    return mca_coll_velo_reduction(&call->request, op, type) && set_bytes(call, (size_t) count, type, sent_blocks);
}

static bool describe_allreduce(mca_coll_velo_call_t *call, OPERANDS, COMM)
{
    (void) comm;
    BEGIN(call, allreduce);
    return describe_operands(call, GIVE_OPERANDS, 1);
}

static bool describe_scan(mca_coll_velo_call_t *call, OPERANDS, COMM)
{
    (void) comm;
    BEGIN(call, scan);
    return describe_operands(call, GIVE_OPERANDS, 1);
}

static bool describe_exscan(mca_coll_velo_call_t *call, OPERANDS, COMM)
{
    (void) comm;
    BEGIN(call, exscan);
    return describe_operands(call, GIVE_OPERANDS, 1);
}

static bool describe_reduce_scatter_block(mca_coll_velo_call_t *call, OPERANDS, COMM)
{
    BEGIN(call, reduce_scatter_block);
    return describe_operands(call, GIVE_OPERANDS, (size_t) ompi_comm_size(comm));
}

static bool describe_reduce(mca_coll_velo_call_t *call, OPERANDS, int root, COMM)
{
    BEGIN(call, reduce);
    call->request.root = (uint32_t) root;
    const bool served = describe_operands(call, GIVE_OPERANDS, 1);
    if (ompi_comm_rank(comm) != root) {
        call->receive = (mca_coll_velo_buffer_t){.user = NULL};
    }
    return served;
}

static bool describe_gather(mca_coll_velo_call_t *call, BLOCKS, int root, COMM)
{
    const size_t size = (size_t) ompi_comm_size(comm);
    BEGIN(call, gather);
    call->request.root = (uint32_t) root;
    if (ompi_comm_rank(comm) != root) {
        call->send = source(from, (size_t) from_count, from_type);
        return set_bytes(call, (size_t) from_count, from_type, size);
    }
    call->request.in_place = call->is_read = MPI_IN_PLACE == from;
    if (!call->request.in_place) {
        call->send = source(from, (size_t) from_count, from_type);
    }
    call->receive = target(to, (size_t) to_count * size, to_type);
    return set_bytes(call, (size_t) to_count, to_type, size);
}

static bool describe_scatter(mca_coll_velo_call_t *call, BLOCKS, int root, COMM)
{
    const size_t size = (size_t) ompi_comm_size(comm);
    BEGIN(call, scatter);
    call->request.root = (uint32_t) root;
    if (ompi_comm_rank(comm) != root) {
        call->receive = target(to, (size_t) to_count, to_type);
        return set_bytes(call, (size_t) to_count, to_type, size);
    }
    call->request.in_place = MPI_IN_PLACE == to;
    if (!call->request.in_place) {
        call->receive = target(to, (size_t) to_count, to_type);
    }
    call->send = source(from, (size_t) from_count * size, from_type);
    return set_bytes(call, (size_t) from_count, from_type, size);
}

static bool describe_allgather(mca_coll_velo_call_t *call, BLOCKS, COMM)
{
    const size_t size = (size_t) ompi_comm_size(comm);
    BEGIN(call, allgather);
    call->request.in_place = call->is_read = MPI_IN_PLACE == from;
    if (!call->request.in_place) {
        call->send = source(from, (size_t) from_count, from_type);
    }
    call->receive = target(to, (size_t) to_count * size, to_type);
    return set_bytes(call, (size_t) to_count, to_type, size);
}

static bool describe_alltoall(mca_coll_velo_call_t *call, BLOCKS, COMM)
{
    const size_t size = (size_t) ompi_comm_size(comm);
    BEGIN(call, alltoall);
    call->request.in_place = call->is_read = MPI_IN_PLACE == from;
    if (!call->request.in_place) {
        call->send = source(from, (size_t) from_count * size, from_type);
    }
    call->receive = target(to, (size_t) to_count * size, to_type);
    return set_bytes(call, (size_t) to_count, to_type, size);
}

/* Both forms of each. */
#define FORMS(name, parameters, arguments)                                                                           \
    static int name(LIST parameters, mca_coll_base_module_t *base)                                                   \
    {                                                                                                                \
        mca_coll_velo_module_t *module = (mca_coll_velo_module_t *) base;                                            \
        mca_coll_velo_call_t call;                                                                                   \
        int rc = describe_##name(&call, LIST arguments) ? mca_coll_velo_run(module, &call) : OMPI_ERR_NOT_SUPPORTED; \
        if (OPAL_LIKELY(OMPI_ERR_NOT_SUPPORTED != rc)) {                                                             \
            return rc;                                                                                               \
        }                                                                                                            \
        velo_goal_run_skip(mca_coll_velo_group(module));                                                             \
        return module->previous.coll_##name(LIST arguments, module->previous.coll_##name##_module);                  \
    }                                                                                                                \
    static int i##name(LIST parameters, ompi_request_t **request, mca_coll_base_module_t *base)                      \
    {                                                                                                                \
        mca_coll_velo_module_t *module = (mca_coll_velo_module_t *) base;                                            \
        mca_coll_velo_call_t call;                                                                                   \
        int rc = describe_##name(&call, LIST arguments) ? mca_coll_velo_start(module, &call, comm, request)          \
                                                        : OMPI_ERR_NOT_SUPPORTED;                                    \
        if (OPAL_LIKELY(OMPI_ERR_NOT_SUPPORTED != rc)) {                                                             \
            return rc;                                                                                               \
        }                                                                                                            \
        velo_goal_run_skip(mca_coll_velo_group(module));                                                             \
        return module->previous.coll_i##name(LIST arguments, request, module->previous.coll_i##name##_module);       \
    }
OPERATIONS(FORMS)

void mca_coll_velo_offer(mca_coll_base_module_t *module)
{
#define OFFER(name, parameters, arguments) \
    module->coll_##name = name;            \
    module->coll_i##name = i##name;
    OPERATIONS(OFFER)
}

/* NULL: nobody offers it, and Open MPI refuses the communicator. */
#define RETAIN(name, parameters, arguments)              \
    if (NULL != previous->coll_##name##_module) {        \
        OBJ_RETAIN(previous->coll_##name##_module);      \
    }                                                    \
    if (NULL != previous->coll_i##name##_module) {       \
        OBJ_RETAIN(previous->coll_i##name##_module);     \
    }
#define RELEASE(name, parameters, arguments)                   \
    if (NULL != module->previous.coll_##name##_module) {       \
        OBJ_RELEASE(module->previous.coll_##name##_module);    \
    }                                                          \
    if (NULL != module->previous.coll_i##name##_module) {      \
        OBJ_RELEASE(module->previous.coll_i##name##_module);   \
    }

void mca_coll_velo_keep_previous(mca_coll_velo_module_t *module, const mca_coll_base_comm_coll_t *previous)
{
    module->previous = *previous;
    OPERATIONS(RETAIN)
}

void mca_coll_velo_drop_previous(mca_coll_velo_module_t *module)
{
    OPERATIONS(RELEASE)
}
