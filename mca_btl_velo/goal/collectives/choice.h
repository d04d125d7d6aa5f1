// Which algorithm serves a collective operation if the user names none.
#pragma once

#include <string_view>

#include "goal/collectives/collectives.h"

namespace velo::goal::collectives {

// By size, bytes and order alone, so that all ranks choose alike; nullptr: there is no such operation.
const Algorithm* choose(std::string_view operation, const Request& request);

}  // namespace velo::goal::collectives
