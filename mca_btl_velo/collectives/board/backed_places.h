// Which places of a board have memory. All members ask for the same in the same order, and find alike.
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/board/board.h"
#include "collectives/board/parts.h"
#include "collectives/board/store.h"

namespace velo::board {

// In whose places an operation stores: blocks of so many bytes.
enum class Writers : std::uint8_t { kRoot, kAllButRoot, kAll, kAllAndResult };
struct Stores {
    std::uint64_t bytes;
    Writers writers;
    Contribution giving = Contribution::kOne;
    std::uint32_t root = 0;
};

class BackedPlaces {
 public:
    // `store`: where the board lies; null: all of its memory is there.
    BackedPlaces(const Board& board, Store* store)
        : board_(board),
          store_(store),
          backed_(board.shape().writers(), 0),
          everywhere_(store == nullptr ? Backing::kAll : 0) {}

    // The places that the writers store in have memory. Throws Failure.
    bool provide(const Stores& what) {
        const std::uint32_t kinds = kinds_of(what);
        return (everywhere_ & kinds) == kinds || back(what, kinds);
    }

 private:
    std::uint32_t kinds_of(const Stores& what) const {
        const Parts parts(board_, what.giving);
        const auto kind_of = [&](std::uint64_t part) {
            return board_.kind_of(parts.published(static_cast<std::uint32_t>(part)));
        };
        return what.bytes <= parts.most ? kind_of(what.bytes)
                                        : kind_of(parts.most) | kind_of(what.bytes % parts.most);
    }
    bool back(const Stores& what, std::uint32_t kinds);

    const Board& board_;
    Store* store_;
    std::vector<std::uint32_t> backed_;  // of each writer, and of the result: kinds of places
    std::uint32_t everywhere_;
};

}  // namespace velo::board
