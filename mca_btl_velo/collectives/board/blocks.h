// Operations in which blocks go from some members to some, and not to themselves: through the places of the
// board, or, where they are long, by a read of the giver's memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "collectives/board/direct.h"
#include "collectives/board/runs.h"

namespace velo::board {

struct BlockExchange {
    velo_board_operation operation;
    std::uint64_t bytes;
    const std::byte* gives;  // what this member gives; null: nothing
    std::byte* to;  // where the block of the first member is to be, and how far behind that of the next
    std::uint64_t stride = 0;
    Contribution giving = Contribution::kOne;
    bool stays = true;       // what is given is not overwritten before the operation is over
    std::uint32_t root = 0;  // in its signature
    bool is_mutual = false;  // each needs what all others give
    struct Range {
        std::uint32_t first, end;
    } givers{}, readers{};
};

class Blocks {
 public:
    Blocks(Runs& runs, const Direct::Choice& choice) : runs_(runs), board_(runs.board()), choice_(choice) {}

    [[gnu::always_inline]] void from_root(std::uint32_t root, BlockExchange what) {
        what.root = root;
        what.givers = {root, root + 1};
        what.readers = {0, board_.members()};
        pass(what);
    }
    [[gnu::always_inline]] void to_root(std::uint32_t root, BlockExchange what) {
        what.root = root;
        if (board_.me() == root) what.givers = {0, board_.members()};
        what.readers = {root, root + 1};
        pass(what);
    }
    [[gnu::always_inline]] void among_all(BlockExchange what) {
        what.is_mutual = true;
        what.givers = what.readers = {0, board_.members()};
        pass(what);
    }
    // What this member has for itself, once.
    void keep(std::byte* to, const std::byte* from, std::uint64_t block, Contribution giving) const {
        if (runs_.is_last_run(block, Parts(board_, giving).most)) platform::copy(to, from, block);
    }

 private:
    // What goes directly of it: what this member gives, and what it has taken, a bit for each giver.
    struct Ways {
        bool gives = false;
        std::uint64_t taken = 0;
    };
    [[gnu::always_inline]] void pass(const BlockExchange& what);
    [[gnu::noinline]] void pass_in_runs(const BlockExchange& what, const Parts& parts);
    void take(const BlockExchange& what, std::uint32_t giver, const std::byte* from, std::byte* to,
              std::uint32_t bytes);
    bool may_go_directly(std::uint64_t bytes, const Parts& parts) const;
    Ways choose(const BlockExchange& what);
    bool take_directly(const BlockExchange& what, std::uint32_t giver, std::byte* to, Ways* ways);

    Runs& runs_;
    Board& board_;
    const Direct::Choice choice_;
    std::unique_ptr<Direct> direct_;  // from the first operation that is long enough
};

// So much of its block, of what that giver has published.
inline void Blocks::take(const BlockExchange& what, std::uint32_t giver, const std::byte* from, std::byte* to,
                         std::uint32_t bytes) {
    const std::uint32_t me = board_.me();
    if (what.giving == Contribution::kBlocks) from += std::size_t{me - (me > giver)} * bytes;
    if (what.giving == Contribution::kSpread) from = board_.place(me, bytes);
    platform::copy(to, from, bytes);
    if (what.operation == VELO_BOARD_BCAST) board_.expect_next(giver);
}

inline void Blocks::pass(const BlockExchange& what) {
    const Parts parts(board_, what.giving);
    if (what.bytes > parts.most || what.bytes >= Direct::kLeast) [[unlikely]]
        return pass_in_runs(what, parts);
    if (what.bytes == 0) return;
    const auto bytes = static_cast<std::uint32_t>(what.bytes), given = parts.published(bytes);
    board_.begin(Signature::of(what.operation, {}, what.root), what.is_mutual && runs_.takes_turns(bytes));
    if (what.gives != nullptr) runs_.publish_part(what.giving, what.gives, what.bytes, bytes, 0);
    for (std::uint32_t giver = what.givers.first; giver < what.givers.end; ++giver)
        if (giver != board_.me())
            take(what, giver, runs_.pick_up(giver, given), what.to + giver * what.stride, bytes);
    if (what.is_mutual) board_.all_are_here();
    board_.finish();
}

}  // namespace velo::board
