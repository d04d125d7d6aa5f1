// A member of a board, with its way to wait: the collective operations, each until it is done here.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "board/board.h"
#include "board/direct.h"
#include "board/store.h"
#include "board/waiting.h"
#include "goal/operation.h"

namespace velo::board {

// What a reduction does to its elements.
struct Reduction {
    goal::Operator op;
    goal::Type type;
    unsigned width;  // bits
};

// How often something has happened; another thread may read it.
class Count {
 public:
    void operator+=(std::uint64_t more) {
        value_.store(value_.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
    }
    operator std::uint64_t() const { return value_.load(std::memory_order_relaxed); }

 private:
    std::atomic<std::uint64_t> value_{0};
};

// Of one board, or of all that this process has had.
struct Totals {
    std::uint64_t boards;
    std::uint64_t published;
    std::uint64_t picked_up;
    std::uint64_t credit_waits;  // for the slowest to finish an old run
    std::uint64_t long_waits;    // that were longer than a look
    std::uint64_t requests;      // operations that nobody waited for
    std::uint64_t direct;        // blocks taken from the memory of who gave them

    Totals& operator+=(const Totals& other);
};
Totals totals();

// What a member gives in an operation: the same to all who read it; a block for each other member, together;
// or each block in the place of its reader, as nobody else gives anything.
enum class Contribution : std::uint8_t { kOne, kBlocks, kSpread };

// In whose places an operation stores: blocks of so many bytes.
enum class Writers : std::uint8_t { kRoot, kAllButRoot, kAll, kAllAndResult };
struct Stores {
    std::uint64_t bytes;
    Writers writers;
    Contribution giving = Contribution::kOne;
    std::uint32_t root = 0;
};

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

// All members call the same operations in the same order, with the same bytes, root and reduction. Buffers
// are as for MPI, without gaps; `from` null: what this member gives lies where its result is to be (in
// place). Throws Failure: a member has done what no correct one does, and the board is of no use any more;
// the others who wait for this one find that.
class Member {
 public:
    // `memory`: a board of that shape; lives as long as the member.
    // `store`: where it lies; null: all of its memory is there.
    Member(std::span<std::byte> memory, const Shape& shape, std::uint32_t me, const BoardContext& around,
           Store* store = nullptr, const Direct::Choice& choice = {});
    Member(const Member&) = delete;
    ~Member();

    void barrier();
    void bcast(std::uint32_t root, std::byte* data, std::uint64_t bytes);
    void reduce(const Reduction& by, std::uint32_t root, const std::byte* from, std::byte* to,
                std::uint64_t bytes);
    void allreduce(const Reduction& by, const std::byte* from, std::byte* to, std::uint64_t bytes);
    void scan(const Reduction& by, const std::byte* from, std::byte* to, std::uint64_t bytes);
    void exscan(const Reduction& by, const std::byte* from, std::byte* to, std::uint64_t bytes);
    // `block`: bytes of one.
    void gather(std::uint32_t root, const std::byte* from, std::byte* to, std::uint64_t block);
    void scatter(std::uint32_t root, const std::byte* from, std::byte* to, std::uint64_t block);
    void allgather(const std::byte* from, std::byte* to, std::uint64_t block);
    void alltoall(const std::byte* from, std::byte* to, std::uint64_t block);
    // Of the sum of vectors of `bytes` each what lies from `begin` to `end`; these are not alike.
    void reduce_scatter(const Reduction& by, const std::byte* from, std::byte* to, std::uint64_t bytes,
                        std::uint64_t begin, std::uint64_t end);

    // Before an operation, and at all members alike: the places that its writers store in have memory. Where
    // not, none of it may be called. Throws Failure.
    bool has_memory(const Stores& what) {
        const std::uint32_t kinds = kinds_of(what);
        return (backed_everywhere_ & kinds) == kinds || back(what, kinds);
    }

