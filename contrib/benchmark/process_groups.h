// How the processes of a run are divided for one benchmark.
#pragma once

#include <vector>

#include "benchmark.h"
#include "options.h"

namespace velo::bench {

// Of `world` processes the first `groups` × `group_size` take part; the rest waits.
struct Layout {
    int world = 0;
    int group_size = 0;
    int groups = 0;

    int active() const { return groups * group_size; }
    int idle() const { return world - active(); }
};

// The layouts that a benchmark runs on, one after the other; empty when there are too few processes.
std::vector<Layout> layouts(const Traits& traits, const Options& options, int world);

// This process's place in a layout, and the communicators that go with it; collective over MPI_COMM_WORLD.
class ProcessGroups {
 public:
    explicit ProcessGroups(const Layout& layout);
    ~ProcessGroups();
    ProcessGroups(const ProcessGroups&) = delete;
    ProcessGroups& operator=(const ProcessGroups&) = delete;

    bool takes_part() const { return active_ != MPI_COMM_NULL; }
    const Group& group() const { return group_; }
    MPI_Comm active() const { return active_; }  // all processes of all groups, in the order of their ranks

 private:
    Group group_;
    MPI_Comm active_ = MPI_COMM_NULL;
};

}  // namespace velo::bench
