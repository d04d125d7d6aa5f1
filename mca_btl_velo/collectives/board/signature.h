// What members of a run must have in common besides its bytes: the operation that they call, of a reduction
// its operator, and the root.
#pragma once

#include <cstdint>
#include <string>

#include "collectives/goal/operation.h"
#include "types/engine.h"

namespace velo::board {

// From the lowest on: so many bits of the root that these suffice, operator, operation.
struct Signature {
    static constexpr unsigned kRootBits = 5, kOperatorBits = 4, kOperationBits = 4;
    static constexpr unsigned kKindBits = kOperatorBits + kOperationBits, kBits = kKindBits + kRootBits;

    // What does not belong to the operation is of no account, nor in which way a vector is scattered.
    static constexpr std::uint32_t of(velo_board_operation operation, goal::Operator op, std::uint32_t root) {
        if (operation == VELO_BOARD_REDUCE_SCATTER_BLOCK) operation = VELO_BOARD_REDUCE_SCATTER;
        const std::uint32_t kind = static_cast<std::uint32_t>(operation) << kOperatorBits |
                                   (reduces(operation) ? static_cast<std::uint32_t>(op) : 0);
        return kind << kRootBits | (has_root(operation) ? root % (1U << kRootBits) : 0);
    }
    // All but the root.
    static constexpr std::uint32_t kind_of(std::uint32_t signature) { return signature >> kRootBits; }

    static constexpr bool reduces(velo_board_operation operation) {
        return operation == VELO_BOARD_REDUCE || operation == VELO_BOARD_ALLREDUCE ||
               operation == VELO_BOARD_SCAN || operation == VELO_BOARD_EXSCAN ||
               operation == VELO_BOARD_REDUCE_SCATTER;
    }
    static constexpr bool has_root(velo_board_operation operation) {
        return operation == VELO_BOARD_BCAST || operation == VELO_BOARD_REDUCE ||
               operation == VELO_BOARD_GATHER || operation == VELO_BOARD_SCATTER;
    }
};
static_assert(static_cast<unsigned>(goal::Operator::kOwn) < 1U << Signature::kOperatorBits);
static_assert(static_cast<unsigned>(VELO_BOARD_REDUCE_SCATTER_BLOCK) < 1U << Signature::kOperationBits);

// In words; whatever they are.
std::string describe_kind(std::uint32_t kind);
std::string describe(std::uint32_t signature);

}  // namespace velo::board
