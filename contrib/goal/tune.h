// Measures the algorithms of collective operations under mpirun, and writes the rules that choose the fastest
// (collectives/algorithms/choice.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace velo::goal {

struct TuneOptions {
    std::vector<std::string> operations;  // empty: all
    std::vector<std::uint32_t> ranks;     // empty: powers of two, and all there are
    std::vector<std::uint64_t> sizes = {8, 64, 512, 4096, 16384, 65536, 262144, 1048576};
    std::uint32_t rounds = 9;
    double block_s = 0.002;     // that an algorithm runs in a round
    double margin_percent = 5;  // by which another algorithm has to be faster to be chosen
    double every_s = 5;         // between lines about how far it is; 0: none
    std::string output = "-";   // a file, or the terminal
};

// The exit status. Rank 0 writes.
int tune(const TuneOptions& options);

}  // namespace velo::goal
