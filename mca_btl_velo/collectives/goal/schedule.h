// The compiled form of a graph: one block of memory without pointers, which can be copied, written and handed
// over as it is. Operations keep the numbers that the graph gave them.
//
//     Header | Operation[n] | Combination[] | Piece[] | counters[n] | spans[2n + 1] | edges[] |
//     independents[]
//
// A counter says for how many operations one has to wait. The operations that wait for the end of v are edges
// spans[2v] to spans[2v + 1], those that wait for its start go on to spans[2v + 2], both in the order in
// which the graph was told. Independent ones are in the order in which a run starts them.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collectives/goal/graph.h"

namespace velo::goal {

class Schedule {
 public:
    std::uint32_t rank() const { return header().rank; }
    std::uint32_t size() const { return header().size; }  // ranks
    std::uint64_t scratch_bytes() const { return header().scratch; }

    std::uint32_t count() const { return header().operations; }
    const Operation& operation(Vertex v) const { return at<Operation>(sizeof(Header))[v]; }
    std::span<const Operation> operations() const { return {at<Operation>(sizeof(Header)), count()}; }
    const Combination& combination(const Operation& o) const {
        return at<Combination>(header().combinations)[o.peer];
    }
    const Piece* pieces() const { return at<Piece>(header().pieces); }
    std::span<const Piece> pieces(const Operation& o) const { return {pieces() + o.offset, o.pieces}; }

    const std::uint32_t* counters() const { return at<std::uint32_t>(header().counters); }
    std::span<const Vertex> dependents(Vertex v) const { return edges(std::size_t{2} * v); }
    std::span<const Vertex> start_dependents(Vertex v) const { return edges(std::size_t{2} * v + 1); }
    std::span<const Vertex> independents() const {
        return {at<Vertex>(header().independents), header().independent_count};
    }

    std::span<const std::byte> image() const { return std::as_bytes(std::span(block_)); }

 private:
    friend class Compiler;
    struct Header {
        std::uint32_t rank, size, operations, independent_count;
        std::uint64_t scratch;
        std::uint64_t combinations, pieces, counters, spans, edges, independents;  // offsets in the block
    };

    const Header& header() const { return *at<Header>(0); }
    template <typename T>
    const T* at(std::uint64_t offset) const {
        return reinterpret_cast<const T*>(reinterpret_cast<const std::byte*>(block_.data()) + offset);
    }
    std::span<const Vertex> edges(std::size_t span) const {
        const std::uint32_t* spans = at<std::uint32_t>(header().spans) + span;
        return {at<Vertex>(header().edges) + spans[0], spans[1] - spans[0]};
    }

    std::vector<std::uint64_t> block_;
};

// The order in which operations that are ready at the same time are started: receives, so that what comes is
// expected; sends; then what keeps the processor. Equal ones by number, so that sends to one peer keep
// theirs.
inline bool starts_before(const Operation& a, Vertex v, const Operation& b, Vertex w) {
    constexpr std::uint8_t kOrder[] = {0, 1, 0, 3, 2, 4};
    const std::uint8_t x = kOrder[static_cast<unsigned>(a.kind)], y = kOrder[static_cast<unsigned>(b.kind)];
    return x != y ? x < y : v < w;
}

// What to call an operation in messages; by default its number.
using Naming = std::function<std::string(Vertex)>;
// "send 8b to 3 tag 1"
std::string describe(const Operation& operation, const Schedule* schedule = nullptr);

// None if the graph was built wrongly or has a cycle; `error` says which.
std::optional<Schedule> compile(const Graph& graph, std::string* error, const Naming& naming = {});

}  // namespace velo::goal
