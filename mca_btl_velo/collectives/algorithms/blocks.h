// Operations that move blocks as they are. Those that are linear, in pairs or in a ring, and Bruck's
// allgather, also serve blocks that differ.
#pragma once

#include "collectives/algorithms/collectives.h"

namespace velo::goal::collectives::blocks {

Graph gather_linear(const Request&);
Graph gather_binomial(const Request&);
Graph gather_linear_sync(const Request&);
Graph gather_by_size(const Request&);
Graph scatter_linear(const Request&);
Graph scatter_binomial(const Request&);

Graph allgather_linear(const Request&);
Graph allgather_ring(const Request&);
Graph allgather_bruck(const Request&);

Graph alltoall_linear(const Request&);
Graph alltoall_pairwise(const Request&);
Graph alltoall_bruck(const Request&);

// With neighbours: each block of the lists is a message. What a rank sends to itself is copied, in the order
// of the lists, with equal tags.
Graph exchange(const Request&);

}  // namespace velo::goal::collectives::blocks
