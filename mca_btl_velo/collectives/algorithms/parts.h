// Parts that several collectives are made of, among all ranks or some of them.
#pragma once

#include <bit>

#include "collectives/algorithms/steps.h"

namespace velo::goal::collectives {

// Some of the ranks, in their order: so many, each `stride` behind the one before.
struct Group {
    std::uint32_t first, stride, count;
    std::uint32_t replaced = UINT32_MAX, by = 0;  // instead of this one, that rank

    std::uint32_t at(std::uint32_t i) const { return i == replaced ? by : first + i * stride; }
    // Of a member.
    std::uint32_t index_of(std::uint32_t rank) const {
        return replaced != UINT32_MAX && rank == by ? replaced : (rank - first) / stride;
    }
    bool has(std::uint32_t rank) const {
        if (rank < first || (replaced != UINT32_MAX && rank == by))
            return replaced != UINT32_MAX && rank == by;
        const std::uint32_t i = (rank - first) / stride;
        return (rank - first) % stride == 0 && i < count && i != replaced;
    }
};
inline Group everybody(const Request& request) {
    return {0, 1, request.size};
}

// An operand or a result, and when it lies there.
struct Partial {
    Place place;
    Vertex done;
};

// Down a binomial tree of the group from its member `root`, whose data is there after `after`. Returns when
// it is here.
Vertex down_tree(Steps& steps, const Group& group, std::uint32_t root, std::uint64_t bytes, std::uint32_t tag,
                 Vertex after);

// Up the tree of member `root`: a subtree is consecutive, and what comes from the nearer child is to the left
// of what comes from the farther one. `target` is where that member wants the result; others use the
// scratchpad. Returns the result there, elsewhere when it has been handed on.
Partial up_tree(Steps& steps, const Group& group, std::uint32_t root, Partial own, Place target,
                std::uint32_t tag);

// All members get the sum of what they have, in their receive buffers.
Partial doubled(Steps& steps, const Group& group, Partial own, std::uint32_t tag);

// The power of two of members that go on when each of the first pairs has become one: the odd member of it,
// which keeps the order.
struct Core {
    explicit Core(std::uint32_t size) : count(std::bit_floor(size)), pairs(size - count) {}
    bool paired(std::uint32_t member) const { return member < 2 * pairs; }
    bool leaves(std::uint32_t member) const { return paired(member) && member % 2 == 0; }
    std::uint32_t number(std::uint32_t member) const { return paired(member) ? member / 2 : member - pairs; }
    std::uint32_t member(std::uint32_t number) const {
        return number < pairs ? 2 * number + 1 : number + pairs;
    }

    std::uint32_t count, pairs;
};
// What a member outside of the core does: hands over, and gets the result with the next tag.
Vertex stand_aside(Steps& steps, const Group& group, Partial own, std::uint32_t tag);
// What its partner begins with.
Partial take_over(Steps& steps, const Group& group, const Core& core, Partial own, std::uint32_t tag);

}  // namespace velo::goal::collectives
