// Where a command writes to.
#pragma once

#include <string>

namespace velo::goal {

// To the file, or to the terminal ("-"). Throws std::runtime_error.
void write(const std::string& path, const std::string& data);

}  // namespace velo::goal
