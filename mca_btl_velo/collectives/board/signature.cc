#include "collectives/board/signature.h"

#include <iterator>

namespace velo::board {
namespace {

constexpr const char* kNames[] = {"nothing",   "barrier",   "bcast",    "reduce",
                                  "allreduce", "scan",      "exscan",   "gather",
                                  "scatter",   "allgather", "alltoall", "reduce_scatter"};
static_assert(std::size(kNames) == VELO_BOARD_REDUCE_SCATTER + 1);

velo_board_operation operation_of(std::uint32_t kind) {
    const std::uint32_t operation = kind >> Signature::kOperatorBits;
    return operation < std::size(kNames) ? static_cast<velo_board_operation>(operation) : VELO_BOARD_NONE;
}

}  // namespace

std::string describe_kind(std::uint32_t kind) {
    const velo_board_operation operation = operation_of(kind);
    std::string text = kNames[static_cast<std::size_t>(operation)];
    const auto op = static_cast<goal::Operator>(kind & ((1U << Signature::kOperatorBits) - 1));
    if (Signature::reduces(operation) && op <= goal::Operator::kOwn)
        text += std::string(" (") + goal::name(op) + ")";
    return text;
}

std::string describe(std::uint32_t signature) {
    const std::uint32_t kind = Signature::kind_of(signature);
    std::string text = describe_kind(kind);
    if (Signature::has_root(operation_of(kind)))
        text += " of root " + std::to_string(signature & ((1U << Signature::kRootBits) - 1));
    return text;
}

}  // namespace velo::board
