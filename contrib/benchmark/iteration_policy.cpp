#include "iteration_policy.h"

#include <algorithm>

namespace velo::bench {
namespace {

bool rounds_to_processes(IterationPolicy policy, const Traits& traits) {
    if (traits.kind != Kind::kCollective) return false;
    return policy == IterationPolicy::kMultipleNp || (policy == IterationPolicy::kAuto && traits.rooted);
}

}  // namespace

int repetitions(const Options& options, const Traits& traits, std::size_t bytes, int processes,
                double seconds_per_call) {
    if (options.iteration_policy == IterationPolicy::kOff) return options.repetitions;
    double limit = options.repetitions;
    if (bytes > 0)
        limit = std::min(limit, options.overall_volume_mb * 1024 * 1024 / static_cast<double>(bytes));
    if (seconds_per_call > 0) limit = std::min(limit, options.sample_seconds / seconds_per_call);
    int result = std::max(1, static_cast<int>(limit));
    if (rounds_to_processes(options.iteration_policy, traits))
        result = std::max(processes, result - result % processes);
    return result;
}

}  // namespace velo::bench
