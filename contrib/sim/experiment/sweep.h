// Runs: what to simulate, and many of them side by side.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "experiment/numbers.h"
#include "machine/parameters.h"
#include "machine/simulation.h"
#include "workload/patterns.h"

namespace velo::sim {

// How many of how many runs are done.
using Progress = std::function<void(std::size_t done, std::size_t runs)>;

struct Trial {
    Machine machine;
    FlowOptions flow;
    std::string pattern = "alltoall";
    PatternOptions options;
    std::uint32_t warm_up = 0;  // iterations that are not measured
};

struct Measured {
    Outcome outcome;
    // Not measured in a run that failed.
    double time_us = kNotMeasured;          // of an iteration
    double delayed_percent = kNotMeasured;  // of messages
    std::uint64_t credit_packets = 0;
};

Measured measured(Outcome outcome, std::uint32_t warm_up);
// Throws std::runtime_error if the run cannot be made; a deadlock is a result.
Measured execute(const Trial& run);
// Each run is a deterministic thing of its own, so that `jobs` threads change nothing but the time it takes.
// The first exception of a run is thrown on.
// `progress` is called after each run, by one thread at a time.
std::vector<Measured> execute_all(const std::vector<Trial>& runs, unsigned jobs,
                                  const Progress& progress = {});

// A run on the thesis's machine: a mesh for that many processes, 16 on a node.
Trial thesis_run(const std::string& pattern, std::uint32_t processes, const std::string& policy = "none",
                 std::uint32_t slots = 64, std::uint32_t credit_slots = 2);

inline double overhead_percent(double time, double reference) {
    return reference > 0 ? (time / reference - 1) * 100 : kNotMeasured;
}

}  // namespace velo::sim
