// Executes one atomic update of this process's memory on behalf of a peer.
#pragma once

#include <cstdint>

#include "types/engine.h"

namespace velo::rma {

// True if `operation` is known, `width` is 4 or 8 and `address` is aligned to it.
bool atomic_valid(std::uint32_t operation, unsigned width, std::uint64_t address) noexcept;

// Returns the old value, zero-extended. Precondition: atomic_valid. Sequentially consistent, as the
// processor's own.
std::uint64_t atomic_execute(velo_atomic operation, unsigned width, std::uint64_t address,
                             std::uint64_t operand, std::uint64_t compare) noexcept;

}  // namespace velo::rma
