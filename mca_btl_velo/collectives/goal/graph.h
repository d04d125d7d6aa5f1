// One rank's part of a schedule while it is being built: operations, and what each has to wait for.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "collectives/goal/operation.h"

namespace velo::goal {

class Graph {
 public:
    Graph(std::uint32_t rank, std::uint32_t size) : rank_(rank), size_(size) {}

    // What is wrong with an operation is kept, the first time, and told by compile(). All of them return the
    // new vertex.
    Vertex send(Place from, std::uint64_t bytes, std::uint32_t to, std::uint32_t tag = 0);
    Vertex receive(Place into, std::uint64_t bytes, std::uint32_t from, std::uint32_t tag = 0);
    // Pieces travel without gaps, in their order. Both ends may cut differently.
    Vertex send(std::span<const Piece> pieces, std::uint32_t to, std::uint32_t tag = 0);
    Vertex receive(std::span<const Piece> pieces, std::uint32_t from, std::uint32_t tag = 0);
    Vertex calculate(std::uint64_t ns, std::uint8_t cpu = 0);
    Vertex copy(Place from, Place to, std::uint64_t bytes);
    Vertex combine(const Combination& combination);
    // For the operands of a combination.
    Operand operand(Place place) const { return {place.offset, 0, place.space}; }
    Operand operand(std::span<const Piece> pieces);
    Vertex call(std::uint32_t function);
    // As it is: what a file says.
    Vertex add(const Operation& operation);

    // `later` starts when `earlier` has finished; when it has been started. kNoVertex: nothing to wait for.
    void needs(Vertex later, Vertex earlier) { add(Edge{earlier, later, false}); }
    void needs_start(Vertex later, Vertex earlier) { add(Edge{earlier, later, true}); }

    // At least so much memory for a run.
    void scratch(std::uint64_t bytes) { scratch_ = std::max(scratch_, bytes); }

    struct Edge {
        Vertex earlier, later;
        bool start;
    };
    std::uint32_t rank() const { return rank_; }
    std::uint32_t size() const { return size_; }
    std::uint64_t scratch() const { return scratch_; }
    const std::vector<Operation>& operations() const { return operations_; }
    const std::vector<Edge>& edges() const { return edges_; }
    const std::vector<Combination>& combinations() const { return combinations_; }
    const std::vector<Piece>& pieces() const { return pieces_; }
    const std::string& error() const { return error_; }

 private:
    Vertex communicate(Kind kind, Place place, std::uint64_t bytes, std::uint32_t peer, std::uint32_t tag);
    Vertex communicate(Kind kind, std::span<const Piece> pieces, std::uint32_t peer, std::uint32_t tag);
    void add(const Edge& edge);
    void fail(const std::string& what);

    std::uint32_t rank_, size_;
    std::uint64_t scratch_ = 0;
    std::vector<Operation> operations_;
    std::vector<Edge> edges_;
    std::vector<Combination> combinations_;
    std::vector<Piece> pieces_;
    std::string error_;
};

}  // namespace velo::goal
