// From the root to all, in the receive buffer of each.
#pragma once

#include "collectives/algorithms/collectives.h"

namespace velo::goal::collectives::broadcast {

Graph linear(const Request&);
Graph binomial(const Request&);
Graph chain(const Request&);
Graph scatter_allgather(const Request&);

}  // namespace velo::goal::collectives::broadcast
