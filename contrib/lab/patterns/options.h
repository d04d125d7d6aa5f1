#pragma once

#include <string>
#include <vector>

namespace velo::lab {

struct Options {
    std::string pattern;
    int bytes = 2048;
    int active = 0;           // ranks of alltoall; 0: all
    int window = 1;           // messages of incast, blocking and nonblocking
    int hold = 1;             // repetitions of scatterv with the same root
    long repetitions = 1000;  // at most
    double seconds = 0.5;     // of measurement, about
};

std::string usage();

// Throws std::invalid_argument with a message that names the option.
Options parse_options(const std::vector<std::string>& words);

}  // namespace velo::lab
