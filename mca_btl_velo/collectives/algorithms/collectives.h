// Collective operations as graphs: what one rank does, as a function of rank, size, root and bytes alone, so
// that all ranks agree without asking. Equal calls give equal graphs: they can be compiled once and kept.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "collectives/goal/graph.h"

namespace velo::goal::collectives {

// The arguments of a run: the buffers of the MPI call. A broadcast has the second one only.
inline constexpr Space kSendBuffer = 0;
inline constexpr Space kReceiveBuffer = 1;

struct Reduction {
    Operator op = Operator::kAdd;
    Type type = Type::kUint;
    std::uint8_t width = 8;
    bool commutative = true;        // else operands are combined in the order of the ranks
    std::uint64_t own_element = 0;  // bytes, of kOwn
};

// A block that goes to or comes from a peer, where the blocks differ.
struct Block {
    std::uint32_t peer, tag;
    std::uint64_t offset;  // in its buffer
    std::uint64_t bytes;   // 0: there is no message
};

struct Request {
    std::uint32_t rank = 0;
    std::uint32_t size = 1;
    std::uint32_t root = 0;
    std::uint32_t on_node = 1;  // ranks of a node: the first so many are on the first one, and so on
    std::uint64_t bytes = 0;    // of a block; a reduction's, a broadcast's and an allgatherv's: of all
    std::uint64_t segment = 0;  // of a pipeline, and the first one of linear_sync; 0: the algorithm's own
    bool in_place = false;      // what this rank would send lies in the receive buffer already
    Reduction reduction{};
    // Blocks that differ: of v-forms one for each rank, in their order, in a buffer that has all of them; of
    // a reduce_scatter what each rank gets of the vector, in `sends`; of an exchange any.
    std::span<const Block> sends{}, receives{};

    std::uint64_t element() const {
        return reduction.op == Operator::kOwn ? reduction.own_element : reduction.width / 8;
    }
};

struct Algorithm {
    std::string_view operation, name;
    Graph (*make)(const Request&);
    bool keeps_order = true;  // serves reductions that do not commute

    // Of reductions and, where it goes between nodes once, of several nodes with several ranks each.
    bool serves(const Request& request) const {
        return (keeps_order || request.reduction.commutative) &&
               (name != "nodes" || (request.on_node > 1 && request.on_node < request.size));
    }
};

std::span<const Algorithm> algorithms();
const Algorithm* find(std::string_view operation, std::string_view name);  // nullptr: there is none

// Of one of the algorithms: what ranks must have in common that run a graph together, in 15 bits, and never
// 0; of the root so many of the lowest that these suffice. And in words.
std::uint32_t signature(const Algorithm& algorithm, const Request& request);
std::string describe(std::uint32_t signature);

// Of a binomial tree whose subtrees are consecutive: rank 0 is its root.
std::uint32_t father(std::uint32_t rank);                       // of 0: 0
std::uint32_t subtree(std::uint32_t rank, std::uint32_t size);  // how many ranks from this one on

}  // namespace velo::goal::collectives
