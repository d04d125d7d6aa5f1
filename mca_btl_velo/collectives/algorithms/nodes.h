// Collectives that go between nodes once: in a node first, between their first ranks, and in the node again.
#pragma once

#include "collectives/algorithms/collectives.h"

namespace velo::goal::collectives::nodes {

Graph barrier(const Request&);
Graph broadcast(const Request&);
// The first ranks lead, that of the root's node too: what goes between them has one tag of its own, and could
// go to all of them at once; what they pass on has another one.
inline constexpr std::uint32_t kBetweenLeaders = 1, kFromLeaders = 4;
Graph broadcast_by_leaders(const Request&);
Graph reduce(const Request&);
Graph allreduce(const Request&);
// Blocks: between two nodes one message each way, of their leaders; what stays on a node goes directly.
Graph gather(const Request&);
Graph scatter(const Request&);
Graph allgather(const Request&);
Graph alltoall(const Request&);

}  // namespace velo::goal::collectives::nodes
