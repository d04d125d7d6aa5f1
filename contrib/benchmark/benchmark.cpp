#include "benchmark.h"

namespace velo::bench {

BenchmarkList all_benchmarks() {
    BenchmarkList list;
    add_single_transfer(list);
    add_parallel_transfer(list);
    add_collectives(list);
    add_papers_patterns(list);
    return list;
}

}  // namespace velo::bench
