// What velo-mpi-bench does beside the IMB's benchmarks, for velo-measure transports, velo-measure papers and people: by
// its first word. Rank 0 prints lines of words:
//
//   points   bench 1 RANKS LIBRARY VERSION
//            line BYTES USEC SLOWDOWN USEC_AFTER SLOWDOWN_AFTER
//            point BENCHMARK BYTES MEDIAN_USEC MIN_USEC MAX_USEC ITERATIONS BATCHES DEFECTS MESSAGES
//            MBYTES_PER_SECOND end
//   phases   phase NUMBER ranks R executions E begin_ns B end_ns E slowest_us T defects D
//            mark EXECUTIONS_SO_FAR NS
//            end
//   memory   bench 1 RANKS LIBRARY VERSION
//            memory WHEN KIND MEAN_KIB MAX_KIB
//            end
//   flood    flood|receive SECONDS KIB
//   calls    bench 1 RANKS LIBRARY VERSION
//            point BENCHMARK BYTES ...   as of points, but: of a call after a barrier, the mean of all ranks
//            end
//   overlap  bench 1 RANKS LIBRARY VERSION
//            overlap BENCHMARK BYTES MATRIX PURE_USEC COMPUTE_USEC OVERLAPPED_USEC WAIT_USEC LOST_USEC
//            ITERATIONS DEFECTS
//            end
#pragma once

#include <string>
#include <vector>

namespace velo::bench {

using Words = std::vector<std::string>;

struct Mode {
    int (*run)(const Words& words, int rank) = nullptr;  // returns the exit status; throws UsageError
    Words words;

    explicit operator bool() const { return run != nullptr; }
};

// The mode of a command line; none: the IMB's benchmarks.
Mode mode_of(const Words& command);

int run_points(const Words& words, int rank);
int run_phases(const Words& words, int rank);
int run_memory(const Words& words, int rank);
int run_flood(const Words& words, int rank);
int run_calls(const Words& words, int rank);
int run_overlap(const Words& words, int rank);

// The first line of points, memory, calls and overlap.
void print_library(int rank);

}  // namespace velo::bench
