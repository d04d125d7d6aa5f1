#include "goal/collectives/nodes.h"

#include "goal/collectives/parts.h"

namespace velo::goal::collectives::nodes {
namespace {

// Each part of an operation has tags of its own.
enum Tag : std::uint32_t { kUp = 0, kBetween = kBetweenLeaders, kDown = kFromLeaders, kAway = 5 };

struct Places {
    explicit Places(const Request& request)
        : each(std::min(std::max(1U, request.on_node), request.size)),
          first(request.rank / each * each),
          node{first, 1, std::min(each, request.size - first)},
          leaders{0, each, (request.size + each - 1) / each},
          leads(request.rank == first) {}
    // The root leads its node.
    void led_by(std::uint32_t root, std::uint32_t rank) {
        leaders.replaced = root / each;
        leaders.by = root;
        if (root / each == first / each) leads = rank == root;
    }

    std::uint32_t each, first;
    Group node, leaders;
    bool leads;
};

}  // namespace

Graph barrier(const Request& request) {
    Steps s(request);
    Places p(request);
    const Place out = s.room(1), in = s.room(1);
    Vertex last = kNoVertex;
    const auto hear = [&](std::uint32_t from, std::uint32_t tag) {
        last = s.receive(in, 1, from, tag, {last});
    };
    const auto tell = [&](std::uint32_t to, std::uint32_t tag) { s.send(out, 1, to, tag, {last}); };
    const std::uint32_t me = p.node.index_of(request.rank);
    each_child(me, p.node.count, [&](std::uint32_t child) { hear(p.node.at(child), kUp); });
    if (p.leads) {
        const std::uint32_t leader = p.leaders.index_of(request.rank), count = p.leaders.count;
        for (std::uint64_t distance = 1; distance < count; distance <<= 1) {
            const auto d = static_cast<std::uint32_t>(distance);
            tell(p.leaders.at((leader + d) % count), kBetween);
            hear(p.leaders.at((leader + count - d) % count), kBetween);
        }
    } else {
        tell(p.node.at(father(me)), kUp);
        hear(p.node.at(father(me)), kDown);
    }
    each_child(me, p.node.count, [&](std::uint32_t child) { tell(p.node.at(child), kDown); });
    return std::move(s.graph);
}

Graph broadcast(const Request& request) {
    Steps s(request);
    Places p(request);
    p.led_by(request.root, request.rank);
    Vertex here = kNoVertex;
    if (p.leads) here = down_tree(s, p.leaders, p.leaders.replaced, request.bytes, kBetween, here);
    const std::uint32_t top = p.leaders.at(p.first / p.each);
    down_tree(s, p.node, p.node.index_of(top), request.bytes, kDown, here);
    return std::move(s.graph);
}

Graph broadcast_by_leaders(const Request& request) {
    Steps s(request);
    const Places p(request);
    const std::uint32_t top = request.root / p.each;
    const auto down = [&](std::uint32_t from, Vertex after) {
        return down_tree(s, p.node, p.node.index_of(from), request.bytes, kDown, after);
    };
    const bool at_root = request.rank / p.each == top;
    Vertex here = at_root ? down(request.root, kNoVertex) : kNoVertex;
    if (p.leads) here = down_tree(s, p.leaders, top, request.bytes, kBetween, here);
    if (!at_root) down(p.first, here);
    return std::move(s.graph);
}

// In the order of the ranks: the first ranks lead, and the first of all has the result, which may have a last
// way to go.
Graph reduce(const Request& request) {
    Steps s(request);
    const Places p(request);
    const bool is_root = request.rank == request.root, is_top = request.rank == 0;
    const Partial own{s.own(), kNoVertex};
    // A leader has its node's sum there, and the first of all the whole.
    const Place target = is_top && is_root ? Steps::received() : p.leads ? s.room(request.bytes) : Place{};
    Partial sum = p.node.count > 1 ? up_tree(s, p.node, 0, own, target, kUp) : own;
    if (p.leads) sum = up_tree(s, p.leaders, 0, sum, target, kBetween);
    if (request.root == 0) return std::move(s.graph);
    if (is_top) s.send(sum.place, request.bytes, request.root, kAway, {sum.done});
    if (is_root) s.receive(Steps::received(), request.bytes, 0, kAway, {sum.done});
    return std::move(s.graph);
}

Graph allreduce(const Request& request) {
    Steps s(request);
    const Places p(request);
    Partial sum{s.own(), kNoVertex};
    if (p.node.count > 1) sum = up_tree(s, p.node, 0, sum, Steps::received(), kUp);
    if (p.leads) sum = doubled(s, p.leaders, sum, kBetween);
    // The result may come over the operand: when that has been sent up.
    down_tree(s, p.node, 0, request.bytes, kDown, sum.done);
    return std::move(s.graph);
}

}  // namespace velo::goal::collectives::nodes
