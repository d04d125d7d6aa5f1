// The machine of LogGOPSim (Hoefler, Schneider, Lumsdaine 2010): LogGOPS, and nothing between two processes but
// latency and bandwidth. Every number that it gives is LogGOPSim's, to the nanosecond; so it keeps its ways:
// what is ready at the same moment starts in the order of std::sort by kind, a message is charged to the
// sender's choice of processor at its receiver, and the answer of a rendezvous costs no time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "goal/program.h"

namespace velo::sim {

// Times in nanoseconds, as LogGOPSim names them.
struct LogGops {
    std::uint64_t L = 2500;    // latency
    std::uint64_t o = 1500;    // overhead of a message
    std::uint64_t g = 1000;    // gap between messages
    std::uint64_t G = 6;       // gap for each byte
    std::uint64_t O = 0;       // overhead for each byte
    std::uint64_t S = 65535;   // larger messages wait for their receives

    // What LogGOPSim has not. A process begins up to `skew` late, and is interrupted for `noise` every
    // `noise_period`, from a moment of its own on.
    std::uint64_t skew = 0;
    std::uint64_t noise = 0;
    std::uint64_t noise_period = 0;
    std::uint64_t seed = 1;
    double local_ns_per_byte = 0;  // of local operations
};

struct LogGopsOutcome {
    std::vector<std::uint64_t> end;  // of each process
    std::uint64_t events = 0;        // as LogGOPSim counts them
    std::uint64_t unmatched = 0;     // messages that no receive has got
    std::uint64_t waiting = 0;       // receives that got none
    std::vector<std::uint32_t> unfinished;

    bool complete() const { return unmatched == 0 && waiting == 0 && unfinished.empty(); }
};

// Throws std::runtime_error for what LogGOPSim has no rule for.
LogGopsOutcome run_loggops(const goal::Program& program, const LogGops& parameters);

}  // namespace velo::sim
