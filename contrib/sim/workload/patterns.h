// The communication patterns of the papers' experiments. "Without collective optimisation" means what the
// thesis describes: a process first sends to all and then receives from all.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "workload/workload.h"

namespace velo::sim {

struct PatternOptions {
    std::uint32_t processes = 2;
    std::uint32_t active = 0;    // the first so many take part, the others wait in a barrier; 0: all
    std::uint32_t groups = 1;    // alltoall: so many times `active` at the same time, each among itself
    std::uint32_t bytes = 2048;  // of MPI data in a message
    std::uint32_t iterations = 1;
    std::uint32_t repetitions = 1;  // with the same root, before it changes
    std::uint32_t neighbours = 0;   // sparse patterns: peers of a process, 0: the pattern's own number
    std::uint32_t processes_per_node = 16;
    std::vector<std::uint32_t> phases;  // sizes of the groups of a phase change
};

// nullptr for an unknown name.
std::unique_ptr<Workload> make_pattern(const std::string& name, const PatternOptions& options);
std::vector<std::string> pattern_names();
// One line for the help.
std::string describe_pattern(const std::string& name);

}  // namespace velo::sim
