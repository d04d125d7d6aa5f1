/* Reductions: the operators and types that schedules compute themselves; MPI computes the others. */
#include "coll_velo.h"

#include <stdlib.h>
#include <string.h>

#include "ompi/mca/op/op.h"

static bool operator_of(velo_goal_operator *to, const ompi_op_t *op)
{
    switch (op->op_type) {
    case OMPI_OP_MAX:
        return *to = VELO_GOAL_MAX, true;
    case OMPI_OP_MIN:
        return *to = VELO_GOAL_MIN, true;
    case OMPI_OP_SUM:
        return *to = VELO_GOAL_ADD, true;
    case OMPI_OP_PROD:
        return *to = VELO_GOAL_MUL, true;
    case OMPI_OP_BAND:
        return *to = VELO_GOAL_AND, true;
    case OMPI_OP_BOR:
        return *to = VELO_GOAL_OR, true;
    case OMPI_OP_BXOR:
        return *to = VELO_GOAL_XOR, true;
    default:
        return false;
    }
}

static bool type_of(velo_goal_type *to, const ompi_datatype_t *type)
{
    switch (ompi_op_ddt_map[type->id]) {
    case OMPI_OP_BASE_TYPE_INT8_T:
    case OMPI_OP_BASE_TYPE_INT16_T:
    case OMPI_OP_BASE_TYPE_INT32_T:
    case OMPI_OP_BASE_TYPE_INT64_T:
    case OMPI_OP_BASE_TYPE_INTEGER:
    case OMPI_OP_BASE_TYPE_INTEGER1:
    case OMPI_OP_BASE_TYPE_INTEGER2:
    case OMPI_OP_BASE_TYPE_INTEGER4:
    case OMPI_OP_BASE_TYPE_INTEGER8:
    case OMPI_OP_BASE_TYPE_LONG:
        return *to = VELO_GOAL_SINT, true;
    case OMPI_OP_BASE_TYPE_UINT8_T:
    case OMPI_OP_BASE_TYPE_UINT16_T:
    case OMPI_OP_BASE_TYPE_UINT32_T:
    case OMPI_OP_BASE_TYPE_UINT64_T:
    case OMPI_OP_BASE_TYPE_UNSIGNED_LONG:
    case OMPI_OP_BASE_TYPE_BYTE:
        return *to = VELO_GOAL_UINT, true;
    case OMPI_OP_BASE_TYPE_FLOAT:
    case OMPI_OP_BASE_TYPE_DOUBLE:
    case OMPI_OP_BASE_TYPE_REAL:
    case OMPI_OP_BASE_TYPE_REAL4:
    case OMPI_OP_BASE_TYPE_REAL8:
    case OMPI_OP_BASE_TYPE_DOUBLE_PRECISION:
        return *to = VELO_GOAL_FLOAT, true;
    default:
        return false;
    }
}

static bool is_known(velo_goal_request *request, const ompi_op_t *op, const ompi_datatype_t *type)
{
    return ompi_op_is_intrinsic((ompi_op_t *) op) && ompi_datatype_is_predefined(type) && operator_of(&request->op, op) &&
           type_of(&request->type, type) && velo_goal_is_legal(request->op, request->type, request->width);
}

void mca_coll_velo_reduction(mca_coll_velo_call_t *call, ompi_op_t *op, ompi_datatype_t *type)
{
    velo_goal_request *request = &call->request;
    size_t size;
    ompi_datatype_type_size(type, &size);
    request->width = (uint32_t) (8 * size);
    if (OPAL_LIKELY(is_known(request, op, type))) {
        return;
    }
    request->op = VELO_GOAL_OWN;
    request->type = VELO_GOAL_UINT;
    request->width = 8;
    request->element = size;
    request->ordered = !ompi_op_is_commute(op);
    call->on_board = VELO_BOARD_NONE;
    call->operands = (mca_coll_velo_operands_t){op, type};
}

/* MPI's function has its second operand where the result comes to. */
static void reduce(const mca_coll_velo_operands_t *by, char *first, char *second, size_t count)
{
    ompi_op_reduce(by->op, first, second, count, by->type);
}

/* Elements with gaps, so many at a time. */
static void combine_unpacked(const mca_coll_velo_operands_t *by, const char *first, const char *second, char *result,
                             size_t size, size_t count)
{
    enum { AT_ONCE = 65536 };
    ptrdiff_t extent, gap, span;
    ompi_datatype_type_extent(by->type, &extent);
    size_t most = extent <= 0 || AT_ONCE < extent ? 1 : (size_t) (AT_ONCE / extent);
    most = most < count ? most : count;
    span = (ptrdiff_t) opal_datatype_span(&by->type->super, most, &gap);
    char *memory = calloc(2, (size_t) span);
    if (NULL == memory) {
        mca_common_velo_give_up("out of memory");
    }
    char *a = memory - gap, *b = memory + span - gap;
    for (size_t part; 0 < count; count -= part, first += part * size, second += part * size, result += part * size) {
        part = most < count ? most : count;
        mca_coll_velo_convert(by->type, part, a, (char *) first, part * size, false);
        mca_coll_velo_convert(by->type, part, b, (char *) second, part * size, false);
        reduce(by, a, b, part);
        mca_coll_velo_convert(by->type, part, b, result, part * size, true);
    }
    free(memory);
}

void mca_coll_velo_combine(const mca_coll_velo_operands_t *by, const void *first, const void *second, void *result, size_t bytes)
{
    size_t size;
    ptrdiff_t begin, extent;
    ompi_datatype_type_size(by->type, &size);
    ompi_datatype_get_true_extent(by->type, &begin, &extent);
    const bool in_the_way = result == first;
    char *target = (char *) result;
    if (0 == bytes) {
        return;
    }
    if (!ompi_datatype_is_contiguous_memory_layout(by->type, 2)) {
        combine_unpacked(by, first, second, result, size, bytes / size);
        return;
    }
    if (in_the_way && NULL == (target = malloc(bytes))) {
        mca_common_velo_give_up("out of memory");
    }
    if (target != second) {
        memcpy(target, second, bytes);
    }
    reduce(by, (char *) first - begin, target - begin, bytes / size);
    if (in_the_way) {
        memcpy(result, target, bytes);
        free(target);
    }
}
