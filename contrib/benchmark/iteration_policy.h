// How often a sample repeats its benchmark.
#pragma once

#include "benchmark.h"
#include "options.h"

namespace velo::bench {

// The same on every process when `seconds_per_call` is. A sample of k repetitions moves k × bytes at most
// -iter's volume, and lasts at most -time seconds unless the policy is off.
int repetitions(const Options& options, const Traits& traits, std::size_t bytes, int processes,
                double seconds_per_call);

}  // namespace velo::bench
