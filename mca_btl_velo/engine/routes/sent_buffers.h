// Which buffers a process has sent from lately: what it sends from again is in its caches, and perhaps in the
// receiver's. Seen by the address alone.
//
// Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace velo::routes {

class SentBuffers {
 public:
    // Bytes sent since a buffer was, beyond which its data is in no core's own cache any more: several times
    // as many as the largest second-level cache that was met.
    static constexpr std::uint64_t kLately = std::uint64_t{8} << 20;

    // Whether a message was sent from there lately. One of so many bytes is now. Of 16
    // buffers nearly all are found again.
    bool again(const void* buffer, std::size_t bytes) {
        const auto address = reinterpret_cast<std::uintptr_t>(buffer);
        Place& place = places_[(address ^ address >> kFold) / kGrain * kMix >> kShift];
        const bool known = place.address == address && sent_ - place.sent <= kLately;
        sent_ += bytes;
        place = {address, sent_};
        return known;
    }

 private:
    struct Place {
        std::uintptr_t address;
        std::uint64_t sent;  // by all messages up to that one
    };
    static constexpr unsigned kBits = 7, kShift = 64 - kBits;
    static constexpr unsigned kFold = 13;  // strides of powers of two differ in the lower bits, too
    static constexpr std::uint64_t kGrain = 64, kMix = 0x9E3779B97F4A7C15;  // Fibonacci hashing
    std::array<Place, 1U << kBits> places_{};
    std::uint64_t sent_ = 0;
};

}  // namespace velo::routes
