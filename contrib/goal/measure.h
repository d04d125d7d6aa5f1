// What one schedule costs: a ping-pong between two stamps of its own, and a local operation beside a loop.
#pragma once

#include <cstdint>
#include <string>

namespace velo::goal {

struct MeasureOptions {
    std::string what;  // pingpong, local or loop
    std::uint32_t bytes = 8;
    std::string type = "double";  // of the elements of local and loop
    std::uint32_t rounds = 100;   // of the ping-pong in one run
    double seconds = 0.5;
};

// The exit status. Rank 0 prints a line as velo-mpi-bench points does.
int measure(const MeasureOptions& options);

}  // namespace velo::goal
