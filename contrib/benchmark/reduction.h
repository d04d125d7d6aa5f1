#pragma once

#include "benchmark.h"

namespace velo::bench {

void add_reductions(BenchmarkList& list);

}  // namespace velo::bench
