// The simulator's generator, with what schedules draw besides: a seed is a schedule.
#pragma once

#include <cstdint>

#include "../../contrib/sim/core/random.h"

namespace velo::schedule {

class Random : public sim::Random {
 public:
    using sim::Random::Random;

    std::uint32_t between(std::uint32_t low, std::uint32_t high) { return low + below(high - low + 1); }
    bool chance(std::uint32_t in, std::uint32_t of) { return below(of) < in; }
};

}  // namespace velo::schedule
