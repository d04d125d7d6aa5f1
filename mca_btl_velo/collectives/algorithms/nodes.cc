#include "collectives/algorithms/nodes.h"

#include "collectives/algorithms/outgoing.h"
#include "collectives/algorithms/parts.h"

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

    // Of a node, and who it is led by.
    std::uint32_t nodes() const { return leaders.count; }
    std::uint32_t first_of(std::uint32_t node) const { return node * each; }
    std::uint32_t ranks_of(std::uint32_t node, const Request& request) const {
        return std::min(each, request.size - first_of(node));
    }
    std::uint32_t here() const { return first / each; }
};

// Calls visit(rank) for the others of this rank's node.
template <typename Visit>
void each_neighbour(const Places& p, std::uint32_t rank, Visit visit) {
    for (std::uint32_t i = 0; i < p.node.count; ++i)
        if (p.node.at(i) != rank) visit(p.node.at(i));
}

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
    const std::uint32_t top = p.leaders.at(p.here());
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

// The root leads its node, so that its neighbours' blocks go to their places, as those of other nodes do.
Graph gather(const Request& request) {
    Steps s(request);
    Places p(request);
    p.led_by(request.root, request.rank);
    const std::uint64_t bytes = request.bytes;
    const std::uint32_t leader = p.leaders.at(p.here());
    if (!p.leads) {
        s.send(Steps::sent(), bytes, leader, kUp);
        return std::move(s.graph);
    }
    if (request.rank == request.root) {
        for (std::uint32_t node = 0; node < p.nodes(); ++node)
            if (node != p.here())
                s.receive(Steps::received(p.first_of(node) * bytes), p.ranks_of(node, request) * bytes,
                          p.leaders.at(node), kBetween);
        each_neighbour(p, request.rank, [&](std::uint32_t rank) {
            s.receive(Steps::received(rank * bytes), bytes, rank, kUp);
        });
        const Place own = Steps::received(request.rank * bytes);
        s.copy(request.in_place ? own : Steps::sent(), own, bytes);
        return std::move(s.graph);
    }
    // The first of its node.
    const std::uint32_t others = p.node.count - 1;
    const Place kept = others > 0 ? s.room(others * bytes) : Place{};
    const Piece pieces[] = {{Steps::sent(), bytes}, {kept, others * bytes}};
    std::vector<Vertex> here;
    each_neighbour(p, request.rank, [&](std::uint32_t rank) {
        here.push_back(s.receive(kept.at((rank - p.first - 1) * bytes), bytes, rank, kUp));
    });
    const Vertex up = s.graph.send(std::span(pieces, others > 0 ? 2 : 1), request.root, kBetween);
    s.needs(up, here);
    return std::move(s.graph);
}

Graph scatter(const Request& request) {
    Steps s(request);
    Places p(request);
    p.led_by(request.root, request.rank);
    const std::uint64_t bytes = request.bytes;
    if (!p.leads) {
        s.receive(Steps::received(), bytes, p.leaders.at(p.here()), kDown);
        return std::move(s.graph);
    }
    if (request.rank == request.root) {
        for (std::uint32_t node = 0; node < p.nodes(); ++node)
            if (node != p.here())
                s.send(Steps::sent(p.first_of(node) * bytes), p.ranks_of(node, request) * bytes,
                       p.leaders.at(node), kBetween);
        each_neighbour(p, request.rank,
                       [&](std::uint32_t rank) { s.send(Steps::sent(rank * bytes), bytes, rank, kDown); });
        if (!request.in_place) s.copy(Steps::sent(request.rank * bytes), Steps::received(), bytes);
        return std::move(s.graph);
    }
    const std::uint32_t others = p.node.count - 1;
    const Place kept = others > 0 ? s.room(others * bytes) : Place{};
    const Piece pieces[] = {{Steps::received(), bytes}, {kept, others * bytes}};
    const Vertex here = s.graph.receive(std::span(pieces, others > 0 ? 2 : 1), request.root, kBetween);
    each_neighbour(p, request.rank, [&](std::uint32_t rank) {
        s.send(kept.at((rank - p.first - 1) * bytes), bytes, rank, kDown, {here});
    });
    return std::move(s.graph);
}

