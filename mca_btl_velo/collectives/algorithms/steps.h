// What the algorithms share.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

#include "collectives/algorithms/collectives.h"

namespace velo::goal::collectives {

// A part of a buffer.
struct Share {
    std::uint64_t offset, bytes;
};

// The graph of one rank while an algorithm writes it.
struct Steps {
    explicit Steps(const Request& request) : request(request), graph(request.rank, request.size) {}

    // Room in the scratchpad.
    Place room(std::uint64_t bytes) {
        const Place place{used, kScratch};
        used += (bytes + 63) / 64 * 64;
        graph.scratch(used);
        return place;
    }
    static Place sent(std::uint64_t offset = 0) { return {offset, kSendBuffer}; }
    static Place received(std::uint64_t offset = 0) { return {offset, kReceiveBuffer}; }
    // Where this rank's own contribution lies: of `bytes` in the receive buffer at `offset` if in place.
    Place own(std::uint64_t offset = 0) const { return request.in_place ? received(offset) : sent(); }

    void needs(Vertex later, std::span<const Vertex> earlier) {
        for (const Vertex v : earlier) graph.needs(later, v);
    }
    void needs(Vertex later, std::initializer_list<Vertex> earlier) {
        needs(later, std::span(earlier.begin(), earlier.size()));
    }
    // result = first op second
    Vertex combine(Place first, Place second, Place result, std::uint64_t bytes,
                   std::initializer_list<Vertex> earlier) {
        Combination c;
        c.op = request.reduction.op;
        c.type = request.reduction.type;
        c.width = request.reduction.width;
        c.elements = bytes / (c.width / 8);
        c.first = graph.operand(first);
        c.second = graph.operand(second);
        c.result = graph.operand(result);
        const Vertex v = graph.combine(c);
        needs(v, earlier);
        return v;
    }
    Vertex copy(Place from, Place to, std::uint64_t bytes, std::initializer_list<Vertex> earlier = {}) {
        if (from == to || bytes == 0) return earlier.size() == 0 ? kNoVertex : join(earlier);
        const Vertex v = graph.copy(from, to, bytes);
        needs(v, earlier);
        return v;
    }
    // What ends after all of them: one operation, or kNoVertex after nothing.
    Vertex join(std::initializer_list<Vertex> earlier) {
        return join(std::span(earlier.begin(), earlier.size()));
    }
    Vertex join(std::span<const Vertex> earlier) {
        Vertex one = kNoVertex;
        std::size_t count = 0;
        for (const Vertex v : earlier)
            if (v != kNoVertex) one = v, ++count;
        if (count <= 1) return one;
        const Vertex v = graph.calculate(0);
        needs(v, earlier);
        return v;
    }
    Vertex send(Place from, std::uint64_t bytes, std::uint32_t to, std::uint32_t tag,
                std::initializer_list<Vertex> earlier = {}) {
        const Vertex v = graph.send(from, bytes, to, tag);
        needs(v, earlier);
        return v;
    }
    Vertex receive(Place into, std::uint64_t bytes, std::uint32_t from, std::uint32_t tag,
                   std::initializer_list<Vertex> earlier = {}) {
        const Vertex v = graph.receive(into, bytes, from, tag);
        needs(v, earlier);
        return v;
    }

    // Blocks of the two buffers, by rank.
    Share out(std::uint32_t i) const { return block(request.sends, i); }
    Share in(std::uint32_t i) const { return block(request.receives, i); }
    // One of them; both ends know that nothing goes where it is empty, and then it is kNoVertex.
    Vertex give(Place from, std::uint64_t bytes, std::uint32_t to,
                std::initializer_list<Vertex> earlier = {}) {
        return bytes == 0 ? kNoVertex : send(from, bytes, to, 0, earlier);
    }
    Vertex take(Place into, std::uint64_t bytes, std::uint32_t from,
                std::initializer_list<Vertex> earlier = {}) {
        return bytes == 0 ? kNoVertex : receive(into, bytes, from, 0, earlier);
    }
    // Blocks from rank `first` on, round to rank 0, in one of the buffers: as few pieces as may be.
    std::vector<Piece> blocks(Space space, std::uint32_t first, std::uint64_t count) const {
        std::vector<Piece> pieces;
        for (std::uint64_t k = 0; k < count; ++k) {
            const auto i = static_cast<std::uint32_t>((first + k) % request.size);
            const Share next = space == kSendBuffer ? out(i) : in(i);
            if (!pieces.empty() && next.offset == pieces.back().place.offset + pieces.back().bytes)
                pieces.back().bytes += next.bytes;
            else if (next.bytes > 0 || pieces.empty())
                pieces.push_back({{next.offset, space}, next.bytes});
        }
        return pieces;
    }
    // Starts when the one before, if there is one, has been started.
    void follow(Vertex& before, Vertex v) {
        if (v == kNoVertex) return;
        graph.needs_start(v, before);
        before = v;
    }

    // Ranks counted from the root on.
    std::uint32_t relative() const { return (request.rank + request.size - request.root) % request.size; }
    std::uint32_t absolute(std::uint32_t relative) const { return (relative + request.root) % request.size; }
    std::uint32_t up(std::uint32_t distance) const { return (request.rank + distance) % request.size; }
    std::uint32_t down(std::uint32_t distance) const {
        return (request.rank + request.size - distance % request.size) % request.size;
    }

    const Request& request;
    Graph graph;
    std::uint64_t used = 0;

 private:
    Share block(std::span<const Block> blocks, std::uint32_t i) const {
        return blocks.empty() ? Share{i * request.bytes, request.bytes}
                              : Share{blocks[i].offset, blocks[i].bytes};
    }
};

// Block `i` of a vector that is shared out among `count`, in whole elements.
inline Share share(std::uint64_t bytes, std::uint64_t element, std::uint32_t count, std::uint32_t i) {
    const std::uint64_t elements = bytes / element, each = elements / count, rest = elements % count;
    const std::uint64_t begin = i * each + std::min<std::uint64_t>(i, rest);
    return {begin * element, (each + (i < rest)) * element};
}

// The children of a rank in the binomial tree, nearest first.
template <typename Visit>
void each_child(std::uint32_t rank, std::uint32_t size, Visit visit) {
    for (std::uint64_t mask = 1; rank + mask < size && (rank & mask) == 0; mask <<= 1)
        visit(static_cast<std::uint32_t>(rank + mask));
}

}  // namespace velo::goal::collectives
