// How what a member gives is cut into what one run takes.
#pragma once

#include <algorithm>
#include <cstdint>

#include "collectives/board/board.h"

namespace velo::board {

// What a member gives in an operation: the same to all who read it; a block for each other member, together;
// or each block in the place of its reader, as nobody else gives anything.
enum class Contribution : std::uint8_t { kOne, kBlocks, kSpread };

struct Parts {
    Parts(const Board& board, Contribution giving)
        : others(std::max(board.members() - 1, 1U)),
          most(giving == Contribution::kBlocks
                   ? board.shape().chunk / others / Shape::kLeastPart * Shape::kLeastPart
                   : board.shape().chunk),
          copies(giving == Contribution::kBlocks ? board.members() - 1 : 1) {}

    // What a writer publishes of so many bytes of a block, or of all.
    std::uint32_t published(std::uint32_t bytes) const { return bytes * copies; }
    // What that run takes of so many bytes.
    std::uint32_t of_run(std::uint64_t bytes, std::uint32_t run) const {
        return static_cast<std::uint32_t>(std::min<std::uint64_t>(most, bytes - std::uint64_t{run} * most));
    }

    std::uint32_t others;
    std::uint32_t most;    // bytes of a block, or of all, that a run takes
    std::uint32_t copies;  // of blocks: one for each other member
};

}  // namespace velo::board
