// The commands of velo-sim. Each sets `status`, the exit status, when it runs.
#pragma once

#include <CLI/CLI.hpp>

namespace velo::sim {

void add_run_command(CLI::App& app, int& status);
void add_experiment_command(CLI::App& app, int& status);
void add_goal_command(CLI::App& app, int& status);
void add_multicast_command(CLI::App& app, int& status);
void add_plot_command(CLI::App& app, int& status);
void add_list_command(CLI::App& app, int& status);

}  // namespace velo::sim
