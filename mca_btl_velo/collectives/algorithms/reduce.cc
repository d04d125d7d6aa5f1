#include "collectives/algorithms/reduce.h"

#include "collectives/algorithms/parts.h"

namespace velo::goal::collectives::reduce {

Graph linear(const Request& request) {
    Steps s(request);
    const std::uint64_t bytes = request.bytes;
    if (request.rank != request.root) {
        s.send(s.own(), bytes, request.root, 0);
        return std::move(s.graph);
    }
    Partial own{s.own(), kNoVertex};
    if (request.in_place && request.size > 1) {
        own.place = s.room(bytes);
        own.done = s.copy(Steps::received(), own.place, bytes);
    }
    const auto operand = [&](std::uint32_t rank) {
        if (rank == request.rank) return own;
        const Place from = s.room(bytes);
        return Partial{from, s.receive(from, bytes, rank, 0)};
    };
    Partial sum = operand(0);
    if (request.size == 1) s.copy(sum.place, Steps::received(), bytes, {sum.done});
    // In place, the first result must not come before the copy has been made.
    for (std::uint32_t rank = 1; rank < request.size; ++rank) {
        const Partial next = operand(rank);
        sum = {Steps::received(),
               s.combine(sum.place, next.place, Steps::received(), bytes, {sum.done, next.done, own.done})};
    }
    return std::move(s.graph);
}

Graph binomial(const Request& request) {
    Steps s(request);
    // Without commuting only the tree of rank 0 is in order.
    const std::uint32_t top = request.reduction.commutative ? request.root : 0;
    const bool is_top = request.rank == top, is_root = request.rank == request.root;
    const Place target = is_top && !is_root ? s.room(request.bytes) : Steps::received();
    const Partial sum = up_tree(s, everybody(request), top, {s.own(), kNoVertex}, target, 0);
    if (top == request.root) return std::move(s.graph);
    if (is_top) s.send(sum.place, request.bytes, request.root, 1, {sum.done});
    if (is_root) s.receive(Steps::received(), request.bytes, top, 1, {sum.done});
    return std::move(s.graph);
}

Graph all_by_broadcast(const Request& request) {
    Steps s(request);
    const Group all = everybody(request);
    const Partial sum = up_tree(s, all, 0, {s.own(), kNoVertex}, Steps::received(), 0);
    down_tree(s, all, 0, request.bytes, 1, sum.done);
    return std::move(s.graph);
}

Graph all_by_recursive_doubling(const Request& request) {
    Steps s(request);
    doubled(s, everybody(request), {s.own(), kNoVertex}, 0);
    return std::move(s.graph);
}

Graph all_by_ring(const Request& request) {
    Steps s(request);
    const std::uint32_t size = request.size, rank = request.rank;
    if (size == 1) {
        s.copy(s.own(), Steps::received(), request.bytes);
        return std::move(s.graph);
    }
    const auto part = [&](std::uint32_t i) {
        return share(request.bytes, request.element(), size, i % size);
    };
    const Place from[] = {s.room(part(0).bytes), s.room(part(0).bytes)};
    std::vector<Vertex> sent(size), combined(size, kNoVertex);
    Vertex received = kNoVertex;
    const auto in_order = [&](Vertex later, Vertex earlier) { s.graph.needs_start(later, earlier); };
    for (std::uint32_t k = 0; k + 1 < size; ++k) {
        const Share out = part(rank + size - k), in = part(rank + 2 * size - k - 1);
        const Place source = k == 0 ? s.own().at(out.offset) : Steps::received(out.offset);
        sent[k] = s.send(source, out.bytes, s.up(1), 0, {k > 0 ? combined[k - 1] : kNoVertex});
        const Vertex next =
            s.receive(from[k % 2], in.bytes, s.down(1), 0, {k > 1 ? combined[k - 2] : kNoVertex});
        if (k > 0) in_order(sent[k], sent[k - 1]), in_order(next, received);
        received = next;
        combined[k] =
            s.combine(s.own().at(in.offset), from[k % 2], Steps::received(in.offset), in.bytes, {next});
    }
    Vertex here = combined[size - 2], last = kNoVertex;
    received = kNoVertex;
    for (std::uint32_t k = 0; k + 1 < size; ++k) {
        const Share out = part(rank + size + 1 - k), in = part(rank + size - k);
        const Vertex send = s.send(Steps::received(out.offset), out.bytes, s.up(1), 1, {here});
        // This share was sent before, from where it comes to.
        here = s.receive(Steps::received(in.offset), in.bytes, s.down(1), 1, {sent[k]});
        in_order(send, last), in_order(here, received);
        last = send;
        received = here;
    }
    return std::move(s.graph);
}

Graph all_by_halving(const Request& request) {
    Steps s(request);
    const std::uint64_t bytes = request.bytes;
    const Core core(request.size);
    if (core.leaves(request.rank)) {
        stand_aside(s, everybody(request), {s.own(), kNoVertex}, 0);
        return std::move(s.graph);
    }
    Partial sum = take_over(s, everybody(request), core, {s.own(), kNoVertex}, 0);
    if (core.count == 1) sum.done = s.copy(sum.place, Steps::received(), bytes, {sum.done});
    const std::uint32_t me = core.number(request.rank);
    const auto begin = [&](std::uint32_t i) {
        return i == core.count ? bytes : share(bytes, request.element(), core.count, i).offset;
    };
    // Shares `low` to `high` are this rank's; each round gives half of them away.
    struct Round {
        std::uint32_t partner, low, middle, high;
        bool upper;
        Vertex sent;
    };
    std::vector<Round> rounds;
    std::uint32_t low = 0, high = core.count;
    for (std::uint32_t mask = core.count / 2; mask > 0; mask /= 2) {
        Round r{core.member(me ^ mask), low, low + mask, high, (me & mask) != 0, kNoVertex};
        const std::uint64_t lower[] = {begin(r.low), begin(r.middle)},
                            upper[] = {begin(r.middle), begin(r.high)};
        const auto& away = r.upper ? lower : upper;
        const auto& mine = r.upper ? upper : lower;
        const Place from = s.room(mine[1] - mine[0]);
        const Vertex received = s.receive(from, mine[1] - mine[0], r.partner, 2);
        r.sent = s.send(sum.place.at(away[0]), away[1] - away[0], r.partner, 2, {sum.done});
        sum = {Steps::received(), s.combine(sum.place.at(mine[0]), from, Steps::received(mine[0]),
                                            mine[1] - mine[0], {received, sum.done})};
        (r.upper ? low : high) = r.middle;
        rounds.push_back(r);
    }
    for (auto r = rounds.rbegin(); r != rounds.rend(); ++r) {
        const std::uint64_t lower[] = {begin(r->low), begin(r->middle)},
                            upper[] = {begin(r->middle), begin(r->high)};
        const auto& away = r->upper ? upper : lower;
        const auto& mine = r->upper ? lower : upper;  // what was given away comes back
        s.send(Steps::received(away[0]), away[1] - away[0], r->partner, 3, {sum.done});
        const Vertex back = s.receive(Steps::received(mine[0]), mine[1] - mine[0], r->partner, 3, {r->sent});
        sum.done = s.join({back, sum.done});
    }
    if (core.paired(request.rank)) s.send(Steps::received(), bytes, request.rank - 1, 1, {sum.done});
    return std::move(s.graph);
}

namespace {

// Operand `rank` of this rank's block comes from that rank; it is combined in the order that `ranks` gives.
Graph scatter(const Request& request, bool pairwise) {
    Steps s(request);
    const std::uint64_t bytes = s.out(request.rank).bytes;
    const Place mine = request.in_place ? Steps::received() : Steps::sent();
    const auto block = [&](std::uint32_t i) { return mine.at(s.out(i).offset); };
    if (request.size == 1) {
        s.copy(block(0), Steps::received(), bytes);
        return std::move(s.graph);
    }
    std::vector<Vertex> sent;
    const auto give = [&](std::uint32_t to, Vertex after) {
        const Vertex v = s.give(block(to), s.out(to).bytes, to, {after});
        if (v != kNoVertex) sent.push_back(v);
        return v;
    };
    // In place, block 0 is read by its send and maybe as an operand: the result comes there at the end.
    const Place sum = request.in_place ? s.room(bytes) : Steps::received();
    Partial left{};
    const auto add = [&](const Partial& next, bool first) {
        left = first ? next
                     : Partial{sum, s.combine(left.place, next.place, sum, bytes, {left.done, next.done})};
    };
    if (pairwise) {
        const Place from[] = {s.room(bytes), s.room(bytes)};
        add({block(request.rank), kNoVertex}, true);
        Vertex step = kNoVertex, used[] = {kNoVertex, kNoVertex};
        for (std::uint32_t d = 1; d < request.size; ++d) {
            const Vertex in = s.take(from[d % 2], bytes, s.down(d), {step, used[d % 2]});
            const Vertex both = s.join({in, give(s.up(d), step)});
            if (both != kNoVertex) step = both;
            add({from[d % 2], in}, false);
            used[d % 2] = left.done;
        }
    } else {
        for (std::uint32_t d = 1; d < request.size; ++d) give(s.up(d), kNoVertex);
        for (std::uint32_t rank = 0; rank < request.size; ++rank) {
            if (rank == request.rank) {
                add({block(rank), kNoVertex}, rank == 0);
                continue;
            }
            const Place from = s.room(bytes);
            add({from, s.take(from, bytes, rank)}, rank == 0);
        }
    }
    if (!request.in_place) return std::move(s.graph);
    const Vertex copy = s.copy(sum, Steps::received(), bytes, {left.done});
    for (const Vertex v : sent) s.graph.needs(copy, v);
    return std::move(s.graph);
}

}  // namespace

Graph scatter_linear(const Request& request) {
    return scatter(request, false);
}
Graph scatter_pairwise(const Request& request) {
    return scatter(request, true);
}

Graph scan_linear(const Request& request) {
    Steps s(request);
    const std::uint64_t bytes = request.bytes;
    Partial sum{s.own(), kNoVertex};
    if (request.rank > 0) {
        const Place from = s.room(bytes);
        const Vertex received = s.receive(from, bytes, request.rank - 1, 0);
        sum = {Steps::received(), s.combine(from, s.own(), Steps::received(), bytes, {received})};
    } else {
        s.copy(s.own(), Steps::received(), bytes);
    }
    if (request.rank + 1 < request.size) s.send(sum.place, bytes, request.rank + 1, 0, {sum.done});
    return std::move(s.graph);
}

Graph exscan_linear(const Request& request) {
    Steps s(request);
    const std::uint64_t bytes = request.bytes;
    const bool last = request.rank + 1 == request.size;
    Partial sum{s.own(), kNoVertex};
    if (request.rank > 0) {
        // In place, the own operand lies where the result comes to.
        const Place from = last ? Steps::received() : s.room(bytes);
        const Vertex received = s.receive(from, bytes, request.rank - 1, 0);
        if (last) return std::move(s.graph);
        const Place into = s.room(bytes);
        sum = {into, s.combine(from, s.own(), into, bytes, {received})};
        s.copy(from, Steps::received(), bytes, {sum.done});
    }
    if (!last) s.send(sum.place, bytes, request.rank + 1, 0, {sum.done});
    return std::move(s.graph);
}

namespace {

// Each round doubles the ranks that `partial` stands for; what comes from the left belongs to the prefix too.
Graph prefix(const Request& request, bool inclusive) {
    Steps s(request);
    const std::uint64_t bytes = request.bytes;
    // The own operand is kept aside where the result comes over it.
    const Place mine = s.room(bytes);
    Partial partial{mine, s.copy(s.own(), mine, bytes)};
    Vertex result = inclusive ? s.copy(s.own(), Steps::received(), bytes) : kNoVertex;
    if (inclusive && result == kNoVertex) result = partial.done;
    bool has_result = inclusive;
    for (std::uint64_t mask = 1; mask < request.size; mask <<= 1) {
        const std::uint32_t partner = request.rank ^ static_cast<std::uint32_t>(mask);
        if (partner >= request.size) continue;
        const Place from = s.room(bytes);
        const Vertex received = s.receive(from, bytes, partner, 0);
        const Vertex sent = s.send(partial.place, bytes, partner, 0, {partial.done});
        const bool left = partner < request.rank;
        if (left && has_result)
            result = s.combine(from, Steps::received(), Steps::received(), bytes,
                               {received, result, partial.done});
        else if (left)
            result = s.copy(from, Steps::received(), bytes, {received, partial.done});
        has_result = has_result || left;
        partial.done = s.combine(left ? from : partial.place, left ? partial.place : from, partial.place,
                                 bytes, {received, sent, partial.done});
    }
    return std::move(s.graph);
}

}  // namespace

Graph scan_recursive_doubling(const Request& request) {
    return prefix(request, true);
}
Graph exscan_recursive_doubling(const Request& request) {
    return prefix(request, false);
}

}  // namespace velo::goal::collectives::reduce
