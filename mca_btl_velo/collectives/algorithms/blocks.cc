#include "collectives/algorithms/blocks.h"

#include "collectives/algorithms/outgoing.h"

namespace velo::goal::collectives::blocks {
namespace {

// The own block to its place among those of all ranks.
Vertex place_own(Steps& s) {
    const Share block = s.in(s.request.rank);
    const Place to = Steps::received(block.offset);
    return s.copy(s.request.in_place ? to : Steps::sent(), to, block.bytes);
}

}  // namespace

Graph gather_linear(const Request& request) {
    Steps s(request);
    if (request.rank != request.root) {
        s.give(Steps::sent(), request.bytes, request.root);
        return std::move(s.graph);
    }
    for (std::uint32_t d = 1; d < request.size; ++d) {
        const Share block = s.in(s.up(d));
        s.take(Steps::received(block.offset), block.bytes, s.up(d));
    }
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
            v == 0 ? s.graph.receive(s.blocks(kReceiveBuffer, s.absolute(child), count), s.absolute(child))
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
    constexpr std::uint32_t kRest = 2;  // a tag of its own, so that its receive can be announced
    if (request.rank != request.root) {
        const Vertex asked = s.receive(sync, 1, request.root, 1);
        const Vertex first = s.send(Steps::sent(), segment, request.root, 0, {asked});
        if (bytes > segment) s.send(Steps::sent(segment), bytes - segment, request.root, kRest, {first});
        return std::move(s.graph);
    }
    for (std::uint32_t d = 1; d < request.size; ++d) {
        const std::uint32_t peer = s.up(d);
        const Place block = Steps::received(peer * bytes);
        const Vertex first = s.receive(block, segment, peer, 0);
        const Vertex ask = s.send(sync, 1, peer, 1);
        s.graph.needs_start(ask, first);
        if (bytes > segment) s.receive(block.at(segment), bytes - segment, peer, kRest, {ask});
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
        s.take(Steps::received(), request.bytes, request.root);
        return std::move(s.graph);
    }
    for (std::uint32_t d = 1; d < request.size; ++d) {
        const Share block = s.out(s.up(d));
        s.give(Steps::sent(block.offset), block.bytes, s.up(d));
    }
    const Share own = s.out(request.rank);
    if (!request.in_place) s.copy(Steps::sent(own.offset), Steps::received(), own.bytes);
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
            s.graph.send(s.blocks(kSendBuffer, s.absolute(*child), count), s.absolute(*child));
        else
            s.send(kept.at((*child - v - 1) * bytes), count * bytes, s.absolute(*child), 0, {received});
    }
    return std::move(s.graph);
}

Graph allgather_linear(const Request& request) {
    Steps s(request);
    const Share own = s.in(request.rank);
    for (std::uint32_t d = 1; d < request.size; ++d) {
        const Share block = s.in(s.down(d));
        s.take(Steps::received(block.offset), block.bytes, s.down(d));
        s.give(s.own(own.offset), own.bytes, s.up(d));
    }
    place_own(s);
    return std::move(s.graph);
}

Graph allgather_ring(const Request& request) {
    Steps s(request);
    place_own(s);
    Vertex here = kNoVertex, received = kNoVertex, sent = kNoVertex;
    Share block = s.in(request.rank);
    Place from = s.own(block.offset);
    for (std::uint32_t d = 1; d < request.size; ++d) {
        s.follow(sent, s.give(from, block.bytes, s.up(1), {here}));
        block = s.in(s.down(d));
        from = Steps::received(block.offset);
        here = s.take(from, block.bytes, s.down(1));
        s.follow(received, here);
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
        const Vertex send = s.graph.send(s.blocks(kReceiveBuffer, request.rank, count), s.down(distance));
        s.graph.needs(send, here);
        here =
            s.join({here, s.graph.receive(s.blocks(kReceiveBuffer, s.up(distance), count), s.up(distance))});
    }
    return std::move(s.graph);
}

Graph alltoall_linear(const Request& request) {
    Steps s(request);
    Outgoing out(s);
    for (std::uint32_t d = 1; d < request.size; ++d) {
        out.take(s.down(d), out.there);
        out.give(s.up(d), out.there);
    }
    out.keep_own();
    return std::move(s.graph);
}

Graph alltoall_pairwise(const Request& request) {
    Steps s(request);
    Outgoing out(s);
    Vertex step = out.there;
    for (std::uint32_t d = 1; d < request.size; ++d) {
        const Vertex in = out.take(s.down(d), step);
        const Vertex both = s.join({in, out.give(s.up(d), step)});
        if (both != kNoVertex) step = both;
    }
    out.keep_own();
    return std::move(s.graph);
}

// Block i is for the rank i above. In the round of bit b, all blocks with that bit go 2^b up together: in the
// end each has gone its way, and at i is what came from the rank i below.
Graph alltoall_bruck(const Request& request) {
    Steps s(request);
    const std::uint32_t size = request.size;
    const std::uint64_t bytes = request.bytes;
    Outgoing out(s);
    std::vector<Place> at(size);
    for (std::uint32_t i = 0; i < size; ++i) at[i] = out.place(s.up(i));
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
    out.keep_own();
    return std::move(s.graph);
}

Graph exchange(const Request& request) {
    Steps s(request);
    std::vector<const Block*> to_self;
    // What goes to one peer keeps its order.
    std::vector<Vertex> received(request.size, kNoVertex), sent(request.size, kNoVertex);
    for (const Block& b : request.receives) {
        if (b.bytes == 0) continue;
        if (b.peer == request.rank)
            to_self.push_back(&b);
        else
            s.follow(received[b.peer], s.receive(Steps::received(b.offset), b.bytes, b.peer, b.tag));
    }
    for (const Block& b : request.sends) {
        if (b.bytes == 0) continue;
        if (b.peer != request.rank) {
            s.follow(sent[b.peer], s.send(Steps::sent(b.offset), b.bytes, b.peer, b.tag));
            continue;
        }
        const auto to = std::ranges::find_if(to_self, [&](const Block* self) { return self->tag == b.tag; });
        if (to == to_self.end()) continue;
        s.copy(Steps::sent(b.offset), Steps::received((*to)->offset), b.bytes);
        to_self.erase(to);
    }
    return std::move(s.graph);
}

}  // namespace velo::goal::collectives::blocks
