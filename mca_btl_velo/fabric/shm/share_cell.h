// The shared memory word of a transfer that two processes carry out together, see rma/share.h.
#pragma once

#include <atomic>
#include <cstdint>

namespace velo::fabric::shm {

// In the initiator's shared memory segment. All zero: nobody has used it.
template <template <class> class Atom>
struct alignas(128) BasicShareCell {
    Atom<std::uint64_t> claims;  // generation 24 bits | units claimed from the front 20 | from the back 20
    Atom<std::uint64_t> helped;  // bytes that the peer has finished in this generation
    Atom<std::uint32_t> failed;  // the peer could not write: what it claimed must be done again
};

using ShareCell = BasicShareCell<std::atomic>;

// The first ones are for gets, which end soon; the others for announced ones.
inline constexpr unsigned kGetCells = 8;
inline constexpr unsigned kShareCells = 32;

}  // namespace velo::fabric::shm
