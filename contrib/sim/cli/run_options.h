// What run and goal have in common: the machine, flow control, and what is printed of a run.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "experiment/sweep.h"

namespace velo::sim {

struct RunOptions {
    Trial run;
    std::string nodes;
    std::vector<std::string> costs;
    bool no_piggyback = false;
    bool json = false;
    bool per_process = false;
};

// All but what the processes do.
void add_machine_options(CLI::App& command, RunOptions& options);
// What the words on the command line mean. Throws std::runtime_error.
void apply(RunOptions& options);
// As text or as JSON.
void print(const RunOptions& options, const Measured& measured);

}  // namespace velo::sim
