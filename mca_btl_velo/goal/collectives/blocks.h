// Operations that move blocks as they are.
#pragma once

#include "goal/collectives/collectives.h"

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

// Blocks of their own sizes, in the lists of the request: v-forms and neighbours. What a rank sends to itself
// is copied, in the order of the lists.
Graph exchange(const Request&);

}  // namespace velo::goal::collectives::blocks