    // --- without waiting: first `give` until it says yes, then `has_all` until it does, then the operation
    // itself, which finds everything there and does one run; all of that again until `is_over`.

    // Two members that wait for each other, with a line each.
    bool takes_turns(std::uint64_t bytes) const { return exchanges() && bytes <= kInLine; }
    bool exchanges() const { return shape().exchanges(); }
    bool give(const Step& step);
    bool has_all(const Step& step);
    // After a run.
    bool is_over(const Step& step);
    // How what a root has for each goes: blocks of so many bytes.
    Contribution giving_of_scatter(std::uint64_t block) const {
        const std::uint64_t all = block * (board_.members() - 1);
        return all <= std::min<std::uint64_t>(Shape::kSlipBytes, shape().chunk) ? Contribution::kBlocks
                                                                                : Contribution::kSpread;
    }
    // Throws if that can never be.
    void check(const Step& step);
    Straggler slowest() const;
    Waiting& waiting() { return waiting_; }

    const Shape& shape() const { return board_.shape(); }
    std::uint32_t me() const { return board_.me(); }
    Totals counted() const {
        return {1, published_, picked_up_, credit_waits_, waiting_.long_waits(), requests_, direct_blocks_};
    }

 private:
    struct Range {
        std::uint32_t first, end;
    };
    // An operation in which blocks of `bytes` go from some members to some, and not to themselves.
    struct BlockExchange {
        velo_board_operation operation;
        std::uint64_t bytes;
        const std::byte* gives;  // what this member gives; null: nothing
        Contribution giving = Contribution::kOne;
        bool stays = true;       // what is given is not overwritten before the operation is over
        std::uint32_t root = 0;  // in its signature
        bool is_mutual = false;  // each needs what all others give
        Range givers{}, readers{};
    };
    BlockExchange from_root(std::uint32_t root, BlockExchange what) const;
    BlockExchange to_root(std::uint32_t root, BlockExchange what) const;
    BlockExchange among_all(BlockExchange what) const;
    // What goes directly of it: what this member gives, and what it has taken, a bit for each giver.
    struct Ways {
        bool gives = false;
        std::uint64_t taken = 0;
    };
    template <typename To>
    void pass(const BlockExchange& what, To to);
    template <typename To>
    void pass_in_runs(const BlockExchange& what, std::uint32_t most, To to);
    void take(const BlockExchange& what, std::uint32_t giver, const std::byte* from, std::byte* to,
              std::uint32_t bytes);
    void keep(std::byte* to, const std::byte* from, std::uint64_t block, Contribution giving) const;
    Ways choose(const BlockExchange& what);
    void publish_whole(const BlockExchange& what, std::uint32_t bytes);
    bool take_directly(const BlockExchange& what, std::uint32_t giver, std::byte* to, Ways* ways);
    void end(const BlockExchange& what, const Ways& ways);
    // Whether its blocks may go in several ways; a run takes up to `most` of each, and publishes so much.
    bool is_long(std::uint64_t bytes, std::uint32_t most, std::uint32_t published) const {
        return bytes >= Direct::kLeast && bytes / most < Board::kMostSilent && published > kInLine &&
               board_.members() <= Board::kMostReaders && !given_;
    }

