// What can be said about a program without running it: whether every message has its receive, of its size and
// no other; whether all ranks come to their end; whether two operations use the same bytes at a time; whether
// it is a barrier. Cycles are refused before, when a graph is compiled.
#pragma once

#include <string>
#include <vector>

#include "collectives/goal/program.h"

namespace velo::goal {

struct CheckOptions {
    // Sends of at most so many bytes end without their receive. 0: all messages need theirs, and what ends
    // then ends with any amount of memory.
    std::uint64_t eager = UINT64_MAX;
    bool barrier = false;   // no rank may end before every other one has begun
    std::size_t most = 10;  // findings of each kind
};

struct Finding {
    enum Kind : std::uint8_t {
        kDeadlock,   // who waits for whom
        kUnmatched,  // a message that nobody receives
        kSize,       // a message and its receive differ in size
        kAmbiguous,  // which message a receive gets depends on the time
        kRace,       // two operations without an order use the same bytes, one of them writes
        kLeaves,     // a rank may end before another one has begun
    };
    Kind kind;
    std::string text;
};

// A message and its receive.
struct Match {
    std::uint32_t from;
    Vertex send;
    std::uint32_t to;
    Vertex receive;
};
std::vector<Match> matches(const Program& program);

// Empty: nothing was found. The matching of receives from any source is that of one of the possible runs.
std::vector<Finding> check(const Program& program, const CheckOptions& options = {});

}  // namespace velo::goal
