#include "collectives/algorithms/parts.h"

namespace velo::goal::collectives {

Vertex down_tree(Steps& s, const Group& group, std::uint32_t root, std::uint64_t bytes, std::uint32_t tag,
                 Vertex after) {
    const std::uint32_t size = group.count, v = (group.index_of(s.request.rank) + size - root) % size;
    const auto member = [&](std::uint32_t relative) { return group.at((relative + root) % size); };
    if (v > 0) after = s.receive(Steps::received(), bytes, member(father(v)), tag, {after});
    // The largest subtree has the longest way.
    std::vector<std::uint32_t> children;
    each_child(v, size, [&](std::uint32_t child) { children.push_back(child); });
    for (auto child = children.rbegin(); child != children.rend(); ++child)
        s.send(Steps::received(), bytes, member(*child), tag, {after});
    return after;
}

Partial up_tree(Steps& s, const Group& group, std::uint32_t root, Partial own, Place target,
                std::uint32_t tag) {
    const std::uint32_t size = group.count, v = (group.index_of(s.request.rank) + size - root) % size;
    const auto member = [&](std::uint32_t relative) { return group.at((relative + root) % size); };
    const std::uint64_t bytes = s.request.bytes;
    Partial sum = own;
    bool first = true;
    each_child(v, size, [&](std::uint32_t child) {
        const Place from = s.room(bytes);
        const Vertex received = s.receive(from, bytes, member(child), tag);
        const Place into = !first ? sum.place : v == 0 ? target : s.room(bytes);
        sum = {into, s.combine(sum.place, from, into, bytes, {received, sum.done})};
        first = false;
    });
    if (v == 0) return first ? Partial{target, s.copy(own.place, target, bytes, {own.done})} : sum;
    sum.done = s.send(sum.place, bytes, member(father(v)), tag, {sum.done});
    return sum;
}

Vertex stand_aside(Steps& s, const Group& group, Partial own, std::uint32_t tag) {
    const std::uint32_t partner = group.at(group.index_of(s.request.rank) + 1);
    const Vertex sent = s.send(own.place, s.request.bytes, partner, tag, {own.done});
    const Vertex after = own.place.space == kReceiveBuffer ? sent : kNoVertex;
    return s.receive(Steps::received(), s.request.bytes, partner, tag + 1, {after});
}

Partial take_over(Steps& s, const Group& group, const Core& core, Partial own, std::uint32_t tag) {
    const std::uint32_t me = group.index_of(s.request.rank);
    if (!core.paired(me)) return own;
    const Place from = s.room(s.request.bytes);
    const Vertex received = s.receive(from, s.request.bytes, group.at(me - 1), tag);
    return {Steps::received(),
            s.combine(from, own.place, Steps::received(), s.request.bytes, {received, own.done})};
}

Partial doubled(Steps& s, const Group& group, Partial own, std::uint32_t tag) {
    const std::uint64_t bytes = s.request.bytes;
    const std::uint32_t member = group.index_of(s.request.rank);
    const Core core(group.count);
    if (core.leaves(member)) return {Steps::received(), stand_aside(s, group, own, tag)};
    Partial sum = take_over(s, group, core, own, tag);
    if (core.count == 1) sum = {Steps::received(), s.copy(sum.place, Steps::received(), bytes, {sum.done})};
    const std::uint32_t me = core.number(member);
    const Place from[] = {core.count > 1 ? s.room(bytes) : Place{}, core.count > 2 ? s.room(bytes) : Place{}};
    Vertex used[] = {kNoVertex, kNoVertex};  // the combination that has read each room last
    unsigned round = 0;
    for (std::uint32_t mask = 1; mask < core.count; mask <<= 1, ++round) {
        const std::uint32_t partner = group.at(core.member(me ^ mask));
        const Place other = from[round % 2];
        const Vertex received = s.receive(other, bytes, partner, tag + 2, {used[round % 2]});
        const Vertex sent = s.send(sum.place, bytes, partner, tag + 2, {sum.done});
        const bool left = (me & mask) != 0;  // what comes is
        sum = {Steps::received(), s.combine(left ? other : sum.place, left ? sum.place : other,
                                            Steps::received(), bytes, {received, sent, sum.done})};
        used[round % 2] = sum.done;
    }
    if (core.paired(member)) s.send(Steps::received(), bytes, group.at(member - 1), tag + 1, {sum.done});
    return sum;
}

}  // namespace velo::goal::collectives
