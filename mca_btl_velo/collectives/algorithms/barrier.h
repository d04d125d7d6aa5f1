// Barriers. Each byte that comes says that all ranks behind it have begun; nobody reads it.
#pragma once

#include "collectives/algorithms/collectives.h"

namespace velo::goal::collectives::barrier {

Graph dissemination(const Request&);
Graph recursive_doubling(const Request&);
Graph binomial(const Request&);

}  // namespace velo::goal::collectives::barrier
