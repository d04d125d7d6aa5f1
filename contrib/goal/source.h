// Which schedules a command is about: those of a file, or of a collective by its name.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "collectives/algorithms/collectives.h"
#include "collectives/goal/program.h"

namespace velo::goal {

struct Source {
    std::string what;     // a file, or "bcast:binomial"
    std::string choices;  // the file of rules for "bcast:auto"; empty: Velo's own
    std::uint32_t processes = 64;
    collectives::Request collective{.bytes = 8};
};

struct Loaded {
    std::string data;  // the labels of `program` lie in it
    Program program;
};

// Without `processes` somebody else says how many there are.
void add_source_options(CLI::App& command, Source& source, bool processes = true);
// Throws std::runtime_error with what is wrong, and where.
Loaded load(const Source& source);

}  // namespace velo::goal
