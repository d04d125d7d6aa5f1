#include "collectives/board/runs.h"

#include <algorithm>

namespace velo::board {

void Runs::fail(const Failure& fault, const char* advice) {
    board_.end();
    std::string text =
        "the board of " + waiting_.name() + ", run " + std::to_string(board_.run()) + ": " + fault.what();
    if (fault.status() != VELO_ERR_REMOTE) text += std::string(". ") + advice;
    throw Failure(fault.status(), text);
}

std::optional<Failure> Runs::fault_of_ended() {
    const auto ended = waiting_.ended(board_.members(), board_.me());
    if (!ended) return {};
    return Failure(VELO_ERR_REMOTE, "rank " + std::to_string(*ended) + " has ended, as one that is killed");
}

// `bytes` of each of the other members' blocks, which lie `block` apart.
void Runs::publish_blocks(const std::byte* blocks, std::uint64_t block, std::uint32_t bytes,
                          std::uint32_t ahead) {
    if (given_) [[unlikely]]
        return;
    const std::uint32_t others = board_.members() - 1, me = board_.me();
    wait_for_place(bytes * others, ahead);
    std::byte* place = board_.place_to_store(me, bytes * others, ahead);
    if (block == bytes) {
        platform::copy(place, blocks, std::size_t{bytes} * me);
        platform::copy(place + std::size_t{bytes} * me, blocks + (me + 1) * block,
                       std::size_t{bytes} * (others - me));
    } else {
        for (std::uint32_t i = 0; i < board_.members(); ++i)
            if (i != me) platform::copy(place + std::size_t{i - (i > me)} * bytes, blocks + i * block, bytes);
    }
    board_.publish(me, bytes * others, ahead);
    counts_.published += 1;
}

// The same, each in the place of the member that it is for, which gives nothing in this run.
void Runs::spread(const std::byte* blocks, std::uint64_t block, std::uint32_t bytes, std::uint32_t ahead) {
    if (given_) [[unlikely]]
        return;
    wait_for_place(bytes, ahead);
    for (std::uint32_t i = 0; i < board_.members(); ++i) {
        if (i == board_.me()) continue;
        platform::copy(board_.place_to_store(i, bytes, ahead), blocks + i * block, bytes);
    }
    board_.publish(board_.me(), bytes, ahead);
    counts_.published += 1;
}

[[gnu::cold]] void Runs::publish_whole(std::uint32_t bytes, const Whole& whole) {
    wait_for_place(bytes, 0);
    board_.publish(board_.me(), bytes, 0, whole);
    counts_.published += 1;
}

Straggler Runs::slowest() const {
    const Board::Slowest slowest = board_.slowest();
    return {slowest.member == board_.me() ? Straggler::kNobody : slowest.member,
            "run " + std::to_string(board_.run()) + " waits for rank " + std::to_string(slowest.member) +
                ", which is at " + std::to_string(slowest.run)};
}

bool Runs::give(const Step& step) {
    board_.begin(step.signature, step.by_turns);
    if (step.gives && !give_runs(step)) {
        if (!has_waited_) counts_.credit_waits += 1;
        has_waited_ = true;
        return false;
    }
    if (step.meets) is_last_ = board_.arrive();
    given_ = true;
    counts_.requests += run_ == 0 ? 1 : 0;
    has_waited_ = false;
    seen_ = step.first;
    return true;
}

// What is due of this run, and of those after it.
bool Runs::give_runs(const Step& step) {
    const Parts parts(board_, step.giving);
    const std::uint32_t most_ahead = step.is_mutual ? board_.most_ahead() : 0;
    for (std::uint64_t offset;
         (offset = std::uint64_t{runs_given_} * parts.most) < step.bytes || runs_given_ == 0; ++runs_given_) {
        const std::uint32_t ahead = runs_given_ - run_, part = parts.of_run(step.bytes, runs_given_),
                            bytes = parts.published(part);
        if (ahead > most_ahead) break;
        const std::uint32_t more = has_waited_ ? std::max(ahead, more_to_wait_for(bytes)) : ahead;
        if (!board_.may_publish(bytes, more)) return ahead > 0;
        publish_part(step.giving, step.data + offset, step.bytes, part, ahead);
    }
    return true;
}

bool Runs::is_over(const Step& step) {
    given_ = false;
    if (std::uint64_t{++run_} * Parts(board_, step.giving).most < step.bytes) return false;
    run_ = runs_given_ = 0;
    return true;
}

bool Runs::has_all(const Step& step) {
    if (step.meets) return is_last_ || board_.published(board_.result(), bytes_of(step));
    for (; seen_ < step.end; ++seen_)
        if (seen_ != board_.me() && !board_.published(seen_, bytes_of(step))) return false;
    return true;
}

void Runs::check(const Step& step) {
    auto fault = given_ ? board_.fault_of(step.meets ? board_.result() : seen_, bytes_of(step))
                        : board_.fault_of_progress();
    if (!fault) fault = fault_of_ended();
    if (fault && !(given_ ? has_all(step) : board_.may_publish(bytes_of(step)))) fail(*fault);
}

}  // namespace velo::board
