#include "collectives/board/blocks.h"

#include <system_error>

namespace velo::board {

// A run takes a part of each block, and publishes so much.
bool Blocks::may_go_directly(std::uint64_t bytes, const Parts& parts) const {
    return bytes >= Direct::kLeast && bytes / parts.most < Board::kMostSilent &&
           parts.published(parts.most) > kInLine && board_.members() <= Board::kMostReaders &&
           !runs_.is_given();
}

void Blocks::pass_in_runs(const BlockExchange& what, const Parts& parts) {
    const bool is_long = may_go_directly(what.bytes, parts);
    Ways ways;
    if (is_long) ways = choose(what);
    runs_.cut(
        Signature::of(what.operation, {}, what.root), what.bytes, parts.most, what.is_mutual,
        [&](std::uint64_t offset, std::uint32_t part, std::uint32_t ahead) {
            if (what.gives == nullptr) return;
            if (!ways.gives)
                return runs_.publish_part(what.giving, what.gives + offset, what.bytes, part, ahead);
            if (offset == 0)
                runs_.publish_whole(parts.published(part),
                                    {reinterpret_cast<std::uint64_t>(what.gives), what.bytes});
        },
        [&](std::uint64_t offset, std::uint32_t part) {
            for (std::uint32_t giver = what.givers.first; giver < what.givers.end; ++giver) {
                if (giver == board_.me() || (ways.taken >> giver % Board::kMostReaders & 1) != 0) continue;
                const std::byte* const from = runs_.pick_up(giver, parts.published(part));
                std::byte* const to = what.to + giver * what.stride;
                if (is_long && offset == 0 && take_directly(what, giver, to, &ways)) continue;
                take(what, giver, from, to + offset, part);
            }
            return !ways.gives && ways.taken == 0;
        });
    if (ways.gives)
        runs_.wait([&] { return board_.have_finished(what.readers.first, what.readers.end); },
                   [this] { return board_.fault_of_readers(); }, [this] { return runs_.slowest(); });
}

// All of what this member gives goes one way.
[[gnu::cold, gnu::noinline]] Blocks::Ways Blocks::choose(const BlockExchange& what) {
    if (direct_ == nullptr) direct_ = std::make_unique<Direct>(choice_, board_.members());
    Ways ways;
    ways.gives = what.gives != nullptr && what.stays &&
                 board_.is_read_by(what.readers.first, what.readers.end) &&
                 direct_->gives(what.operation, what.bytes);
    return ways;
}

// What that giver has published: false if it is in chunks.
[[gnu::cold, gnu::noinline]] bool Blocks::take_directly(const BlockExchange& what, std::uint32_t giver,
                                                        std::byte* to, Ways* ways) {
    const Whole whole = board_.whole_of(giver);
    if (whole.address == 0) {
        if (direct_->reaches(giver, board_.memory_of(giver))) board_.reads(giver);
        return false;
    }
    if (whole.bytes != what.bytes) runs_.fail(board_.other_bytes(giver, whole.bytes, what.bytes));
    const auto rank = [giver] { return "rank " + std::to_string(giver); };
    if (!direct_->has_reached(giver))
        runs_.fail(
            Failure(VELO_ERR_PROTOCOL, "the line of " + rank() + " has an address that nobody asked for"));
    const std::uint64_t offset = what.giving != Contribution::kOne ? board_.me() * what.bytes : 0;
    if (const int refusal = direct_->read(giver, to, whole.address + offset, what.bytes); refusal != 0)
        runs_.fail(
            Failure(VELO_ERR_RESOURCE, "the block of " + rank() + " cannot be read out of its memory (" +
                                           std::generic_category().message(refusal) + ")"),
            "Where processes give up rights, or send memory that the kernel keeps from others: --mca "
            "btl_velo_single_copy_mechanism copy");
    runs_.counts().direct += 1;
    ways->taken |= std::uint64_t{1} << giver;
    return true;
}

}  // namespace velo::board
