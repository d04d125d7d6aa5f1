// From which request of a communicator on its requests go over a board. Requests are counted by each member,
// and those of Open MPI itself may come before the board is there at one member and after it at another one:
// so that all of them take the same way, the first one is fixed in a word that all see.
#pragma once

#include <atomic>
#include <cstdint>

#include "board/layout.h"

namespace velo::board {

template <template <class> class Atom = std::atomic>
class BasicBeginning {
 public:
    explicit BasicBeginning(Beginning<Atom>* beginning) : word_(&beginning->word) {}

    // Whether this request goes over the board. Of whoever has opened it; until it is settled none does, nor
    // does any before it at anybody else.
    bool serves(std::uint64_t request) const noexcept {
        // relaxed: it is all that is agreed upon here.
        std::uint64_t word = word_->load(std::memory_order_relaxed);
        while ((word & kSettled) == 0) {
            if (word > request) return false;
            if (word_->compare_exchange_weak(word, request + 1, std::memory_order_relaxed,
                                             std::memory_order_relaxed))
                return false;
        }
        return request >= (word & ~kSettled);
    }
    // When all members have opened it, and asked for the last request that went another way.
    void settle() const noexcept { word_->fetch_or(kSettled, std::memory_order_relaxed); }

 private:
    static constexpr std::uint64_t kSettled = std::uint64_t{1} << 63;

    Atom<std::uint64_t>* word_;  // all requests before this one go another way; settled: and no more
};

}  // namespace velo::board
