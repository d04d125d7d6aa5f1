// Statements as bounds on an experiment's numbers: bounds.json has one on each line.
#pragma once

#include <string>
#include <vector>

#include "experiment/experiment.h"

namespace velo::sim {

// What a statement that holds says of the model. bounds.json names the kind of each.
enum class Kind {
    kPredicted,   // the bound is the source's: a number that it gives, or a direction, which needs none
    kFitted,      // the bound, the quantity or a parameter of the model was chosen by us, knowing results
    kInput,       // what was put in comes out, whatever the policies do
    kRegression,  // a number of our own, so that a change is seen
};
inline constexpr const char* kKindNames[] = {"predicted", "fitted", "input", "regression"};

enum class Finding {
    kHolds,        // with every seed
    kFails,        // with at least one
    kNotMeasured,  // at least one seed has no number: a run failed, a curve never settled, the size lacks it
    kUnknown,      // of a size that was not run since the statement has been as it is
};

struct Verdict {
    std::string statement;
    std::string source;
    std::string metric;
    std::string bound;  // "at least 0, below 5"
    Kind kind = Kind::kPredicted;
    std::vector<double> values;  // of the seeds; NaN: not measured
    Finding finding = Finding::kNotMeasured;
    Finding expected = Finding::kUnknown;  // by the bounds file, at this size
    std::string note;

    bool is_as_expected() const { return expected == Finding::kUnknown || finding == expected; }
};

// What of the bounds file can be wrong for one experiment, before it is run. Throws as judge does.
void check_bounds(const std::string& bounds_file, const std::string& experiment);
// Judges one experiment. Throws std::runtime_error if the file cannot be read or is wrong.
std::vector<Verdict> judge(const std::string& bounds_file, const std::string& experiment,
                           const Sample& sample, bool full);
std::string to_text(const std::vector<Verdict>& verdicts);
// How many of each kind hold, predicted ones first.
std::string count_text(const std::vector<Verdict>& verdicts);

}  // namespace velo::sim
