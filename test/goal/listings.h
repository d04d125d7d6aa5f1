// The listings of ESPGOAL's chapter 5, in their printed form and in their right one.
#pragma once

#include <bit>
#include <stdexcept>
#include <vector>

#include "collectives/goal/program.h"

namespace velo::goal::listings {

inline constexpr Space kSend = 0, kReceive = 1;

template <typename Make>
Program of_all(std::uint32_t size, Make make) {
    Program program;
    for (std::uint32_t rank = 0; rank < size; ++rank) {
        Graph graph(rank, size);
        make(graph, rank);
        std::string error;
        auto schedule = compile(graph, &error);
        if (!schedule) throw std::runtime_error(error);
        program.schedules.push_back(std::move(*schedule));
    }
    return program;
}

// 5.4. One byte is sent from, others received into: the listing has one for all.
inline Program recursive_doubling_barrier(std::uint32_t size, bool printed) {
    return of_all(size, [=](Graph& g, std::uint32_t rank) {
        const std::uint32_t core = std::bit_floor(size);
        Vertex receive = kNoVertex, send = kNoVertex;
        std::vector<Vertex> sends;
        g.scratch(3);
        if (rank < core)
            for (std::uint32_t mask = 1; mask < core; mask <<= 1) {
                send = g.send({0, kScratch}, 1, rank ^ mask);
                const Vertex next = g.receive({1, kScratch}, 1, rank ^ mask);
                g.needs(send, receive);
                g.needs(next, receive);
                if (!printed && !sends.empty()) g.needs(send, sends.back());
                sends.push_back(send);
                receive = next;
            }
        if (size == core) return;
        if (rank < size - core) {
            const Vertex out = g.send({0, kScratch}, 1, rank + core, 1);
            const Vertex in = g.receive({2, kScratch}, 1, rank + core, 1);
            g.needs(sends.front(), in);
            g.needs(out, receive);
        } else if (rank >= core) {
            g.send({0, kScratch}, 1, rank - core, 1);
            g.receive({2, kScratch}, 1, rank - core, 1);
        }
    });
}

// 5.4, the second one.
inline Program bruck_barrier(std::uint32_t size) {
    return of_all(size, [=](Graph& g, std::uint32_t rank) {
        Vertex before = kNoVertex;
        g.scratch(2);
        for (std::uint32_t distance = 1; distance < size; distance <<= 1) {
            const Vertex send = g.send({0, kScratch}, 1, (rank + distance) % size);
            const Vertex receive = g.receive({1, kScratch}, 1, (rank + size - distance) % size);
            g.needs(send, before);
            g.needs(receive, before);
            before = receive;
        }
    });
}

// 5.5, linear_sync. `turned`: requirements as printed, the target first, so that the sync waits for the data.
// `misplaced`: the sync lands in the receive buffer, and the root's own block at its beginning.
inline Program linear_sync_gather(std::uint32_t size, std::uint32_t root, std::uint64_t block,
                                  std::uint64_t segment, bool turned, bool misplaced) {
    return of_all(size, [=](Graph& g, std::uint32_t rank) {
        const auto requires_as = [&](Vertex later, Vertex earlier) {
            turned ? g.needs(earlier, later) : g.needs(later, earlier);
        };
        if (rank != root) {
            if (!misplaced) g.scratch(1);
            const Vertex sync = g.receive(misplaced ? Place{0, kReceive} : Place{0, kScratch}, 1, root);
            const Vertex first = g.send({0, kSend}, segment, root);
            const Vertex rest = g.send({segment, kSend}, block - segment, root);
            requires_as(first, sync);
            g.needs(rest, first);
            return;
        }
        const std::uint64_t own = misplaced ? 0 : root * block;
        const Vertex copy = g.copy({0, kSend}, {own, kReceive}, block);
        for (std::uint32_t p = 0; p < size; ++p) {
            if (p == root) continue;
            const Vertex first = g.receive({p * block, kReceive}, segment, p);
            const Vertex sync = g.send({0, kSend}, 1, p);
            const Vertex rest = g.receive({p * block + segment, kReceive}, block - segment, p);
            if (!turned) g.needs_start(sync, first);
            requires_as(rest, sync);
            if (turned) g.needs(first, copy);
        }
    });
}

// 5.5, the binomial tree as printed: the tree is that of rank 0, whatever the root.
inline Program binomial_gather(std::uint32_t size, std::uint32_t root, std::uint64_t block) {
    const auto parent = [](std::uint32_t rank) { return rank & (rank - 1); };
    return of_all(size, [=](Graph& g, std::uint32_t rank) {
        std::vector<Vertex> receives;
        std::uint64_t received = 0;
        if (rank == root) {
            g.send({0, kSend}, block, root, 1);
            g.receive({0, kReceive}, block, root, 1);
        }
        for (std::uint32_t mask = 1; mask < size && (rank & (mask - 1)) == 0 && (rank & mask) == 0;
             mask <<= 1) {
            const std::uint32_t child = rank | mask;
            if (child >= size) break;
            if (receives.empty() && rank != root) {
                g.send({0, kSend}, block, rank, 1);
                receives.push_back(g.receive({0, kScratch}, block, rank, 1));
            }
            const std::uint64_t bytes = std::min(mask, size - child) * block;
            receives.push_back(
                g.receive({received + block, rank == root ? kReceive : kScratch}, bytes, child, 2));
            received += bytes;
        }
        if (rank == root) return;
        const bool inner = !receives.empty();
        const Vertex up = g.send({0, inner ? kScratch : kSend}, received + block, parent(rank), 2);
        for (const Vertex receive : receives) g.needs(up, receive);
        if (inner) g.scratch(received + block);
    });
}

}  // namespace velo::goal::listings
