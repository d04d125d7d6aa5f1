// The runs of a board, as one member takes part in them: it gives, and picks up what others have given. It
// waits for both; or, in operations that nobody waits for, it does first what can be done now.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "collectives/board/board.h"
#include "collectives/board/counts.h"
#include "collectives/board/parts.h"
#include "collectives/board/waiting.h"
#include "platform/copy.h"
#include "platform/failure.h"

namespace velo::board {

// What an operation asks of a member that does not wait in it. Of whom it takes something all publish as many
// bytes.
struct Step {
    std::uint32_t signature = 0;
    bool gives = false;
    Contribution giving = Contribution::kOne;
    bool by_turns = false;
    bool is_mutual = false;  // each needs what all others give
    bool meets = false;      // arrives, and takes the result of whoever is last
    const std::byte* data = nullptr;
    std::uint64_t bytes = 0;           // of all, or of a block
    std::uint32_t first = 0, end = 0;  // takes from these, but for itself
};

class Runs {
 public:
    // `memory`: a board of that shape.
    Runs(std::span<std::byte> memory, const Shape& shape, std::uint32_t me, const BoardContext& around)
        : board_(view(memory.data(), memory.size(), shape, me)), waiting_(around) {}

    Board& board() { return board_; }
    const Board& board() const { return board_; }
    Waiting& waiting() { return waiting_; }
    Counts& counts() { return counts_; }
    const Counts& counts() const { return counts_; }
    // Two members that wait for each other, with a line each.
    bool takes_turns(std::uint64_t bytes) const { return board_.shape().exchanges() && bytes <= kInLine; }

    // Cuts an operation into runs of up to `most` bytes of each block. Calls run(offset, bytes), or only for
    // the run that is under way without waiting.
    template <typename Run>
    [[gnu::always_inline]] void cut(std::uint64_t bytes, std::uint32_t most, Run run) const;
    // The same. Calls give(offset, bytes, ahead), where this member gives, and take(offset, bytes). Where
    // each needs what all others give, each gives that of some runs at once, so that nobody waits for
    // everybody in every run.
    template <typename Give, typename Take>
    [[gnu::always_inline]] void cut(std::uint32_t signature, std::uint64_t bytes, std::uint32_t most,
                                    bool is_mutual, Give give, Take take);

    // In a run. What has been given without waiting is not given again.
    void publish(const std::byte* data, std::uint32_t bytes, std::uint32_t ahead = 0);
    // So much of what this member gives; where that is blocks, they are of `block` bytes.
    void publish_part(Contribution giving, const std::byte* from, std::uint64_t block, std::uint32_t bytes,
                      std::uint32_t ahead);
    // Only where it is.
    void publish_whole(std::uint32_t bytes, const Whole& whole);
    // This member arrives. True: it is the last one, and publishes the result.
    bool arrive() { return given_ ? is_last_ : board_.arrive(); }
    void publish_result(std::uint32_t bytes) {
        board_.publish(board_.result(), bytes);
        counts_.published += 1;
    }
    // What a writer gives in this run, when it is there.
    const std::byte* pick_up(std::uint32_t writer, std::uint32_t bytes);
    // Waits until `ready`. What `fault` finds counts if that is so no more.
    template <typename Ready, typename Fault, typename Slowest>
    [[gnu::always_inline]] void wait(Ready ready, Fault fault, Slowest slowest);

    // --- without waiting: first `give` until it says yes, then `has_all` until it does, then the operation
    // itself, which finds everything there and does one run; all of that again until `is_over`.

    bool give(const Step& step);
    bool has_all(const Step& step);
    // After a run.
    bool is_over(const Step& step);
    // Throws if that can never be.
    void check(const Step& step);
    // The operation itself is such a one; its last run.
    bool is_given() const { return given_; }
    bool is_last_run(std::uint64_t bytes, std::uint32_t most) const {
        return !given_ || (std::uint64_t{run_} + 1) * most >= bytes;
    }

    Straggler slowest() const;
    // `advice`: what to do, unless the fault is another one's.
    [[noreturn]] void fail(const Failure& fault, const char* advice = kSameOperations);

 private:
    static constexpr const char* kSameOperations =
        "All ranks have to call the same collective operations with the same number of bytes";

