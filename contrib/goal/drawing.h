// A program as a picture: a column for each rank, operations below what they wait for, messages across.
#pragma once

#include <string>

#include "collectives/goal/program.h"

namespace velo::goal {

std::string to_svg(const Program& program);
std::string to_dot(const Program& program);

}  // namespace velo::goal
