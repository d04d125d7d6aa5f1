#include "board/member.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <system_error>
#include <vector>

#include "goal/combine.h"
#include "platform/copy.h"
#include "platform/failure.h"

namespace velo::board {
namespace {

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
    direct += other.direct;
    return *this;
}

Totals totals() {
    std::lock_guard lock(all().mutex);
    Totals sum = all().gone;
    for (const Member* member : all().open) sum += member->counted();
    return sum;
}

Member::Member(std::span<std::byte> memory, const Shape& shape, std::uint32_t me, const BoardContext& around,
               Store* store, const Direct::Choice& choice)
    : board_(view(memory.data(), memory.size(), shape, me)),
      waiting_(around),
      store_(store),
      backed_(shape.writers(), 0),
      backed_everywhere_(store == nullptr ? Backing::kAll : 0),
      scratch_(std::make_unique_for_overwrite<std::byte[]>(shape.chunk)),
      choice_(choice) {
    board_.introduce(Direct::memory(choice));
    std::lock_guard lock(all().mutex);
    all().open.push_back(this);
}

Member::~Member() {
    std::lock_guard lock(all().mutex);
    all().gone += counted();
    std::erase(all().open, this);
}

void Member::fail(const Failure& fault, const char* advice) {
    board_.end();
    std::string text =
        "the board of " + waiting_.name() + ", run " + std::to_string(board_.run()) + ": " + fault.what();
    if (fault.status() != VELO_ERR_REMOTE) text += std::string(". ") + advice;
    throw Failure(fault.status(), text);
}

std::optional<Failure> Member::fault_of_ended() {
    const auto ended = waiting_.ended(board_.members(), board_.me());
    if (!ended) return {};
    return Failure(VELO_ERR_REMOTE, "rank " + std::to_string(*ended) + " has ended, as one that is killed");
}

// Until `ready`. What `fault` finds counts if that is so no more. An operation that nobody waits for finds
// everything there, but where a member has given something else: waiting would make progress, and that the
// same operation again.
template <typename Ready, typename Fault, typename Slowest>
[[gnu::always_inline]] inline void Member::wait(Ready ready, Fault fault, Slowest slowest) {
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

inline void Member::wait_for_place(std::uint32_t bytes, std::uint32_t ahead) {
    if (!board_.may_publish(bytes, ahead)) [[unlikely]] {
        credit_waits_ += 1;
        const std::uint32_t more = std::max(ahead, more_to_wait_for(bytes));
        wait([this, bytes, more] { return board_.may_publish(bytes, more); },
             [this] { return board_.fault_of_progress(); }, [this] { return slowest(); });
    }
}

// Cuts `bytes` of each block into what one run takes; calls run(offset, bytes), or only for the run that is
// under way without waiting.
template <typename Run>
[[gnu::always_inline]] inline void Member::cut(std::uint64_t bytes, std::uint32_t most, Run run) const {
    const auto part_at = [&](std::uint64_t offset) {
        run(offset, static_cast<std::uint32_t>(std::min<std::uint64_t>(most, bytes - offset)));
    };
    if (given_) [[unlikely]]
        return part_at(std::uint64_t{run_} * most);
    for (std::uint64_t offset = 0; offset < bytes; offset += most) part_at(offset);
}

// Where this member may store what it gives.
inline std::byte* Member::own_place(std::uint32_t bytes, std::uint32_t ahead) {
    wait_for_place(bytes, ahead);
    return board_.place_to_store(board_.me(), bytes, ahead);
}

// What all members find alike, as they ask for the same in the same order.
bool Member::back(const Stores& what, std::uint32_t kinds) {
    const std::uint32_t end = what.writers == Writers::kAllAndResult
                                  ? static_cast<std::uint32_t>(backed_.size())
                                  : board_.members();
    for (std::uint32_t writer = 0; writer < end; ++writer) {
        const bool is_root = writer == what.root;
        if ((what.writers == Writers::kRoot && !is_root) || (what.writers == Writers::kAllButRoot && is_root))
            continue;
        std::uint32_t& backed = backed_[writer];
        if ((backed & kinds) == kinds) continue;
        if (!store_->back(board_, writer, kinds)) return false;
        backed |= kinds;
    }
    if (end == backed_.size() && what.writers >= Writers::kAll) backed_everywhere_ |= kinds;
    return true;
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

// The same, each in the place of the member that it is for, which gives nothing in this run.
void Member::spread(const std::byte* blocks, std::uint64_t block, std::uint32_t bytes, std::uint32_t ahead) {
    if (given_) [[unlikely]]
        return;
    wait_for_place(bytes, ahead);
    for (std::uint32_t i = 0; i < board_.members(); ++i) {
        if (i == board_.me()) continue;
        platform::copy(board_.place_to_store(i, bytes, ahead), blocks + i * block, bytes);
    }
    board_.publish(board_.me(), bytes, ahead);
    published_ += 1;
}

// So much of what this member gives; where that is blocks, they are of `block` bytes.
inline void Member::publish_part(Contribution giving, const std::byte* from, std::uint64_t block,
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

// What a writer gives in this run, when it is there.
inline const std::byte* Member::pick_up(std::uint32_t writer, std::uint32_t bytes) {
    wait([&] { return board_.published(writer, bytes); }, [&] { return board_.fault_of(writer, bytes); },
         [&] {
             const Straggler straggler = slowest();
             return Straggler{writer < board_.members() ? writer : straggler.member, straggler.text};
         });
    picked_up_ += 1;
    return board_.place(writer, bytes);
}

Straggler Member::slowest() const {
    const Board::Slowest slowest = board_.slowest();
    return {slowest.member == board_.me() ? Straggler::kNobody : slowest.member,
            "run " + std::to_string(board_.run()) + " waits for rank " + std::to_string(slowest.member) +
                ", which is at " + std::to_string(slowest.run)};
}

// An operation of several runs, of up to `most` bytes each. Calls give(offset, bytes, ahead), where this
// member gives, and take(offset, bytes). Where each needs what all others give, each gives that of some runs
// at once, so that nobody waits for everybody in every run.
template <typename Give, typename Take>
[[gnu::always_inline]] inline void Member::in_runs(std::uint32_t signature, std::uint64_t bytes,
                                                   std::uint32_t most, bool is_mutual, Give give, Take take) {
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

inline Member::BlockExchange Member::from_root(std::uint32_t root, BlockExchange what) const {
    what.root = root;
    what.givers = {root, root + 1};
    what.readers = {0, board_.members()};
    return what;
}
inline Member::BlockExchange Member::to_root(std::uint32_t root, BlockExchange what) const {
    what.root = root;
    if (board_.me() == root) what.givers = {0, board_.members()};
    what.readers = {root, root + 1};
    return what;
}
inline Member::BlockExchange Member::among_all(BlockExchange what) const {
    what.is_mutual = true;
    what.givers = what.readers = {0, board_.members()};
    return what;
}

// Blocks that go from some members to some. to(giver): where its block is to be.
template <typename To>
[[gnu::always_inline]] inline void Member::pass(const BlockExchange& what, To to) {
    const std::uint32_t most = most_of(what.giving);
    if (what.bytes > most || what.bytes >= Direct::kLeast) [[unlikely]]
        return pass_in_runs(what, most, to);
    if (what.bytes == 0) return;
    const auto bytes = static_cast<std::uint32_t>(what.bytes), given = published_of(bytes, what.giving);
    board_.begin(signature_of(what.operation, what.root), what.is_mutual && takes_turns(bytes));
    if (what.gives != nullptr) publish_part(what.giving, what.gives, what.bytes, bytes, 0);
    for (std::uint32_t giver = what.givers.first; giver < what.givers.end; ++giver)
        if (giver != board_.me()) take(what, giver, pick_up(giver, given), to(giver), bytes);
    if (what.is_mutual) board_.all_are_here();
    board_.finish();
}

template <typename To>
[[gnu::noinline]] void Member::pass_in_runs(const BlockExchange& what, std::uint32_t most, To to) {
    const bool is_long = this->is_long(what.bytes, most, published_of(most, what.giving));
    Ways ways;
    if (is_long) ways = choose(what);
    in_runs(
        signature_of(what.operation, what.root), what.bytes, most, what.is_mutual,
        [&](std::uint64_t offset, std::uint32_t part, std::uint32_t ahead) {
            if (what.gives == nullptr) return;
            if (!ways.gives) return publish_part(what.giving, what.gives + offset, what.bytes, part, ahead);
            if (offset == 0) publish_whole(what, published_of(part, what.giving));
        },
        [&](std::uint64_t offset, std::uint32_t part) {
            for (std::uint32_t giver = what.givers.first; giver < what.givers.end; ++giver) {
                if (giver == board_.me() || (ways.taken >> giver % Board::kMostReaders & 1) != 0) continue;
                const std::byte* const from = pick_up(giver, published_of(part, what.giving));
                if (is_long && offset == 0 && take_directly(what, giver, to(giver), &ways)) continue;
                take(what, giver, from, to(giver) + offset, part);
            }
            return !ways.gives && ways.taken == 0;
        });
    if (is_long) end(what, ways);
}

// So much of its block, of what that giver has published.
inline void Member::take(const BlockExchange& what, std::uint32_t giver, const std::byte* from, std::byte* to,
                         std::uint32_t bytes) {
    if (what.giving == Contribution::kBlocks) from += slot(board_.me(), giver) * bytes;
    if (what.giving == Contribution::kSpread) from = board_.place(board_.me(), bytes);
    platform::copy(to, from, bytes);
    if (what.operation == VELO_BOARD_BCAST) board_.expect_next(giver);
}

// What it has for itself, once.
inline void Member::keep(std::byte* to, const std::byte* from, std::uint64_t block,
                         Contribution giving) const {
    if (given_ && (std::uint64_t{run_} + 1) * most_of(giving) < block) return;
    platform::copy(to, from, block);
}

// All of what this member gives goes one way.
[[gnu::cold, gnu::noinline]] Member::Ways Member::choose(const BlockExchange& what) {
    if (direct_ == nullptr) direct_ = std::make_unique<Direct>(choice_, board_.members());
    Ways ways;
    ways.gives = what.gives != nullptr && what.stays &&
                 board_.is_read_by(what.readers.first, what.readers.end) &&
                 direct_->gives(what.operation, what.bytes);
    return ways;
}

[[gnu::cold, gnu::noinline]] void Member::publish_whole(const BlockExchange& what, std::uint32_t bytes) {
    wait_for_place(bytes, 0);
    board_.publish(board_.me(), bytes, 0, {reinterpret_cast<std::uint64_t>(what.gives), what.bytes});
    published_ += 1;
}

// What that giver has published: false if it is in chunks.
[[gnu::cold, gnu::noinline]] bool Member::take_directly(const BlockExchange& what, std::uint32_t giver,
                                                        std::byte* to, Ways* ways) {
    const Whole whole = board_.whole_of(giver);
    if (whole.address == 0) {
        if (direct_->reaches(giver, board_.memory_of(giver))) board_.reads(giver);
        return false;
    }
    if (whole.bytes != what.bytes) fail(board_.other_bytes(giver, whole.bytes, what.bytes));
    const auto rank = [giver] { return "rank " + std::to_string(giver); };
    if (!direct_->has_reached(giver))
        fail(Failure(VELO_ERR_PROTOCOL, "the line of " + rank() + " has an address that nobody asked for"));
    const std::uint64_t offset = what.giving != Contribution::kOne ? board_.me() * what.bytes : 0;
    if (const int refusal = direct_->read(giver, to, whole.address + offset, what.bytes); refusal != 0)
        fail(Failure(VELO_ERR_RESOURCE, "the block of " + rank() + " cannot be read out of its memory (" +
                                            std::generic_category().message(refusal) + ")"),
             "Where processes give up rights, or send memory that the kernel keeps from others: --mca "
             "btl_velo_single_copy_mechanism copy");
    direct_blocks_ += 1;
    ways->taken |= std::uint64_t{1} << giver;
    return true;
}

[[gnu::cold, gnu::noinline]] void Member::end(const BlockExchange& what, const Ways& ways) {
    if (ways.gives)
        wait([&] { return board_.have_finished(what.readers.first, what.readers.end); },
             [this] { return board_.fault_of_readers(); }, [this] { return slowest(); });
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
    if (step.gives && !give_runs(step)) {
        if (!has_waited_) credit_waits_ += 1;
        has_waited_ = true;
        return false;
    }
    if (step.meets) is_last_ = board_.arrive();
    given_ = true;
    requests_ += run_ == 0 ? 1 : 0;
    has_waited_ = false;
    seen_ = step.first;
    return true;
}

// What is due of this run, and of those after it.
bool Member::give_runs(const Step& step) {
    const std::uint32_t most = most_of(step.giving), most_ahead = step.is_mutual ? board_.most_ahead() : 0;
    for (std::uint64_t offset; (offset = std::uint64_t{runs_given_} * most) < step.bytes || runs_given_ == 0;
         ++runs_given_) {
        const std::uint32_t ahead = runs_given_ - run_, part = part_of(step, runs_given_),
                            bytes = published_of(part, step.giving);
        if (ahead > most_ahead) break;
        const std::uint32_t more = has_waited_ ? std::max(ahead, more_to_wait_for(bytes)) : ahead;
        if (!board_.may_publish(bytes, more)) return ahead > 0;
        publish_part(step.giving, step.data + offset, step.bytes, part, ahead);
    }
    return true;
}

bool Member::is_over(const Step& step) {
    given_ = false;
    if (std::uint64_t{++run_} * most_of(step.giving) < step.bytes) return false;
    run_ = runs_given_ = 0;
    return true;
}

bool Member::has_all(const Step& step) {
    if (step.meets) return is_last_ || board_.published(board_.result(), bytes_of(step));
    for (; seen_ < step.end; ++seen_)
        if (seen_ != board_.me() && !board_.published(seen_, bytes_of(step))) return false;
    return true;
}

void Member::check(const Step& step) {
    auto fault = given_ ? board_.fault_of(step.meets ? board_.result() : seen_, bytes_of(step))
                        : board_.fault_of_progress();
    if (!fault) fault = fault_of_ended();
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
    const bool is_root = board_.me() == root;
    pass(from_root(root, {VELO_BOARD_BCAST, bytes, is_root ? data : nullptr}),
         [&](std::uint32_t) { return data; });
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
        return in_runs(signature, bytes, shape().chunk, true, give,
                       [&](std::uint64_t offset, std::uint32_t part) {
                           fold_all(to + offset, offset, part);
                           return true;
                       });
    cut(bytes, shape().chunk, [&](std::uint64_t offset, std::uint32_t part) {
        board_.begin(signature);
        give(offset, part, 0);
        if (arrive()) {
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
    const bool is_root = board_.me() == root;
    pass(to_root(root, {VELO_BOARD_GATHER, block, is_root ? nullptr : from}),
         [&](std::uint32_t giver) { return to + giver * block; });
    if (is_root && from != nullptr) keep(to + root * block, from, block, Contribution::kOne);
}

void Member::scatter(std::uint32_t root, const std::byte* from, std::byte* to, std::uint64_t block) {
    const bool is_root = board_.me() == root;
    const Contribution giving = giving_of_scatter(block);
    pass(from_root(root, {VELO_BOARD_SCATTER, block, is_root ? from : nullptr, giving}),
         [&](std::uint32_t) { return to; });
    if (is_root && to != nullptr) keep(to, from + root * block, block, giving);
}

void Member::allgather(const std::byte* from, std::byte* to, std::uint64_t block) {
    const std::byte* own = from != nullptr ? from : to + board_.me() * block;
    pass(among_all({VELO_BOARD_ALLGATHER, block, own}),
         [&](std::uint32_t giver) { return to + giver * block; });
    if (from != nullptr) keep(to + board_.me() * block, from, block, Contribution::kOne);
}

void Member::alltoall(const std::byte* from, std::byte* to, std::uint64_t block) {
    const std::byte* own = from != nullptr ? from : to;
    pass(among_all({VELO_BOARD_ALLTOALL, block, own, Contribution::kBlocks, from != nullptr}),
         [&](std::uint32_t giver) { return to + giver * block; });
    if (from != nullptr)
        keep(to + board_.me() * block, from + board_.me() * block, block, Contribution::kBlocks);
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
