// A program of schedules executed under mpirun: messages are sent and received, calculations take their time.
#pragma once

#include <cstdint>
#include <string>

#include "source.h"

namespace velo::goal {

struct LiveOptions {
    double calculations = 1;  // they take so many times what the file says; 0: no time
    std::uint32_t repetitions = 1;
    double every_s = 5;  // between lines about a long run; 0: none
    bool json = false;
    std::string trace;  // the file that gets the last repetition, for Perfetto; empty: none
};

// The exit status. Rank 0 prints; what is wrong is told by the first rank that it is wrong at.
int run_live(Source source, const LiveOptions& options);

}  // namespace velo::goal
