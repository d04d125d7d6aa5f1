#include "collectives/board/member.h"

#include <algorithm>
#include <cstring>

#include "collectives/goal/combine.h"

namespace velo::board {
namespace {

void combine(const Reduction& by, const std::byte* a, const std::byte* b, std::byte* to,
             std::uint32_t bytes) {
    goal::combine(by.op, by.type, by.width, a, b, to, bytes / (by.width / 8));
}

// In the order of the ranks, whoever is there first.
template <typename Operand>
inline void fold(const Reduction& by, std::uint32_t end, std::byte* to, std::uint32_t bytes,
                 Operand operand) {
    const std::byte* first = operand(0);
    if (end == 1) {
        std::memmove(to, first, bytes);
        return;
    }
    for (std::uint32_t member = 1; member < end; ++member, first = to)
        combine(by, first, operand(member), to, bytes);
}

}  // namespace

Member::Member(std::span<std::byte> memory, const Shape& shape, std::uint32_t me, const BoardContext& around,
               Store* store, const Direct::Choice& choice)
    : runs_(memory, shape, me, around),
      backed_(runs_.board(), store),
      blocks_(runs_, choice),
      scratch_(std::make_unique_for_overwrite<std::byte[]>(shape.chunk)) {
    board().introduce(Direct::memory(choice));
}

void Member::barrier() {
    board().begin(Signature::of(VELO_BOARD_BARRIER, {}, 0), exchanges());
    if (exchanges()) {
        runs_.publish(nullptr, 0);
        for (std::uint32_t i = 0; i < board().members(); ++i)
            if (i != board().me()) (void)runs_.pick_up(i, 0);
    } else if (runs_.arrive()) {
        runs_.publish_result(0);
    } else {
        (void)runs_.pick_up(board().result(), 0);
    }
    board().all_are_here();
    board().finish();
}

void Member::bcast(std::uint32_t root, std::byte* data, std::uint64_t bytes) {
    const bool is_root = board().me() == root;
    blocks_.from_root(root, {VELO_BOARD_BCAST, bytes, is_root ? data : nullptr, data});
}

void Member::reduce(const Reduction& by, std::uint32_t root, const std::byte* from, std::byte* to,
                    std::uint64_t bytes) {
    const std::uint32_t signature = Signature::of(VELO_BOARD_REDUCE, by.op, root);
    runs_.cut(bytes, shape().chunk, [&](std::uint64_t offset, std::uint32_t part) {
        board().begin(signature);
        if (board().me() != root) {
            runs_.publish(from + offset, part);
        } else {
            const std::byte* own = from != nullptr ? from + offset : scratch_.get();
            if (from == nullptr) platform::copy(scratch_.get(), to + offset, part);
            fold(by, board().members(), to + offset, part,
                 [&](std::uint32_t i) { return i == root ? own : runs_.pick_up(i, part); });
        }
        board().finish();
    });
}

void Member::allreduce(const Reduction& by, const std::byte* from, std::byte* to, std::uint64_t bytes) {
    const std::uint32_t signature = Signature::of(VELO_BOARD_ALLREDUCE, by.op, 0);
    const auto fold_all = [&](std::byte* into, std::uint64_t offset, std::uint32_t part) {
        fold(by, board().members(), into, part, [&](std::uint32_t i) -> const std::byte* {
            if (i != board().me()) return runs_.pick_up(i, part);
            return from != nullptr ? from + offset : board().place(i, part);
        });
    };
    const auto give = [&](std::uint64_t offset, std::uint32_t part, std::uint32_t ahead) {
        runs_.publish((from != nullptr ? from : to) + offset, part, ahead);
    };
    if (exchanges())
        return runs_.cut(signature, bytes, shape().chunk, true, give,
                         [&](std::uint64_t offset, std::uint32_t part) {
                             fold_all(to + offset, offset, part);
                             return true;
                         });
    runs_.cut(bytes, shape().chunk, [&](std::uint64_t offset, std::uint32_t part) {
        board().begin(signature);
        give(offset, part, 0);
        if (runs_.arrive()) {
            std::byte* const result = board().place(board().result(), part);
            fold_all(result, offset, part);
            runs_.publish_result(part);
            platform::copy(to + offset, result, part);
        } else {
            platform::copy(to + offset, runs_.pick_up(board().result(), part), part);
        }
        board().all_are_here();
        board().finish();
    });
}

// `end`: up to which rank.
void Member::fold_lower(std::uint32_t signature, const Reduction& by, std::uint32_t end,
                        const std::byte* from, std::byte* to, std::uint64_t bytes) {
    runs_.cut(bytes, shape().chunk, [&](std::uint64_t offset, std::uint32_t part) {
        board().begin(signature);
        runs_.publish((from != nullptr ? from : to) + offset, part);
        if (end > 0)
            fold(by, end, to + offset, part, [&](std::uint32_t i) {
                return i == board().me() ? board().place(i, part) : runs_.pick_up(i, part);
            });
        board().finish();
    });
}

void Member::scan(const Reduction& by, const std::byte* from, std::byte* to, std::uint64_t bytes) {
    fold_lower(Signature::of(VELO_BOARD_SCAN, by.op, 0), by, board().me() + 1, from, to, bytes);
}

void Member::exscan(const Reduction& by, const std::byte* from, std::byte* to, std::uint64_t bytes) {
    fold_lower(Signature::of(VELO_BOARD_EXSCAN, by.op, 0), by, board().me(), from, to, bytes);
}

void Member::gather(std::uint32_t root, const std::byte* from, std::byte* to, std::uint64_t block) {
    const bool is_root = board().me() == root;
    blocks_.to_root(root, {VELO_BOARD_GATHER, block, is_root ? nullptr : from, to, block});
    if (is_root && from != nullptr) blocks_.keep(to + root * block, from, block, Contribution::kOne);
}

void Member::scatter(std::uint32_t root, const std::byte* from, std::byte* to, std::uint64_t block) {
    const bool is_root = board().me() == root;
    const Contribution giving = giving_of_scatter(block);
    blocks_.from_root(root, {VELO_BOARD_SCATTER, block, is_root ? from : nullptr, to, 0, giving});
    if (is_root && to != nullptr) blocks_.keep(to, from + root * block, block, giving);
}

void Member::allgather(const std::byte* from, std::byte* to, std::uint64_t block) {
    const std::byte* own = from != nullptr ? from : to + board().me() * block;
    blocks_.among_all({VELO_BOARD_ALLGATHER, block, own, to, block});
    if (from != nullptr) blocks_.keep(to + board().me() * block, from, block, Contribution::kOne);
}

void Member::alltoall(const std::byte* from, std::byte* to, std::uint64_t block) {
    const std::byte* own = from != nullptr ? from : to;
    blocks_.among_all({VELO_BOARD_ALLTOALL, block, own, to, block, Contribution::kBlocks, from != nullptr});
    if (from != nullptr)
        blocks_.keep(to + board().me() * block, from + board().me() * block, block, Contribution::kBlocks);
}

void Member::reduce_scatter(const Reduction& by, const std::byte* from, std::byte* to, std::uint64_t bytes,
                            std::uint64_t begin, std::uint64_t end) {
    const std::uint32_t signature = Signature::of(VELO_BOARD_REDUCE_SCATTER, by.op, 0);
    runs_.cut(bytes, shape().chunk, [&](std::uint64_t offset, std::uint32_t part) {
        board().begin(signature);
        runs_.publish((from != nullptr ? from : to) + offset, part);
        const std::uint64_t first = std::max(begin, offset), last = std::min(end, offset + part);
        if (first < last) {
            fold(by, board().members(), to + (first - begin), static_cast<std::uint32_t>(last - first),
                 [&](std::uint32_t i) {
                     const std::byte* theirs =
                         i == board().me() ? board().place(i, part) : runs_.pick_up(i, part);
                     return theirs + (first - offset);
                 });
            board().all_are_here();
        }
        board().finish();
    });
}

}  // namespace velo::board
