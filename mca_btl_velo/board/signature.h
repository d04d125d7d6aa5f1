// What members of a run must have in common besides its bytes: the operation that they call, of a reduction
// its operator, and the root.
#pragma once

#include <cstdint>
#include <string>

#include "goal/operation.h"

namespace velo::board {

enum class Operation : std::uint8_t {
    kNone,
    kBarrier,
    kBcast,
    kReduce,
    kAllreduce,
    kScan,
    kExscan,
    kGather,
    kScatter,
    kAllgather,
    kAlltoall,
    kReduceScatter
};

// From the lowest on: so many bits of the root that these suffice, operator, operation.
struct Signature {
    static constexpr unsigned kRootBits = 5, kOperatorBits = 4, kOperationBits = 4;
    static constexpr unsigned kKindBits = kOperatorBits + kOperationBits, kBits = kKindBits + kRootBits;

    // What does not belong to the operation is of no account.
    static constexpr std::uint32_t of(Operation operation, goal::Operator op, std::uint32_t root) {
        const std::uint32_t kind = static_cast<std::uint32_t>(operation) << kOperatorBits |
                                   (reduces(operation) ? static_cast<std::uint32_t>(op) : 0);
        return kind << kRootBits | (has_root(operation) ? root % (1U << kRootBits) : 0);
    }
    // All but the root.
    static constexpr std::uint32_t kind_of(std::uint32_t signature) { return signature >> kRootBits; }

    static constexpr bool reduces(Operation operation) {
        return operation == Operation::kReduce || operation == Operation::kAllreduce ||
               operation == Operation::kScan || operation == Operation::kExscan ||
               operation == Operation::kReduceScatter;
    }
    static constexpr bool has_root(Operation operation) {
        return operation == Operation::kBcast || operation == Operation::kReduce ||
               operation == Operation::kGather || operation == Operation::kScatter;
    }
};
static_assert(static_cast<unsigned>(goal::Operator::kOwn) < 1U << Signature::kOperatorBits);
static_assert(static_cast<unsigned>(Operation::kReduceScatter) < 1U << Signature::kOperationBits);

// In words; whatever they are.
std::string describe_kind(std::uint32_t kind);
std::string describe(std::uint32_t signature);

}  // namespace velo::board
