// An experiment of the papers: rows for a table and a plot, and the numbers that its statements are judged
// by.
#pragma once

#include <cstdint>
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
    std::map<std::string, double> metrics;  // absent or NaN: not measured in this build or at this size
    std::vector<std::string> remarks;       // failed runs and what else a reader must know
};

struct Context {
    bool full = false;            // the papers' size; otherwise one that takes seconds
    std::uint32_t processes = 0;  // instead, where an experiment leaves the choice
    unsigned jobs = 1;
    std::uint64_t seed = 1;
    Progress progress;
};

struct Experiment {
    std::string name;  // as on the command line: "fig5.5"
    std::string title;
    std::string x;  // columns for the plot: x axis, y axis, one line for each value of the others
    std::string y;
    Report (*run)(const Context& context);
    bool random = true;     // runs differ from seed to seed
    bool any_size = false;  // Context::processes counts
};

const std::vector<Experiment>& experiments();
const Experiment* find_experiment(const std::string& name);

// An experiment with several seeds: all rows, those of a random experiment with their seed in front, and of
// each metric a value for each seed, NaN where it was not measured.
struct Sample {
    std::vector<std::string> columns;
    std::vector<std::vector<Cell>> rows;
    std::map<std::string, std::vector<double>> metrics;
    std::vector<std::string> remarks;
    std::size_t seeds = 0;

    bool failed() const;  // a run did
};
inline constexpr unsigned kSeeds = 5;
// With the seeds 1 to `seeds`; once, if the experiment has nothing random.
Sample sample(const Experiment& experiment, const Context& context, unsigned seeds = kSeeds);

// What was not measured is an empty field.
std::string csv(const Sample& sample);
// Not measured: null.
std::string metrics_json(const Sample& sample);

// The groups that make up experiments().
std::vector<Experiment> static_experiments();
std::vector<Experiment> dynamic_experiments();
std::vector<Experiment> benchmark_experiments();
std::vector<Experiment> literal_experiments();
std::vector<Experiment> multicast_experiments();
std::vector<Experiment> scale_experiments();

}  // namespace velo::sim
