// Counts what the program asks of operator new, which is replaced.
#pragma once

#include <cstddef>

namespace velo::goal {

std::size_t allocations();

}  // namespace velo::goal
