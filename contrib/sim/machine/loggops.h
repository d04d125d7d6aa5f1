// The machine of LogGOPSim (Hoefler, Schneider, Lumsdaine 2010): LogGOPS, and nothing between two processes
// but latency and bandwidth. Every number that it gives is LogGOPSim's, to the nanosecond; so it keeps its
// ways: what is ready at the same moment starts in the order of std::sort by kind, a message is charged to
// the sender's choice of processor at its receiver, and the answer of a rendezvous costs no time.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "collectives/goal/program.h"

namespace velo::sim {

// Times in nanoseconds, as LogGOPSim names them.
struct LogGops {
    std::uint64_t L = 2500;   // latency
    std::uint64_t o = 1500;   // overhead of a message
    std::uint64_t g = 1000;   // gap between messages
    std::uint64_t G = 6;      // gap for each byte
    std::uint64_t O = 0;      // overhead for each byte
    std::uint64_t S = 65535;  // larger messages wait for their receives

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

// What a processor is busy with: an operation of its own, or a message that has come, which is the send of
// its peer.
struct LogGopsWork {
    std::uint32_t host;
    std::uint8_t cpu;
    std::uint64_t begin, end;
    std::uint32_t owner;  // of the operation
    goal::Vertex operation;
    bool is_arrival;
};
using LogGopsObserver = std::function<void(const LogGopsWork&)>;

// Throws std::runtime_error for what LogGOPSim has no rule for.
LogGopsOutcome run_loggops(const goal::Program& program, const LogGops& parameters,
                           const LogGopsObserver& observer = {});

}  // namespace velo::sim
