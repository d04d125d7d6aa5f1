// Times a pattern: repetitions in batches, the time of the slowest process, the median of the batches.
#pragma once

#include "pattern.h"

namespace velo::lab {

struct Sample {
    double usec = 0;      // of a repetition, median of the batches
    double min_usec = 0;  // fastest batch
    double max_usec = 0;
    long repetitions = 0;
    long calls = 0;    // with those that are not timed
    long defects = 0;  // of all processes, in the checked repetition
};

Sample sample(const World& world, Pattern& pattern, long most_repetitions, double seconds);

// Defects of the last repetition, of all processes together.
long defects_of_all(const World& world, const Pattern& pattern);

// Runs one repetition whose data is checked; defects of all processes together.
long checked_repetition(const World& world, Pattern& pattern);

}  // namespace velo::lab
