// Which of two ways messages of a size take, tried on the messages themselves: blocks of them go one way and
// the other, in an order that looks like chance, and a block is judged by how long it takes from its first
// message to its last, for each byte. What the peers do with the messages is in that, and what the program
// does between them, which makes blocks longer and never shorter: the shortest block of each way counts. The
// way in use is left for one that is clearly shorter, and both are tried again after a number of messages
// that grows as long as the outcome stays the same.
//
// Pure: the clock and the ways are the user's.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace velo::endpoint {

// Sizes from kLeast on, a power of two, in kClasses classes of a factor of two, the last one without end.
template <std::size_t kLeast, unsigned kClasses, std::uint32_t kBlock>
class Contest {
    static_assert(std::has_single_bit(kLeast));

 public:
    static constexpr std::uint32_t kBlocks = 8, kUncounted = kBlock / 8;
    static constexpr std::uint32_t kTrial = kBlocks * (kUncounted + kBlock);
    static constexpr std::uint32_t kShortestRun = 1024, kLongestRun = 65536;
    static constexpr float kClearly = 0.95F;

    // Processes that send to each other are to try in different orders.
    explicit Contest(std::uint32_t seed) : seed_(seed) {}

    // Messages of `bytes` >= kLeast go the first way, with which every size begins.
    bool first(std::size_t bytes) const { return !classes_[index_of(bytes)].second; }
    // One has gone the way that is due. ticks() is asked where a block begins or ends.
    template <typename Clock>
    void went(std::size_t bytes, Clock&& ticks) {
        Class& size = classes_[index_of(bytes)];
        size.bytes += bytes;
        if (--size.left == 0) turn(size, ticks());
    }

 private:
    struct Class {
        std::uint32_t left = kUncounted;  // messages until the next turn
        std::uint32_t run = kShortestRun;
        std::uint64_t bytes = 0, began = 0;     // of the block under way
        std::array<float, 2> shortest = kNone;  // ticks a byte
        std::uint8_t step = 0;  // of a trial: uncounted messages and a block in turn; kSteps: none
        std::uint8_t trials = 0;
        bool second = false, chosen = false;
    };

    static constexpr std::array<float, 2> kNone{std::numeric_limits<float>::max(),
                                                std::numeric_limits<float>::max()};
    static constexpr std::uint8_t kSteps = 2 * kBlocks;
    // Bit i: block i goes the second way. Four of each, the first one never.
    static constexpr std::array<std::uint8_t, 4> kOrders{0x66, 0x5A, 0x3C, 0x96};

    unsigned index_of(std::size_t bytes) const {
        return std::min(static_cast<unsigned>(std::bit_width(bytes / kLeast)), kClasses) - 1;
    }
    void turn(Class& size, std::uint64_t now) {
        if (size.step < kSteps && size.step % 2 == 1) {
            float& shortest = size.shortest[size.second ? 1 : 0];
            shortest =
                std::min(shortest, static_cast<float>(now - size.began) / static_cast<float>(size.bytes));
        }
        size.step = size.step == kSteps ? 0 : size.step + 1;
        size.bytes = 0;
        size.began = now;
        if (size.step == kSteps) return decide(size);
        const unsigned order = kOrders[(seed_ + size.trials) % kOrders.size()];
        size.second = (order >> size.step / 2 & 1) != 0;
        size.left = size.step % 2 == 0 ? kUncounted : kBlock;
    }
    void decide(Class& size) {
        const std::size_t own = size.chosen ? 1 : 0;
        const bool changes = size.shortest[1 - own] < kClearly * size.shortest[own];
        size.chosen ^= changes;
        size.run = changes ? kShortestRun : std::min(4 * size.run, kLongestRun);
        size.second = size.chosen;
        size.left = size.run;
        size.shortest = kNone;
        ++size.trials;
    }

    std::uint32_t seed_;
    std::array<Class, kClasses> classes_{};
};

}  // namespace velo::endpoint
