// The shared memory word of a transfer that two processes carry out together, see rma/share.h.
#pragma once

#include <atomic>
#include <cstdint>

namespace velo::fabric::shm {

// In the initiator's shared memory segment. All zero: nobody has used it.
struct alignas(128) ShareCell {
    std::atomic<std::uint64_t>
        claims;  // generation 24 bits | units claimed from the front 20 | from the back 20
    std::atomic<std::uint64_t> helped;  // bytes that the peer has finished in this generation
    std::atomic<std::uint32_t> failed;  // the peer could not write: what it claimed must be done again
};

inline constexpr unsigned kShareCells = 8;

}  // namespace velo::fabric::shm