Graph allgather(const Request& request) {
    Steps s(request);
    const Places p(request);
    const std::uint64_t bytes = request.bytes;
    const Place own = Steps::received(request.rank * bytes);
    Vertex here;
    if (p.leads) {
        std::vector<Vertex> of_node = {s.copy(request.in_place ? own : Steps::sent(), own, bytes)};
        each_neighbour(p, request.rank, [&](std::uint32_t rank) {
            of_node.push_back(s.receive(Steps::received(rank * bytes), bytes, rank, kUp));
        });
        here = s.join(of_node);
        std::vector<Vertex> of_all = {here};
        for (std::uint32_t d = 1; d < p.nodes(); ++d) {
            const std::uint32_t from = (p.here() + p.nodes() - d) % p.nodes();
            of_all.push_back(s.receive(Steps::received(p.first_of(from) * bytes),
                                       p.ranks_of(from, request) * bytes, p.leaders.at(from), kBetween));
            s.send(Steps::received(p.first * bytes), p.node.count * bytes,
                   p.leaders.at((p.here() + d) % p.nodes()), kBetween, {here});
        }
        here = s.join(of_all);
    } else {
        // What all have comes over the own block.
        here = s.send(s.own(request.rank * bytes), bytes, p.first, kUp);
    }
    down_tree(s, p.node, 0, request.size * bytes, kDown, here);
    return std::move(s.graph);
}

namespace {

// As few pieces as may be.
void append(std::vector<Piece>& pieces, Place place, std::uint64_t bytes) {
    if (!pieces.empty() && pieces.back().place.at(pieces.back().bytes) == place)
        pieces.back().bytes += bytes;
    else
        pieces.push_back({place, bytes});
}

// Leaders exchange, for each source on a node, its blocks for the ranks of the other node.
void exchange_between_leaders(Steps& s, const Places& p, const Outgoing& out) {
    const Request& request = s.request;
    const std::uint64_t bytes = request.bytes;
    const std::uint64_t away = request.size - p.node.count;  // ranks elsewhere
    // Of them in their order, those of this node left out.
    const auto place_of = [&](std::uint32_t rank) { return rank < p.first ? rank : rank - p.node.count; };
    std::vector<Place> from(p.node.count), to(p.node.count);
    std::vector<Vertex> here = {out.there};
    for (std::uint32_t i = 1; i < p.node.count; ++i) {
        from[i] = s.room(away * bytes);
        to[i] = s.room(away * bytes);
        here.push_back(s.receive(from[i], away * bytes, p.first + i, kUp));
    }
    const Vertex packed = s.join(here);
    std::vector<Vertex> come;
    for (std::uint32_t d = 1; d < p.nodes(); ++d) {
        const std::uint32_t up = (p.here() + d) % p.nodes(), down = (p.here() + p.nodes() - d) % p.nodes();
        std::vector<Piece> sent, received;
        for (std::uint32_t i = 0; i < p.node.count; ++i)
            for (std::uint32_t j = 0; j < p.ranks_of(up, request); ++j) {
                const std::uint32_t rank = p.first_of(up) + j;
                append(sent, i == 0 ? out.place(rank) : from[i].at(place_of(rank) * bytes), bytes);
            }
        for (std::uint32_t j = 0; j < p.ranks_of(down, request); ++j)
            for (std::uint32_t i = 0; i < p.node.count; ++i) {
                const std::uint32_t rank = p.first_of(down) + j;
                append(received, i == 0 ? Steps::received(rank * bytes) : to[i].at(place_of(rank) * bytes),
                       bytes);
            }
        come.push_back(s.graph.receive(received, p.leaders.at(down), kBetween));
        s.graph.needs(come.back(), out.there);
        s.graph.needs(s.graph.send(sent, p.leaders.at(up), kBetween), packed);
    }
    for (std::uint32_t i = 1; i < p.node.count; ++i) {
        const Vertex send = s.send(to[i], away * bytes, p.first + i, kDown);
        s.needs(send, come);
    }
}

}  // namespace

// In three phases: up in the node, between the leaders, down in the node.
Graph alltoall(const Request& request) {
    Steps s(request);
    const Places p(request);
    Outgoing out(s);
    const std::uint64_t bytes = request.bytes;
    each_neighbour(p, request.rank, [&](std::uint32_t rank) {
        s.receive(Steps::received(rank * bytes), bytes, rank, kAway, {out.there});
        s.send(out.place(rank), bytes, rank, kAway, {out.there});
    });
    out.keep_own();
    if (p.nodes() == 1) return std::move(s.graph);
    if (p.leads) {
        exchange_between_leaders(s, p, out);
        return std::move(s.graph);
    }
    std::vector<Piece> up, down;
    for (std::uint32_t rank = 0; rank < request.size; ++rank) {
        if (p.node.has(rank)) continue;
        append(up, out.place(rank), bytes);
        append(down, Steps::received(rank * bytes), bytes);
    }
    s.graph.needs(s.graph.send(up, p.first, kUp), out.there);
    s.graph.needs(s.graph.receive(down, p.first, kDown), out.there);
    return std::move(s.graph);
}

}  // namespace velo::goal::collectives::nodes
