// The schedules of all ranks, and how they are read: as LogGOPSim's text or binary.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/goal/schedule.h"

namespace velo::goal {

struct Program {
    std::vector<Schedule> schedules;                    // by rank
    std::vector<std::vector<std::string_view>> labels;  // of a text, within it; empty: none

    std::uint32_t size() const { return static_cast<std::uint32_t>(schedules.size()); }
    // "l5", or "operation 4" where there are no labels.
    std::string name(std::uint32_t rank, Vertex v) const;
    // "rank 3: l5 (recv 8b from 2)"
    std::string place(std::uint32_t rank, Vertex v) const;
    // Number of processors and of network interfaces that the operations name.
    std::uint32_t cpus() const;
    std::uint32_t nics() const;
};

// Reads what `data` is; it must outlive the program. None: `error` says where and why.
std::optional<Program> read_program(std::string_view data, std::string* error);

// What text and binary have no word for is written as a calculation of so many nanoseconds for each byte.
struct WriteOptions {
    double local_ns_per_byte = 0;
};
std::string to_text(const Program& program, const WriteOptions& options = {});
// As txt2bin makes it of that text, byte by byte.
std::string to_binary(const Program& program, const WriteOptions& options = {});

}  // namespace velo::goal