    void wait_for_place(std::uint32_t bytes, std::uint32_t ahead);
    void publish_blocks(const std::byte* blocks, std::uint64_t block, std::uint32_t bytes,
                        std::uint32_t ahead);
    void spread(const std::byte* blocks, std::uint64_t block, std::uint32_t bytes, std::uint32_t ahead);
    bool give_runs(const Step& step);
    // Who is ahead of its readers waits for several runs at once: each look at where they are takes a line
    // away from them.
    std::uint32_t more_to_wait_for(std::uint32_t bytes) const { return (board_.places_for(bytes) - 1) / 2; }
    // Of the run that is under way without waiting.
    std::uint32_t bytes_of(const Step& step) const {
        const Parts parts(board_, step.giving);
        return parts.published(parts.of_run(step.bytes, run_));
    }
    std::optional<Failure> fault_of_ended();

    Board board_;
    Waiting waiting_;
    Counts counts_{waiting_.long_waits()};
    bool given_ = false, is_last_ = false;    // of the run that is under way without waiting
    std::uint32_t run_ = 0, runs_given_ = 0;  // of the operation that is
    bool has_waited_ = false;
    std::uint32_t seen_ = 0;  // of its writers, those before
};

template <typename Run>
inline void Runs::cut(std::uint64_t bytes, std::uint32_t most, Run run) const {
    const auto part_at = [&](std::uint64_t offset) {
        run(offset, static_cast<std::uint32_t>(std::min<std::uint64_t>(most, bytes - offset)));
    };
    if (given_) [[unlikely]]
        return part_at(std::uint64_t{run_} * most);
    for (std::uint64_t offset = 0; offset < bytes; offset += most) part_at(offset);
}

template <typename Give, typename Take>
inline void Runs::cut(std::uint32_t signature, std::uint64_t bytes, std::uint32_t most, bool is_mutual,
                      Give give, Take take) {
    const std::uint32_t most_ahead = is_mutual ? board_.most_ahead() : 0;
    std::uint64_t given = 0;
    std::uint32_t runs_given = 0, run = 0;
    cut(bytes, most, [&](std::uint64_t offset, std::uint32_t part) {
        board_.begin(signature, is_mutual && takes_turns(bytes) && bytes <= most);
        for (; given < bytes && runs_given - run <= most_ahead; ++runs_given, given += most)
            give(given, static_cast<std::uint32_t>(std::min<std::uint64_t>(most, bytes - given)),
                 runs_given - run);
        if (take(offset, part) && is_mutual) board_.all_are_here(std::min(given_ ? run_ : run, most_ahead));
        board_.finish();
        ++run;
    });
}

// An operation that nobody waits for finds everything there, but where a member has given something else:
// waiting would make progress, and that the same operation again.
template <typename Ready, typename Fault, typename Slowest>
inline void Runs::wait(Ready ready, Fault fault, Slowest slowest) {
    if (given_ && !ready()) [[unlikely]]
        fail(fault().value_or(Failure(VELO_ERR_PROTOCOL, "not all that was to be there is")));
    waiting_.until(
        ready,
        [&] {
            auto found = fault();
            if (!found) found = fault_of_ended();
            if (found && !ready()) fail(*found);
        },
        slowest);
}

inline void Runs::wait_for_place(std::uint32_t bytes, std::uint32_t ahead) {
    if (!board_.may_publish(bytes, ahead)) [[unlikely]] {
        counts_.credit_waits += 1;
        const std::uint32_t more = std::max(ahead, more_to_wait_for(bytes));
        wait([this, bytes, more] { return board_.may_publish(bytes, more); },
             [this] { return board_.fault_of_progress(); }, [this] { return slowest(); });
    }
}

inline void Runs::publish(const std::byte* data, std::uint32_t bytes, std::uint32_t ahead) {
    if (given_) [[unlikely]]
        return;
    wait_for_place(bytes, ahead);
    platform::copy(board_.place_to_store(board_.me(), bytes, ahead), data, bytes);
    board_.publish(board_.me(), bytes, ahead);
    counts_.published += 1;
}

inline void Runs::publish_part(Contribution giving, const std::byte* from, std::uint64_t block,
                               std::uint32_t bytes, std::uint32_t ahead) {
    switch (giving) {
        case Contribution::kOne:
            return publish(from, bytes, ahead);
        case Contribution::kBlocks:
            return publish_blocks(from, block, bytes, ahead);
        case Contribution::kSpread:
            return spread(from, block, bytes, ahead);
    }
}

inline const std::byte* Runs::pick_up(std::uint32_t writer, std::uint32_t bytes) {
    wait([&] { return board_.published(writer, bytes); }, [&] { return board_.fault_of(writer, bytes); },
         [&] {
             const Straggler straggler = slowest();
             return Straggler{writer < board_.members() ? writer : straggler.member, straggler.text};
         });
    counts_.picked_up += 1;
    return board_.place(writer, bytes);
}

}  // namespace velo::board
