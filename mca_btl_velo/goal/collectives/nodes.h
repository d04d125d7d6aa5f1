// Collectives that go between nodes once: in a node first, between their first ranks, and in the node again.
#pragma once

#include "goal/collectives/collectives.h"

namespace velo::goal::collectives::nodes {

Graph barrier(const Request&);
Graph broadcast(const Request&);
Graph reduce(const Request&);
Graph allreduce(const Request&);

}  // namespace velo::goal::collectives::nodes
