// The mailbox as it lies in shared memory: a ring of 64-byte slots with one write pointer, which the senders
// share, and one read pointer, which the receiver owns (thesis section 5.1, figure 5.1). Offsets only, no
// pointers: every process maps it at its own address. The atomic type is a parameter so that a test scheduler
// can replay interleavings with its own.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "wire/packet.h"

namespace velo::mailbox {

// Two lines: neighbouring lines are prefetched in pairs, and the pointers have different writers.
inline constexpr std::size_t kPointerSpacing = 128;

template <template <class> class Atom = std::atomic>
struct alignas(wire::kPacketBytes) Slot {
    // wire::Header::pack in the first slot of a run, written last, with release: whoever reads a fresh lap
    // here with acquire sees the payload. In the other slots of a run these 8 bytes are payload.
    Atom<std::uint64_t> header;
    std::byte payload[wire::kPayloadBytes];
};

// Both pointers count slots since the start and never wrap; position % capacity is the slot, 1 + position /
// capacity the lap. Invariant: read <= write <= read + capacity. The credit rules keep the right side under
// static and dynamic; under none the writer checks it before it reserves.
template <template <class> class Atom = std::atomic>
struct Pointers {
    alignas(kPointerSpacing) Atom<std::uint64_t> write;
    // Of the receiver, platform/doze.h. In the line that each sender has just written.
    Atom<std::uint32_t> doze;
    alignas(kPointerSpacing) Atom<std::uint64_t> read;
};

static_assert(sizeof(Slot<>) == wire::kPacketBytes);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

// The slot and lap of a position, advanced without division.
struct Cursor {
    std::uint32_t index;
    std::uint16_t lap;

    // `packets` <= capacity.
    void advance(std::uint32_t capacity, std::uint32_t packets) {
        index += packets;
        if (index >= capacity) {
            index -= capacity;
            ++lap;
        }
    }
};

// Byte `place` of a run's payload, which goes on at the `start` of the ring after `contiguous` bytes.
inline std::byte* in_run(std::byte* payload, std::size_t contiguous, std::byte* start, std::size_t place) {
    return place < contiguous ? payload + place : start + (place - contiguous);
}

// Division by the capacity with one multiplication: positions come from a shared counter, so that each
// reservation needs it. Exact for every 64-bit position: the estimate is at most one too low.
class Divider {
 public:
    explicit Divider(std::uint32_t capacity)
        : capacity_(capacity), reciprocal_(~std::uint64_t{0} / capacity) {}

    std::uint32_t capacity() const { return capacity_; }
    [[gnu::always_inline]] Cursor locate(std::uint64_t position) const {
        __extension__ using Wide = unsigned __int128;
        auto quotient = static_cast<std::uint64_t>(static_cast<Wide>(position) * reciprocal_ >> 64);
        std::uint64_t index = position - quotient * capacity_;
        while (index >= capacity_) {
            index -= capacity_;
            ++quotient;
        }
        return Cursor{static_cast<std::uint32_t>(index), static_cast<std::uint16_t>(quotient + 1)};
    }

 private:
    std::uint32_t capacity_;
    std::uint64_t reciprocal_;
};

}  // namespace velo::mailbox
