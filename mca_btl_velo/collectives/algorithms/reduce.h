// Reductions: to one rank, to all, in shares, of prefixes. The bits of a result do not depend on who was
// late: operands are combined in an order that the ranks give.
#pragma once

#include "collectives/algorithms/collectives.h"

namespace velo::goal::collectives::reduce {

Graph linear(const Request&);
Graph binomial(const Request&);

Graph all_by_broadcast(const Request&);
Graph all_by_recursive_doubling(const Request&);
Graph all_by_ring(const Request&);
Graph all_by_halving(const Request&);  // Rabenseifner's

// Block `rank` of a vector of `size` blocks: of `bytes` each, or as `sends` says.
Graph scatter_linear(const Request&);
Graph scatter_pairwise(const Request&);

Graph scan_linear(const Request&);
Graph scan_recursive_doubling(const Request&);
Graph exscan_linear(const Request&);
Graph exscan_recursive_doubling(const Request&);

}  // namespace velo::goal::collectives::reduce
