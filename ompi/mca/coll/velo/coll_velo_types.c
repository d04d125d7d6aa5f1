/* Reductions: which of MPI's operations and types schedules know. */
#include "coll_velo.h"

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

bool mca_coll_velo_reduction(velo_goal_request *request, ompi_op_t *op, ompi_datatype_t *type)
{
    size_t size;
    if (!ompi_op_is_intrinsic(op) || !ompi_datatype_is_predefined(type) || !operator_of(&request->op, op) ||
        !type_of(&request->type, type)) {
        return false;
    }
    ompi_datatype_type_size(type, &size);
    request->width = (uint32_t) (8 * size);
    return velo_goal_is_legal(request->op, request->type, request->width);
}
