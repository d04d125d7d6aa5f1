#include "collectives/algorithms/broadcast.h"

#include "collectives/algorithms/parts.h"

namespace velo::goal::collectives::broadcast {

Graph linear(const Request& request) {
    Steps s(request);
    if (request.rank != request.root)
        s.receive(Steps::received(), request.bytes, request.root, 0);
    else
        for (std::uint32_t d = 1; d < request.size; ++d) s.send(Steps::received(), request.bytes, s.up(d), 0);
    return std::move(s.graph);
}

Graph binomial(const Request& request) {
    Steps s(request);
    down_tree(s, everybody(request), request.root, request.bytes, 0, kNoVertex);
    return std::move(s.graph);
}

// Through all ranks, in segments.
Graph chain(const Request& request) {
    constexpr std::uint64_t kSegment = 32768;
    Steps s(request);
    const std::uint64_t segment = request.segment > 0 ? request.segment : kSegment;
    const std::uint32_t v = s.relative();
    Vertex received = kNoVertex, sent = kNoVertex;
    for (std::uint64_t at = 0; at < request.bytes; at += segment) {
        const std::uint64_t bytes = std::min(segment, request.bytes - at);
        if (v > 0) {
            const Vertex next = s.receive(Steps::received(at), bytes, s.down(1), 0);
            s.graph.needs_start(next, received);
            received = next;
        }
        if (v + 1 == request.size) continue;
        const Vertex next = s.send(Steps::received(at), bytes, s.up(1), 0, {received});
        s.graph.needs_start(next, sent);
        sent = next;
    }
    return std::move(s.graph);
}

// Each rank gets the shares of its subtree, then all shares go round. What a rank has of its subtree is not
// sent to it again.
Graph scatter_allgather(const Request& request) {
    Steps s(request);
    const std::uint32_t size = request.size, v = s.relative();
    const auto offset = [&](std::uint32_t i) {
        return i == size ? request.bytes : share(request.bytes, 1, size, i).offset;
    };
    std::vector<Vertex> has(size, kNoVertex);  // by share: what brings it
    Vertex scattered = kNoVertex;
    if (v > 0) {
        const std::uint32_t end = v + subtree(v, size);
        scattered = s.receive(Steps::received(offset(v)), offset(end) - offset(v), s.absolute(father(v)), 0);
        std::fill(has.begin() + v, has.begin() + end, scattered);
    }
    each_child(v, size, [&](std::uint32_t child) {
        const std::uint32_t end = child + subtree(child, size);
        s.send(Steps::received(offset(child)), offset(end) - offset(child), s.absolute(child), 0,
               {scattered});
    });
    const auto scattered_to = [&](std::uint32_t rank, std::uint32_t i) {
        return i >= rank && i < rank + subtree(rank, size);
    };
    const std::uint32_t next = (v + 1) % size;
    Vertex sent = kNoVertex, received = kNoVertex;
    for (std::uint32_t k = 0; k + 1 < size; ++k) {
        const std::uint32_t out = (v + size - k) % size, in = (v + 2 * size - k - 1) % size;
        if (!scattered_to(v, in)) {
            const Share part = share(request.bytes, 1, size, in);
            has[in] = s.receive(Steps::received(part.offset), part.bytes, s.down(1), 1);
            s.graph.needs_start(has[in], received);
            received = has[in];
        }
        if (!scattered_to(next, out)) {
            const Share part = share(request.bytes, 1, size, out);
            const Vertex send = s.send(Steps::received(part.offset), part.bytes, s.up(1), 1, {has[out]});
            s.graph.needs_start(send, sent);
            sent = send;
        }
    }
    return std::move(s.graph);
}

}  // namespace velo::goal::collectives::broadcast
