// Which buffers a process has sent from not long ago: what it sends from again lies in its caches, and
// perhaps in the receiver's. Seen by the address alone.
//
// Pure.
#pragma once

#include <array>
#include <cstdint>

namespace velo::routes {

class SentBuffers {
 public:
    // Whether this one was among the last; it is from now on. A program that sends from some 16 buffers in
    // turn finds nearly all again, one that sends from hundreds nearly none.
    bool again(const void* buffer) {
        const auto address = reinterpret_cast<std::uintptr_t>(buffer);
        std::uintptr_t& place = places_[address / kGrain * kMix >> kShift];
        const bool known = place == address;
        place = address;
        return known;
    }

 private:
    static constexpr unsigned kBits = 6, kShift = 64 - kBits;
    static constexpr std::uint64_t kGrain = 64, kMix = 0x9E3779B97F4A7C15;  // Fibonacci hashing
    std::array<std::uintptr_t, 1U << kBits> places_{};
};

}  // namespace velo::routes
