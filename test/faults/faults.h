// What the system refuses in a test: the n-th allocation, memory of files, calls that a signal interrupts.
// This program replaces operator new and posix_fallocate; without a fault they do what they always do.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace velo::test {

struct Faults {
    // Allocations by operator new that succeed while counting before one fails.
    std::uint64_t allocations_left = UINT64_MAX;
    bool all_later_fail = false;
    bool counting = false;
    std::uint64_t failed = 0, asked_for = 0;
    // A signal comes in every call that allocates more of a file at once; 0: none comes.
    std::size_t interrupted_beyond = 0;
    std::uint64_t interrupted = 0;
    bool no_room = false;  // files get no more memory
};
inline Faults faults;
// Blocks of memory that have been given out and not given back.
inline std::atomic<std::int64_t> live_blocks;

}  // namespace velo::test
