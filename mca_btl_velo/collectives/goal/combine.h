// Local operations: what a run computes by itself.
#pragma once

#include <cstddef>

#include "collectives/goal/operation.h"

namespace velo::goal {

// Floats of 16 bits, where the compiler has them.
#if defined(__aarch64__) && !defined(__clang__) && __GNUC__ < 13
#define VELO_HAS_HALF  // GCC 12 has _Float16 in C only
using Half = __fp16;
#elif defined(__FLT16_MAX__)
#define VELO_HAS_HALF
using Half = _Float16;
#endif

// AND, OR and XOR know no floats, floats have 32 or 64 bits, and 16 where the compiler knows such; OWN is of
// bytes.
bool is_legal(Operator op, Type type, unsigned width);

// result[i] = a[i] op b[i], of elements that lie together; legal, and neither COPY, WTIME nor OWN. As for
// what is below.
void combine(Operator op, Type type, unsigned width, const std::byte* a, const std::byte* b,
             std::byte* result, std::uint64_t elements);

// Addresses of the spaces. That of kAbsolute is null; that of kNowhere is memory for whatever traces move, if
// they are executed with data.
struct Memory {
    std::byte* base[kSpaces + 1] = {};

    std::byte* at(const Place& place) const { return base[place.space] + place.offset; }
};

// Integers wrap; what is divided by zero is 0, as a helper of another process must not die of it. The result
// may be one of the sources, but must not overlap them otherwise. `pieces` is the schedule's list; `seconds`
// is what kWtime stores. Not kOwn.
void combine(const Combination& combination, const Piece* pieces, const Memory& memory, double seconds);

}  // namespace velo::goal
