// Statements of the papers as bounds on an experiment's numbers.
#pragma once

#include <string>
#include <vector>

#include "experiment/experiment.h"

namespace velo::sim {

struct Verdict {
    std::string statement;
    std::string source;
    std::string metric;
    std::string bound;  // "0 .. 5"
    std::string kind;   // "fitted", "predicted" or "arithmetic"
    double value = 0;
    bool measured = false;
    bool holds = false;
    // What the bounds file says of the model at this size: false for a statement that it is known not to
    // show.
    bool expected = true;
    std::string note;  // why not, if it is known
};

// What of the bounds file can be wrong for one experiment, before it is run. Throws as judge does.
void check_bounds(const std::string& bounds_file, const std::string& experiment);
// Judges the report of one experiment. Throws std::runtime_error if the file cannot be read or is wrong.
std::vector<Verdict> judge(const std::string& bounds_file, const std::string& experiment,
                           const Report& report, bool full);
std::string to_text(const std::vector<Verdict>& verdicts);

}  // namespace velo::sim
