// An experiment of the papers: rows for a table and a plot, and the numbers that its statements are judged
// by.
#pragma once

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "experiment/sweep.h"

namespace velo::sim {

using Cell = std::variant<double, std::string>;

struct Report {
    std::vector<std::string> columns;
    std::vector<std::vector<Cell>> rows;
    std::map<std::string, double> metrics;  // absent: not measured in this build or at this size
    std::vector<std::string> remarks;       // failed runs and what else a reader must know
};

struct Context {
    bool full = false;  // the papers' size; otherwise one that takes seconds
    unsigned jobs = 1;
    Progress progress;
};

struct Experiment {
    std::string name;  // as on the command line: "fig5.5"
    std::string title;
    std::string x;  // columns for the plot: x axis, y axis, one line for each value of the others
    std::string y;
    Report (*run)(const Context& context);
};

const std::vector<Experiment>& experiments();
const Experiment* find_experiment(const std::string& name);

std::string csv(const Report& report);

// The groups that make up experiments().
std::vector<Experiment> static_experiments();
std::vector<Experiment> dynamic_experiments();
std::vector<Experiment> benchmark_experiments();
std::vector<Experiment> literal_experiments();
std::vector<Experiment> scale_experiments();

}  // namespace velo::sim
