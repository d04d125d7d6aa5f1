// Where this process runs, and memory near to it. By hwloc; without it, or where the system tells nothing,
// memory is wherever the kernel puts what this process touches first.
#pragma once

#include <cstddef>
#include <string>

namespace velo::platform {

// Asks for the pages of a mapping that has none yet to be on the NUMA node of the calling process. No effect,
// and no cost, on a machine with one node or if the process may run on several.
void place_nearby(void* memory, std::size_t bytes);

// The NUMA node that the calling process is bound to, -1 if it may run on several or that is not known.
int own_numa_node();

// "bound to core 3 of 8, NUMA node 0 of 2". Loads the topology of the machine: milliseconds.
std::string describe_locality();

}  // namespace velo::platform
