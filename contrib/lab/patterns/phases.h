// Thesis, section 7.3: alltoall over changing numbers of ranks, with a barrier of everyone after each phase.
#pragma once

#include "pattern.h"

namespace velo::lab {

// Prints a line for each phase and, on rank 0, marks of the time; returns the defects of all processes.
long run_phases(const World& world, const Options& options);

}  // namespace velo::lab
