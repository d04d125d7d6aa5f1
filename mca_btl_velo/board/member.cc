#include "board/member.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <vector>

#include "goal/combine.h"
#include "platform/copy.h"
#include "platform/failure.h"

namespace velo::board {
namespace {

// Cuts `bytes` of each block into what one run takes; calls run(offset, bytes).
template <typename Run>
[[gnu::always_inline]] inline void cut(std::uint64_t bytes, std::uint32_t most, Run run) {
    for (std::uint64_t offset = 0; offset < bytes; offset += most)
        run(offset, static_cast<std::uint32_t>(std::min<std::uint64_t>(most, bytes - offset)));
}

void combine(const Reduction& by, const std::byte* a, const std::byte* b, std::byte* to,
             std::uint32_t bytes) {
    goal::combine(by.op, by.type, by.width, a, b, to, bytes / (by.width / 8));
}

std::uint32_t signature_of(velo_board_operation operation, std::uint32_t root = 0, const Reduction& by = {}) {
    return Signature::of(operation, by.op, root);
}

// All members of this process, and what those that are gone have counted.
struct Register {
    std::mutex mutex;
    std::vector<const Member*> open;
    Totals gone{};
};
Register& all() {
    static Register all;
    return all;
}

}  // namespace

Totals& Totals::operator+=(const Totals& other) {
    boards += other.boards;
    published += other.published;
    picked_up += other.picked_up;
    credit_waits += other.credit_waits;
    long_waits += other.long_waits;
    requests += other.requests;
    return *this;
}

Totals totals() {
    std::lock_guard lock(all().mutex);
    Totals sum = all().gone;
    for (const Member* member : all().open) sum += member->counted();
    return sum;
}

Member::Member(std::span<std::byte> memory, const Shape& shape, std::uint32_t me, const Surroundings& around,
               Store* store)
    : board_(view(memory.data(), memory.size(), shape, me)),
      waiting_(around),
      store_(store),
      backed_(store == nullptr ? UINT32_MAX : 0),
      result_backed_(backed_),
      scratch_(std::make_unique_for_overwrite<std::byte[]>(shape.chunk)) {
    std::lock_guard lock(all().mutex);
    all().open.push_back(this);
}

Member::~Member() {
    std::lock_guard lock(all().mutex);
    all().gone += counted();
    std::erase(all().open, this);
}

void Member::fail(const Failure& fault) {
    board_.end();
    throw Failure(fault.status(), "the board of " + waiting_.name() + ", run " +
                                      std::to_string(board_.run()) + ": " + fault.what() +
                                      ". All ranks have to call the same collective operations with the "
                                      "same number of bytes");
}

// Until `ready`. What `fault` finds counts if that is so no more.
template <typename Ready, typename Fault, typename Slowest>
[[gnu::always_inline]] inline void Member::wait(Ready ready, Fault fault, Slowest slowest) {
    waiting_.until(
        ready,
        [&] {
            if (auto found = fault(); found && !ready()) fail(*found);
        },
        slowest);
}

// Where this member may store what it gives.
inline std::byte* Member::own_place(std::uint32_t bytes, std::uint32_t ahead) {
    if (!board_.may_publish(bytes, ahead)) [[unlikely]] {
        credit_waits_ += 1;
        const std::uint32_t more = std::max(ahead, more_to_wait_for(bytes));
        wait([this, bytes, more] { return board_.may_publish(bytes, more); },
             [this] { return board_.fault_of_progress(); }, [this] { return slowest(); });
    }
    back(board_.me(), bytes, ahead, &backed_);
    return board_.own_place(bytes, ahead);
}

// Before this member stores in a chunk of `writer`.
inline void Member::back(std::uint32_t writer, std::uint32_t bytes, std::uint32_t ahead,
                         std::uint32_t* backed) {
    constexpr std::uint32_t kAll = (1U << Board::kParts) - 1;
    if (bytes <= kInLine || (*backed & kAll) == kAll) [[likely]]
        return;
    const std::uint32_t part = board_.part_of_chunks(ahead);
    if ((*backed & 1U << part) != 0) return;
    const std::span<std::byte> chunks = board_.chunks_of(writer, part);
    try {
        store_->back(chunks.data(), chunks.size());
    } catch (const Failure& failure) {
        board_.end();
        throw Failure(failure.status(), "the board of " + waiting_.name() + ": " + failure.what());
    }
    *backed |= 1U << part;
}

inline void Member::publish(const std::byte* data, std::uint32_t bytes, std::uint32_t ahead) {
    if (given_) [[unlikely]]
        return;
    platform::copy(own_place(bytes, ahead), data, bytes);
    board_.publish(board_.me(), bytes, ahead);
    published_ += 1;
}

// `bytes` of each of the other members' blocks, which lie `block` apart.
void Member::publish_blocks(const std::byte* blocks, std::uint64_t block, std::uint32_t bytes,
                            std::uint32_t ahead) {
    if (given_) [[unlikely]]
        return;
    const std::uint32_t others = board_.members() - 1, me = board_.me();
    std::byte* place = own_place(bytes * others, ahead);
    if (block == bytes) {
        platform::copy(place, blocks, std::size_t{bytes} * me);
        platform::copy(place + std::size_t{bytes} * me, blocks + (me + 1) * block,
                       std::size_t{bytes} * (others - me));
    } else {
        for (std::uint32_t i = 0; i < board_.members(); ++i)
            if (i != me) platform::copy(place + slot(i, me) * bytes, blocks + i * block, bytes);
    }
    board_.publish(me, bytes * others, ahead);
    published_ += 1;
}

// What a writer gives in this run, when it is there.
inline const std::byte* Member::pick_up(std::uint32_t writer, std::uint32_t bytes) {
    wait([&] { return board_.published(writer, bytes); }, [&] { return board_.fault_of(writer, bytes); },
         [&] {
             const Whom whom = slowest();
             return Whom{writer < board_.members() ? writer : whom.member, whom.text};
         });
    picked_up_ += 1;
    return board_.place(writer, bytes);
}

// This member's block among those of `writer`.
const std::byte* Member::pick_up_block(std::uint32_t writer, std::uint32_t bytes) {
    return pick_up(writer, bytes * (board_.members() - 1)) + slot(board_.me(), writer) * bytes;
}

Whom Member::slowest() const {
    const Board::Slowest slowest = board_.slowest();
    return {slowest.member == board_.me() ? Whom::kNobody : slowest.member,
            "run " + std::to_string(board_.run()) + " waits for rank " + std::to_string(slowest.member) +
                ", which is at " + std::to_string(slowest.run)};
}

// An operation in which each needs what all others give, in runs of up to `most` bytes. Each gives that of
// some runs at once, so that nobody waits for everybody in every run.
template <typename Give, typename Take>
[[gnu::always_inline]] inline void Member::exchange(std::uint32_t signature, std::uint64_t bytes,
                                                    std::uint32_t most, Give give, Take take) {
    const std::uint32_t most_ahead = board_.most_ahead();
    std::uint64_t given = 0;
    std::uint32_t ahead = 0, before = 0;  // runs of this operation
    cut(bytes, most, [&](std::uint64_t offset, std::uint32_t part) {
        board_.begin(signature, takes_turns(bytes) && bytes <= most);
        for (; given < bytes && ahead <= most_ahead; ++ahead, given += most)
            give(given, static_cast<std::uint32_t>(std::min<std::uint64_t>(most, bytes - given)), ahead);
        take(offset, part);
        board_.all_are_here(std::min(before++, most_ahead));
        board_.finish();
        --ahead;
    });
}

// In the order of the ranks, whoever is there first.
template <typename Operand>
inline void Member::fold(const Reduction& by, std::uint32_t end, std::byte* to, std::uint32_t bytes,
                         Operand operand) {
    const std::byte* first = operand(0);
    if (end == 1) {
        std::memmove(to, first, bytes);
        return;
    }
    for (std::uint32_t member = 1; member < end; ++member, first = to)
        combine(by, first, operand(member), to, bytes);
}

bool Member::give(const Step& step) {
    board_.begin(step.signature, step.by_turns);
    if (step.gives) {
        if (!board_.may_publish(bytes_of(step), has_waited_ ? more_to_wait_for(bytes_of(step)) : 0)) {
            if (!has_waited_) credit_waits_ += 1;
            has_waited_ = true;
            return false;
        }
        if (step.in_blocks)
            publish_blocks(step.data, step.bytes, step.bytes);
        else
            publish(step.data, step.bytes);
    }
    if (step.meets) is_last_ = board_.arrive();
    given_ = true;
    requests_ += 1;
    has_waited_ = false;
    seen_ = step.first;
    return true;
}

bool Member::has_all(const Step& step) {
    if (step.meets) return is_last_ || board_.published(board_.result(), step.bytes);
    for (; seen_ < step.end; ++seen_)
        if (seen_ != board_.me() && !board_.published(seen_, bytes_of(step))) return false;
    return true;
}

void Member::check(const Step& step) {
    const auto fault = given_ ? board_.fault_of(step.meets ? board_.result() : seen_, bytes_of(step))
                              : board_.fault_of_progress();
    if (fault && !(given_ ? has_all(step) : board_.may_publish(bytes_of(step)))) fail(*fault);
}

void Member::barrier() {
    board_.begin(signature_of(VELO_BOARD_BARRIER), exchanges());
    if (exchanges()) {
        publish(nullptr, 0);
        for (std::uint32_t i = 0; i < board_.members(); ++i)
            if (i != board_.me()) (void)pick_up(i, 0);
    } else if (arrive()) {
        board_.publish(board_.result(), 0);
        published_ += 1;
    } else {
        (void)pick_up(board_.result(), 0);
    }
    board_.all_are_here();
    board_.finish();
}

void Member::bcast(std::uint32_t root, std::byte* data, std::uint64_t bytes) {
    const std::uint32_t signature = signature_of(VELO_BOARD_BCAST, root);
    cut(bytes, shape().chunk, [&](std::uint64_t offset, std::uint32_t part) {
        board_.begin(signature);
        if (board_.me() == root) {
            publish(data + offset, part);
        } else {
            platform::copy(data + offset, pick_up(root, part), part);
            board_.expect_next(root);
        }
        board_.finish();
    });
}

void Member::reduce(const Reduction& by, std::uint32_t root, const std::byte* from, std::byte* to,
                    std::uint64_t bytes) {
    const std::uint32_t signature = signature_of(VELO_BOARD_REDUCE, root, by);
    cut(bytes, shape().chunk, [&](std::uint64_t offset, std::uint32_t part) {
        board_.begin(signature);
        if (board_.me() != root) {
            publish(from + offset, part);
        } else {
            const std::byte* own = from != nullptr ? from + offset : scratch_.get();
            if (from == nullptr) platform::copy(scratch_.get(), to + offset, part);
            fold(by, board_.members(), to + offset, part,
                 [&](std::uint32_t i) { return i == root ? own : pick_up(i, part); });
        }
        board_.finish();
    });
}

void Member::allreduce(const Reduction& by, const std::byte* from, std::byte* to, std::uint64_t bytes) {
    const std::uint32_t signature = signature_of(VELO_BOARD_ALLREDUCE, 0, by);
    const auto fold_all = [&](std::byte* into, std::uint64_t offset, std::uint32_t part) {
        fold(by, board_.members(), into, part, [&](std::uint32_t i) -> const std::byte* {
            if (i != board_.me()) return pick_up(i, part);
            return from != nullptr ? from + offset : board_.place(i, part);
        });
    };
    const auto give = [&](std::uint64_t offset, std::uint32_t part, std::uint32_t ahead) {
        publish((from != nullptr ? from : to) + offset, part, ahead);
    };
    if (exchanges())
        return exchange(signature, bytes, shape().chunk, give, [&](std::uint64_t offset, std::uint32_t part) {
            fold_all(to + offset, offset, part);
        });
    cut(bytes, shape().chunk, [&](std::uint64_t offset, std::uint32_t part) {
        board_.begin(signature);
        give(offset, part, 0);
        if (arrive()) {
            back(board_.result(), part, 0, &result_backed_);
            std::byte* const result = board_.place(board_.result(), part);
            fold_all(result, offset, part);
            board_.publish(board_.result(), part);
            published_ += 1;
            platform::copy(to + offset, result, part);
        } else {
            platform::copy(to + offset, pick_up(board_.result(), part), part);
        }
        board_.all_are_here();
        board_.finish();
    });
}

// `end`: up to which rank.
void Member::fold_lower(std::uint32_t signature, const Reduction& by, std::uint32_t end,
                        const std::byte* from, std::byte* to, std::uint64_t bytes) {
    cut(bytes, shape().chunk, [&](std::uint64_t offset, std::uint32_t part) {
        board_.begin(signature);
        publish((from != nullptr ? from : to) + offset, part);
        if (end > 0)
            fold(by, end, to + offset, part, [&](std::uint32_t i) {
                return i == board_.me() ? board_.place(i, part) : pick_up(i, part);
            });
        board_.finish();
    });
}

void Member::scan(const Reduction& by, const std::byte* from, std::byte* to, std::uint64_t bytes) {
    fold_lower(signature_of(VELO_BOARD_SCAN, 0, by), by, board_.me() + 1, from, to, bytes);
}

void Member::exscan(const Reduction& by, const std::byte* from, std::byte* to, std::uint64_t bytes) {
    fold_lower(signature_of(VELO_BOARD_EXSCAN, 0, by), by, board_.me(), from, to, bytes);
}

void Member::gather(std::uint32_t root, const std::byte* from, std::byte* to, std::uint64_t block) {
    const std::uint32_t signature = signature_of(VELO_BOARD_GATHER, root);
    cut(block, shape().chunk, [&](std::uint64_t offset, std::uint32_t part) {
        board_.begin(signature);
        if (board_.me() != root) {
            publish(from + offset, part);
        } else {
            for (std::uint32_t i = 0; i < board_.members(); ++i)
                if (i != root) platform::copy(to + i * block + offset, pick_up(i, part), part);
        }
        board_.finish();
    });
    if (board_.me() == root && from != nullptr) platform::copy(to + root * block, from, block);
}

void Member::scatter(std::uint32_t root, const std::byte* from, std::byte* to, std::uint64_t block) {
    const std::uint32_t signature = signature_of(VELO_BOARD_SCATTER, root);
    cut(block, part_of_blocks(), [&](std::uint64_t offset, std::uint32_t part) {
        board_.begin(signature);
        if (board_.me() == root)
            publish_blocks(from + offset, block, part);
        else
            platform::copy(to + offset, pick_up_block(root, part), part);
        board_.finish();
    });
    if (board_.me() == root && to != nullptr) platform::copy(to, from + root * block, block);
}

void Member::allgather(const std::byte* from, std::byte* to, std::uint64_t block) {
    const std::byte* own = from != nullptr ? from : to + board_.me() * block;
    exchange(
        signature_of(VELO_BOARD_ALLGATHER), block, shape().chunk,
        [&](std::uint64_t offset, std::uint32_t part, std::uint32_t ahead) {
            publish(own + offset, part, ahead);
        },
        [&](std::uint64_t offset, std::uint32_t part) {
            for (std::uint32_t i = 0; i < board_.members(); ++i)
                if (i != board_.me()) platform::copy(to + i * block + offset, pick_up(i, part), part);
        });
    if (from != nullptr) platform::copy(to + board_.me() * block, from, block);
}

void Member::alltoall(const std::byte* from, std::byte* to, std::uint64_t block) {
    exchange(
        signature_of(VELO_BOARD_ALLTOALL), block, part_of_blocks(),
        [&](std::uint64_t offset, std::uint32_t part, std::uint32_t ahead) {
            publish_blocks((from != nullptr ? from : to) + offset, block, part, ahead);
        },
        [&](std::uint64_t offset, std::uint32_t part) {
            for (std::uint32_t i = 0; i < board_.members(); ++i)
                if (i != board_.me()) platform::copy(to + i * block + offset, pick_up_block(i, part), part);
        });
    if (from != nullptr) platform::copy(to + board_.me() * block, from + board_.me() * block, block);
}

void Member::reduce_scatter(const Reduction& by, const std::byte* from, std::byte* to, std::uint64_t bytes,
                            std::uint64_t begin, std::uint64_t end) {
    const std::uint32_t signature = signature_of(VELO_BOARD_REDUCE_SCATTER, 0, by);
    cut(bytes, shape().chunk, [&](std::uint64_t offset, std::uint32_t part) {
        board_.begin(signature);
        publish((from != nullptr ? from : to) + offset, part);
        const std::uint64_t first = std::max(begin, offset), last = std::min(end, offset + part);
        if (first < last) {
            fold(by, board_.members(), to + (first - begin), static_cast<std::uint32_t>(last - first),
                 [&](std::uint32_t i) {
                     const std::byte* theirs = i == board_.me() ? board_.place(i, part) : pick_up(i, part);
                     return theirs + (first - offset);
                 });
            board_.all_are_here();
        }
        board_.finish();
    });
}

}  // namespace velo::board
