// The command line, with the names and meanings of the IMB-MPI1 user's guide.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "benchmark.h"

namespace velo::bench {

enum class IterationPolicy {
    kDynamic,     // fewer repetitions where the time limit of a sample would be exceeded
    kMultipleNp,  // dynamic, and for collectives a multiple of the number of processes
    kAuto,        // kMultipleNp for collectives with a root, kDynamic for the others
    kOff,         // exactly -iter repetitions
};

enum class MultiMode { kOff, kSummary, kEveryGroup };

struct Options {
    std::vector<std::string> benchmarks;
    int min_processes = 2;
    int min_log = 0;
    int max_log = 22;
    std::string lengths_file;
    int repetitions = 1000;
    double overall_volume_mb = 40.0;  // repetitions shrink so that a sample moves no more than this
    IterationPolicy iteration_policy = IterationPolicy::kDynamic;
    double sample_seconds = 10.0;
    double memory_gb = 1.0;
    MultiMode multi = MultiMode::kOff;
    int window = 256;
    bool root_shift = false;
    int root_hold = 1;  // repetitions with the same root, where it moves on
    bool sync = true;
    bool zero_size = true;
    bool check_every_iteration = false;
    bool help = false;
    bool list = false;
};

class UsageError : public std::runtime_error {
 public:
    using std::runtime_error::runtime_error;
};

// Values of options; a UsageError names the option.
[[noreturn]] void reject(std::string_view name, std::string_view value, std::string_view wanted);
int parse_int(std::string_view name, std::string_view text, int low, int high);
double parse_positive(std::string_view name, const std::string& text);

// Throws UsageError.
Options parse_options(int argc, char** argv);
std::string usage();

// The benchmarks that the options name, or the default ones. Throws UsageError for an unknown name.
BenchmarkList select_benchmarks(const Options& options);

// The sizes of a file with one length per line; empty lines and lines that start with # are skipped. Throws
// UsageError.
std::vector<std::size_t> read_lengths(const std::string& path);

// 0 and the powers of two that -msglog asks for.
std::vector<std::size_t> power_of_two_lengths(const Options& options);

}  // namespace velo::bench