    void wait_for_place(std::uint32_t bytes, std::uint32_t ahead);
    std::byte* own_place(std::uint32_t bytes, std::uint32_t ahead);
    std::uint32_t kinds_of(const Stores& what) const {
        const std::uint32_t most = most_of(what.giving);
        const auto kind_of = [&](std::uint64_t part) {
            return board_.kind_of(published_of(static_cast<std::uint32_t>(part), what.giving));
        };
        return what.bytes <= most ? kind_of(what.bytes) : kind_of(most) | kind_of(what.bytes % most);
    }
    bool back(const Stores& what, std::uint32_t kinds);
    void publish(const std::byte* data, std::uint32_t bytes, std::uint32_t ahead = 0);
    void publish_blocks(const std::byte* blocks, std::uint64_t block, std::uint32_t bytes,
                        std::uint32_t ahead);
    void spread(const std::byte* blocks, std::uint64_t block, std::uint32_t bytes, std::uint32_t ahead);
    void publish_part(Contribution giving, const std::byte* from, std::uint64_t block, std::uint32_t bytes,
                      std::uint32_t ahead);
    // Who is ahead of its readers waits for several runs at once: each look at where they are takes a line
    // away from them.
    std::uint32_t more_to_wait_for(std::uint32_t bytes) const { return (board_.places_for(bytes) - 1) / 2; }
    bool arrive() { return given_ ? is_last_ : board_.arrive(); }
    // What a writer publishes of so many bytes of a block, or of all; what a run takes of it at most.
    std::uint32_t published_of(std::uint32_t bytes, Contribution giving) const {
        return giving == Contribution::kBlocks ? bytes * (board_.members() - 1) : bytes;
    }
    std::uint32_t most_of(Contribution giving) const {
        return giving == Contribution::kBlocks ? part_of_blocks() : shape().chunk;
    }
    // Of the run that is under way without waiting.
    std::uint32_t bytes_of(const Step& step) const { return published_of(part_of(step, run_), step.giving); }
    std::uint32_t part_of(const Step& step, std::uint32_t run) const {
        const std::uint32_t most = most_of(step.giving);
        return static_cast<std::uint32_t>(
            std::min<std::uint64_t>(most, step.bytes - std::uint64_t{run} * most));
    }
    bool give_runs(const Step& step);
    template <typename Run>
    void cut(std::uint64_t bytes, std::uint32_t most, Run run) const;
    template <typename Give, typename Take>
    void in_runs(std::uint32_t signature, std::uint64_t bytes, std::uint32_t most, bool is_mutual, Give give,
                 Take take);
    const std::byte* pick_up(std::uint32_t writer, std::uint32_t bytes);
    template <typename Operand>
    void fold(const Reduction& by, std::uint32_t end, std::byte* to, std::uint32_t bytes, Operand operand);
    void fold_lower(std::uint32_t signature, const Reduction& by, std::uint32_t end, const std::byte* from,
                    std::byte* to, std::uint64_t bytes);
    // Bytes of each block, where one for each other member is published.
    std::uint32_t part_of_blocks() const {
        return shape().chunk / std::max(board_.members() - 1, 1U) / Shape::kLeastPart * Shape::kLeastPart;
    }
    // Where a writer, which keeps its own, has the block of `member`.
    static std::size_t slot(std::uint32_t member, std::uint32_t writer) { return member - (member > writer); }
    template <typename Ready, typename Fault, typename Slowest>
    void wait(Ready ready, Fault fault, Slowest slowest);
    std::optional<Failure> fault_of_ended();
    // `advice`: what to do, unless the fault is another one's.
    [[noreturn]] void fail(const Failure& fault, const char* advice = kSameOperations);
    static constexpr const char* kSameOperations =
        "All ranks have to call the same collective operations with the same number of bytes";

    Board board_;
    Waiting waiting_;
    Store* store_;
    std::vector<std::uint32_t>
        backed_;  // of each writer, and of the result: kinds of places that have memory
    std::uint32_t backed_everywhere_ = 0;
    std::unique_ptr<std::byte[]> scratch_;  // of a chunk
    Count published_, picked_up_, credit_waits_, requests_, direct_blocks_;
    Direct::Choice choice_;
    std::unique_ptr<Direct> direct_;          // from the first operation that is long enough
    bool given_ = false, is_last_ = false;    // of the run that is under way without waiting
    std::uint32_t run_ = 0, runs_given_ = 0;  // of the operation that is
    bool has_waited_ = false;
    std::uint32_t seen_ = 0;  // of its writers, those before
};

}  // namespace velo::board
