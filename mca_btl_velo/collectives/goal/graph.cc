#include "collectives/goal/graph.h"

#include "collectives/goal/combine.h"

namespace velo::goal {

void Graph::fail(const std::string& what) {
    if (error_.empty()) error_ = "rank " + std::to_string(rank_) + ": " + what;
}

Vertex Graph::add(const Operation& operation) {
    const auto vertex = static_cast<Vertex>(operations_.size());
    if (vertex == kNoVertex - 1) fail("more than 2^32 operations");
    operations_.push_back(operation);
    if (operation.communicates() && operation.peer >= size_ &&
        (operation.kind == Kind::kSend || operation.peer != kAny))
        fail("operation " + std::to_string(vertex) +
             (operation.kind == Kind::kSend ? " sends to rank " : " receives from rank ") +
             (operation.peer == kAny ? "any" : std::to_string(operation.peer)) + ", but there are " +
             std::to_string(size_) + " ranks");
    return vertex;
}

Vertex Graph::communicate(Kind kind, Place place, std::uint64_t bytes, std::uint32_t peer,
                          std::uint32_t tag) {
    Operation operation;
    operation.kind = kind;
    operation.space = place.space;
    operation.offset = place.offset;
    operation.bytes = bytes;
    operation.peer = peer;
    operation.tag = tag;
    return add(operation);
}

Vertex Graph::communicate(Kind kind, std::span<const Piece> pieces, std::uint32_t peer, std::uint32_t tag) {
    std::uint64_t bytes = 0;
    for (const Piece& piece : pieces) bytes += piece.bytes;
    const Operand place = operand(pieces);
    const Vertex vertex = communicate(kind, {place.offset, place.space}, bytes, peer, tag);
    operations_[vertex].pieces = place.pieces;
    return vertex;
}

Operand Graph::operand(std::span<const Piece> pieces) {
    if (pieces.size() == 1) return operand(pieces[0].place);
    const Operand operand{pieces_.size(), static_cast<std::uint32_t>(pieces.size()), kNowhere};
    pieces_.insert(pieces_.end(), pieces.begin(), pieces.end());
    return operand;
}

Vertex Graph::send(Place from, std::uint64_t bytes, std::uint32_t to, std::uint32_t tag) {
    return communicate(Kind::kSend, from, bytes, to, tag);
}
Vertex Graph::receive(Place into, std::uint64_t bytes, std::uint32_t from, std::uint32_t tag) {
    return communicate(Kind::kReceive, into, bytes, from, tag);
}
Vertex Graph::send(std::span<const Piece> pieces, std::uint32_t to, std::uint32_t tag) {
    return communicate(Kind::kSend, pieces, to, tag);
}
Vertex Graph::receive(std::span<const Piece> pieces, std::uint32_t from, std::uint32_t tag) {
    return communicate(Kind::kReceive, pieces, from, tag);
}

Vertex Graph::calculate(std::uint64_t ns, std::uint8_t cpu) {
    Operation operation;
    operation.kind = Kind::kCalculate;
    operation.bytes = ns;
    operation.cpu = cpu;
    return add(operation);
}

Vertex Graph::copy(Place from, Place to, std::uint64_t bytes) {
    Combination copy;
    copy.first = operand(from);
    copy.result = operand(to);
    copy.elements = bytes;
    return combine(copy);
}

Vertex Graph::combine(const Combination& combination) {
    if (!is_legal(combination.op, combination.type, combination.width))
        fail(std::string("there is no operation ") + name(combination.op) + " on " + name(combination.type) +
             " of " + std::to_string(combination.width) + " bits");
    if (combination.op == Operator::kOwn &&
        combination.first.pieces + combination.second.pieces + combination.result.pieces > 0)
        fail("an operation of the program's own has operands in pieces");
    Operation operation;
    operation.kind = Kind::kCombine;
    operation.peer = static_cast<std::uint32_t>(combinations_.size());
    operation.bytes = combination.bytes();
    combinations_.push_back(combination);
    return add(operation);
}

Vertex Graph::call(std::uint32_t function) {
    Operation operation;
    operation.kind = Kind::kCall;
    operation.peer = function;
    return add(operation);
}

void Graph::add(const Edge& edge) {
    if (edge.earlier == kNoVertex) return;
    if (edge.earlier >= operations_.size() || edge.later >= operations_.size())
        fail("a requirement names operation " + std::to_string(std::max(edge.earlier, edge.later)) + " of " +
             std::to_string(operations_.size()));
    else
        edges_.push_back(edge);
}

}  // namespace velo::goal
