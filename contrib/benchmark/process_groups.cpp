#include "process_groups.h"

#include <algorithm>

namespace velo::bench {

std::vector<Layout> layouts(const Traits& traits, const Options& options, int world) {
    std::vector<int> sizes;
    if (traits.kind == Kind::kSingleTransfer) {
        sizes.push_back(2);
    } else {
        const long first = std::min(options.min_processes, world);
        for (long size = first; size < world; size *= 2) sizes.push_back(static_cast<int>(size));
        sizes.push_back(world);
    }
    const int fewest = traits.kind == Kind::kSingleTransfer || traits.report == Report::kMessageRate ? 2 : 1;
    std::vector<Layout> result;
    for (const int size : sizes)
        if (size >= fewest && size <= world)
            result.push_back({.world = world,
                              .group_size = size,
                              .groups = options.multi == MultiMode::kOff ? 1 : world / size});
    return result;
}

ProcessGroups::ProcessGroups(const Layout& layout) {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const bool active = rank < layout.active();
    const int index = rank / layout.group_size;
    MPI_Comm_split(MPI_COMM_WORLD, active ? 0 : MPI_UNDEFINED, rank, &active_);
    MPI_Comm_split(MPI_COMM_WORLD, active ? index : MPI_UNDEFINED, rank, &group_.comm);
    group_.first = index * layout.group_size;
    group_.rank = rank - group_.first;
    group_.size = layout.group_size;
    group_.left = (group_.rank + group_.size - 1) % group_.size;
    group_.right = (group_.rank + 1) % group_.size;
}

ProcessGroups::~ProcessGroups() {
    if (group_.comm != MPI_COMM_NULL) MPI_Comm_free(&group_.comm);
    if (active_ != MPI_COMM_NULL) MPI_Comm_free(&active_);
}

}  // namespace velo::bench
