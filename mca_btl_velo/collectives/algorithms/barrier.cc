#include "collectives/algorithms/barrier.h"

#include <bit>

#include "collectives/algorithms/steps.h"

namespace velo::goal::collectives::barrier {
namespace {

struct Signals : Steps {
    explicit Signals(const Request& request) : Steps(request), out(room(1)), in(room(1)) {}
    // Each waits for all that has been heard.
    void tell(std::uint32_t to, std::uint32_t tag) { send(out, 1, to, tag, {last}); }
    void hear(std::uint32_t from, std::uint32_t tag) { last = receive(in, 1, from, tag, {last}); }

    Place out, in;
    Vertex last = kNoVertex;
};

}  // namespace

// Bruck's: in round s every rank tells the one 2^s above.
Graph dissemination(const Request& request) {
    Signals s(request);
    for (std::uint64_t distance = 1; distance < request.size; distance <<= 1) {
        const auto d = static_cast<std::uint32_t>(distance);
        s.tell(s.up(d), 0);
        s.hear(s.down(d), 0);
    }
    return std::move(s.graph);
}

// The ranks beyond the largest power of two tell a partner first, and are told last. All that a partner tells
// others, not the first of it alone, waits for what it has been told by its own.
Graph recursive_doubling(const Request& request) {
    Signals s(request);
    const std::uint32_t core = std::bit_floor(request.size), rank = request.rank;
    if (rank >= core) {
        s.tell(rank - core, 1);
        s.hear(rank - core, 1);
        return std::move(s.graph);
    }
    const bool partnered = rank + core < request.size;
    if (partnered) s.hear(rank + core, 1);
    for (std::uint32_t mask = 1; mask < core; mask <<= 1) {
        s.tell(rank ^ mask, 0);
        s.hear(rank ^ mask, 0);
    }
    if (partnered) s.tell(rank + core, 1);
    return std::move(s.graph);
}

// Up a tree and down again.
Graph binomial(const Request& request) {
    Signals s(request);
    each_child(request.rank, request.size, [&](std::uint32_t child) { s.hear(child, 0); });
    if (request.rank > 0) {
        s.tell(father(request.rank), 0);
        s.hear(father(request.rank), 1);
    }
    each_child(request.rank, request.size, [&](std::uint32_t child) { s.tell(child, 1); });
    return std::move(s.graph);
}

}  // namespace velo::goal::collectives::barrier
