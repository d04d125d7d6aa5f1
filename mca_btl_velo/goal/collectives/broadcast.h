// From the root to all, in the receive buffer of each.
#pragma once

#include "goal/collectives/collectives.h"

namespace velo::goal::collectives {
struct Steps;
}

namespace velo::goal::collectives::broadcast {

Graph linear(const Request&);
Graph binomial(const Request&);
Graph chain(const Request&);
Graph scatter_allgather(const Request&);

// Part of another operation: from `root` down a binomial tree, once `after` has ended there.
void down_tree(Steps& steps, std::uint32_t root, std::uint32_t tag, Vertex after);

}  // namespace velo::goal::collectives::broadcast
