#include "goal/collectives/blocks.h"

#include "goal/collectives/steps.h"

namespace velo::goal::collectives::blocks {
namespace {

// The own block to its place among those of all ranks.
Vertex place_own(Steps& s) {
    const Place to = Steps::received(s.request.rank * s.request.bytes);
    return s.copy(s.request.in_place ? to : Steps::sent(), to, s.request.bytes);
}

}  // namespace

Graph gather_linear(const Request& request) {
    Steps s(request);
    if (request.rank != request.root) {
        s.send(Steps::sent(), request.bytes, request.root, 0);
        return std::move(s.graph);
    }
    for (std::uint32_t d = 1; d < request.size; ++d)
        s.receive(Steps::received(s.up(d) * request.bytes), request.bytes, s.up(d), 0);
    place_own(s);
    return std::move(s.graph);
}

// A rank holds the blocks of its subtree, which are consecutive from the root on.
Graph gather_binomial(const Request& request) {
    Steps s(request);
    const std::uint32_t size = request.size, v = s.relative();
    const std::uint64_t bytes = request.bytes;
    const std::uint64_t below = subtree(v, size) - 1;
    const Place kept = v > 0 && below > 0 ? s.room(below * bytes) : Place{};
    std::vector<Vertex> received;
    each_child(v, size, [&](std::uint32_t child) {
        const std::uint64_t count = subtree(child, size);
        received.push_back(
            v == 0 ? s.graph.receive(wrapped(kReceiveBuffer, s.absolute(child), count, size, bytes),
                                     s.absolute(child))
                   : s.receive(kept.at((child - v - 1) * bytes), count * bytes, s.absolute(child), 0));
    });
    if (v == 0) {
        place_own(s);
        return std::move(s.graph);
    }
    const Piece pieces[] = {{Steps::sent(), bytes}, {kept, below * bytes}};
    const Vertex up = s.graph.send(std::span(pieces, below > 0 ? 2 : 1), s.absolute(father(v)));
    for (const Vertex receive : received) s.graph.needs(up, receive);
    return std::move(s.graph);
}

// The root asks for each block when it is ready for its first segment.
Graph gather_linear_sync(const Request& request) {
    constexpr std::uint64_t kLarge = 92160, kLargeSegment = 32768, kSmallSegment = 1024;
    Steps s(request);
    const std::uint64_t bytes = request.bytes;
    const std::uint64_t segment = std::min(request.segment > 0 ? request.segment
                                           : bytes > kLarge    ? kLargeSegment
                                                               : kSmallSegment,
                                           bytes);
    const Place sync = s.room(1);
    if (request.rank != request.root) {
        const Vertex asked = s.receive(sync, 1, request.root, 1);
        const Vertex first = s.send(Steps::sent(), segment, request.root, 0, {asked});
        if (bytes > segment) s.send(Steps::sent(segment), bytes - segment, request.root, 0, {first});
        return std::move(s.graph);
    }
    for (std::uint32_t d = 1; d < request.size; ++d) {
        const std::uint32_t peer = s.up(d);
        const Place block = Steps::received(peer * bytes);
        const Vertex first = s.receive(block, segment, peer, 0);
        const Vertex ask = s.send(sync, 1, peer, 1);
        s.graph.needs_start(ask, first);
        if (bytes > segment) s.receive(block.at(segment), bytes - segment, peer, 0, {ask});
    }
    place_own(s);
    return std::move(s.graph);
}

// The choice of Open MPI 1.4.2, which the ESPGOAL paper measures.
Graph gather_by_size(const Request& request) {
    if (request.bytes > 6000) return gather_linear_sync(request);
    const bool tree = request.size > 60 || (request.size > 10 && request.bytes < 1024);
    return tree ? gather_binomial(request) : gather_linear(request);
}

Graph scatter_linear(const Request& request) {
    Steps s(request);
    if (request.rank != request.root) {
        s.receive(Steps::received(), request.bytes, request.root, 0);
        return std::move(s.graph);
    }
    for (std::uint32_t d = 1; d < request.size; ++d)
        s.send(Steps::sent(s.up(d) * request.bytes), request.bytes, s.up(d), 0);
    if (!request.in_place)
        s.copy(Steps::sent(request.rank * request.bytes), Steps::received(), request.bytes);
    return std::move(s.graph);
}

Graph scatter_binomial(const Request& request) {
    Steps s(request);
    const std::uint32_t size = request.size, v = s.relative();
    const std::uint64_t bytes = request.bytes;
    const std::uint64_t below = subtree(v, size) - 1;
    const Place kept = v > 0 && below > 0 ? s.room(below * bytes) : Place{};
    Vertex received = kNoVertex;
    if (v > 0) {
        const Piece pieces[] = {{Steps::received(), bytes}, {kept, below * bytes}};
        received = s.graph.receive(std::span(pieces, below > 0 ? 2 : 1), s.absolute(father(v)));
    } else if (!request.in_place) {
        s.copy(Steps::sent(request.rank * bytes), Steps::received(), bytes);
    }
    std::vector<std::uint32_t> children;
    each_child(v, size, [&](std::uint32_t child) { children.push_back(child); });
    for (auto child = children.rbegin(); child != children.rend(); ++child) {
        const std::uint64_t count = subtree(*child, size);
        if (v == 0)
            s.graph.send(wrapped(kSendBuffer, s.absolute(*child), count, size, bytes), s.absolute(*child));
        else
            s.send(kept.at((*child - v - 1) * bytes), count * bytes, s.absolute(*child), 0, {received});
    }
    return std::move(s.graph);
}

Graph allgather_linear(const Request& request) {
    Steps s(request);
    const std::uint64_t bytes = request.bytes;
    for (std::uint32_t d = 1; d < request.size; ++d) {
        s.receive(Steps::received(s.down(d) * bytes), bytes, s.down(d), 0);
        s.send(s.own(request.rank * bytes), bytes, s.up(d), 0);
    }
    place_own(s);
    return std::move(s.graph);
}

Graph allgather_ring(const Request& request) {
    Steps s(request);
    const std::uint64_t bytes = request.bytes;
    place_own(s);
    Vertex here = kNoVertex, received = kNoVertex, sent = kNoVertex;
    Place from = s.own(request.rank * bytes);
    for (std::uint32_t d = 1; d < request.size; ++d) {
        const Vertex send = s.send(from, bytes, s.up(1), 0, {here});
        s.graph.needs_start(send, sent);
        sent = send;
        from = Steps::received(s.down(d) * bytes);
        here = s.receive(from, bytes, s.down(1), 0);
        s.graph.needs_start(here, received);
        received = here;
    }
    return std::move(s.graph);
}

// Each round doubles the blocks that a rank has, counted from its own on.
Graph allgather_bruck(const Request& request) {
    Steps s(request);
    const std::uint32_t size = request.size;
    Vertex here = place_own(s);
    for (std::uint64_t d = 1; d < size; d <<= 1) {
        const auto distance = static_cast<std::uint32_t>(d);
        const std::uint64_t count = std::min<std::uint64_t>(d, size - d);
        const Vertex send =
            s.graph.send(wrapped(kReceiveBuffer, request.rank, count, size, request.bytes), s.down(distance));
        s.graph.needs(send, here);
        const Vertex receive = s.graph.receive(
            wrapped(kReceiveBuffer, s.up(distance), count, size, request.bytes), s.up(distance));
        here = here == kNoVertex ? receive : s.join({here, receive});
    }
    return std::move(s.graph);
}

namespace {

// Where the blocks to be sent lie; in place they are copied first.
struct Outgoing {
    explicit Outgoing(Steps& s) {
        if (!s.request.in_place) return;
        place = s.room(s.request.size * s.request.bytes);
        there = s.copy(Steps::received(), place, s.request.size * s.request.bytes);
    }
    Place place = Steps::sent();
    Vertex there = kNoVertex;
};

void keep_own(Steps& s, const Outgoing& out) {
    const std::uint64_t at = s.request.rank * s.request.bytes;
    if (!s.request.in_place) s.copy(out.place.at(at), Steps::received(at), s.request.bytes);
}

}  // namespace

Graph alltoall_linear(const Request& request) {
    Steps s(request);
    const std::uint64_t bytes = request.bytes;
    const Outgoing out(s);
    for (std::uint32_t d = 1; d < request.size; ++d) {
        s.receive(Steps::received(s.down(d) * bytes), bytes, s.down(d), 0, {out.there});
        s.send(out.place.at(s.up(d) * bytes), bytes, s.up(d), 0, {out.there});
    }
    keep_own(s, out);
    return std::move(s.graph);
}

Graph alltoall_pairwise(const Request& request) {
    Steps s(request);
    const std::uint64_t bytes = request.bytes;
    const Outgoing out(s);
    Vertex step = out.there;
    for (std::uint32_t d = 1; d < request.size; ++d) {
        const Vertex in = s.receive(Steps::received(s.down(d) * bytes), bytes, s.down(d), 0, {step});
        step = s.join({in, s.send(out.place.at(s.up(d) * bytes), bytes, s.up(d), 0, {step})});
    }
    keep_own(s, out);
    return std::move(s.graph);
}

// Block i is for the rank i above. In the round of bit b, all blocks with that bit go 2^b up together: in the
// end each has gone its way, and at i is what came from the rank i below.
Graph alltoall_bruck(const Request& request) {
    Steps s(request);
    const std::uint32_t size = request.size;
    const std::uint64_t bytes = request.bytes;
    const Outgoing out(s);
    std::vector<Place> at(size);
    for (std::uint32_t i = 0; i < size; ++i) at[i] = out.place.at(s.up(i) * bytes);
    // What a round sends is read while it receives: the rooms change.
    const Place rooms[] = {size > 2 ? s.room(size * bytes) : Place{},
                           size > 4 ? s.room(size * bytes) : Place{}};
    Vertex received = out.there, sent = kNoVertex;
    for (std::uint64_t bit = 1; bit < size; bit <<= 1) {
        std::vector<Piece> away, in;
        for (std::uint32_t i = 0; i < size; ++i) {
            if ((i & bit) == 0) continue;
            away.push_back({at[i], bytes});
            // Its last bit: it has arrived.
            const Place first = rooms[0].at(i * bytes);
            at[i] = i < 2 * bit      ? Steps::received(s.down(i) * bytes)
                    : at[i] == first ? rooms[1].at(i * bytes)
                                     : first;
            in.push_back({at[i], bytes});
        }
        const auto distance = static_cast<std::uint32_t>(bit);
        const Vertex send = s.graph.send(away, s.up(distance));
        const Vertex receive = s.graph.receive(in, s.down(distance));
        s.needs(send, {received});
        s.needs(receive, {received, sent});
        sent = send;
        received = receive;
    }
    keep_own(s, out);
    return std::move(s.graph);
}

Graph exchange(const Request& request) {
    Steps s(request);
    std::vector<Block> to_self;
    // What goes to one peer keeps its order.
    std::vector<Vertex> received(request.size, kNoVertex), sent(request.size, kNoVertex);
    const auto follow = [&](std::vector<Vertex>& last, std::uint32_t peer, Vertex v) {
        s.graph.needs_start(v, last[peer]);
        last[peer] = v;
    };
    for (const Block& b : request.receives) {
        if (b.peer == request.rank)
            to_self.push_back(b);
        else
            follow(received, b.peer, s.receive(Steps::received(b.offset), b.bytes, b.peer, 0));
    }
    auto self = to_self.begin();
    for (const Block& b : request.sends) {
        if (b.peer != request.rank)
            follow(sent, b.peer, s.send(Steps::sent(b.offset), b.bytes, b.peer, 0));
        else if (self != to_self.end())
            s.copy(Steps::sent(b.offset), Steps::received(self++->offset), b.bytes);
    }
    return std::move(s.graph);
}

}  // namespace velo::goal::collectives::blocks
