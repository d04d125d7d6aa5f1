// What must hold whatever the input is: ends the program otherwise, which the fuzzer reports with the input.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace velo::fuzz {

inline void require(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "fuzz: %s\n", what);
    std::abort();
}

}  // namespace velo::fuzz
