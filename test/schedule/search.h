// Two ways to look for a schedule that does harm: random walks, and breadth first over all states.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "reference_party.h"
#include "scenario.h"

namespace velo::schedule {

struct Finding {
    std::string harm;           // "over-commit", "overflow", "deadlock"; empty if none was found
    std::uint64_t length = 0;   // sends and retrieves up to the harm
    std::uint64_t seed = 0;     // of the walk that found it
    std::uint64_t visited = 0;  // events of all walks, or states
    bool exhausted = false;     // breadth first: every reachable state was visited
};

// `walks` schedules of up to `events` events; each is drained now and then, to see whether it can still
// finish. The shortest finding of the wanted kind, or of any kind if `wanted` is empty.
Finding random_walks(const Scenario& scenario, Literal literal, const std::string& wanted,
                     std::uint64_t walks, std::uint64_t events);

using Pairs = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

// All states within `max_states`, where only the given ordered pairs send DATA (with room for credits), at
// most one packet of which may wait. The first finding is a shortest one.
Finding breadth_first(const Scenario& scenario, Literal literal, const Pairs& senders,
                      std::uint64_t max_states);

}  // namespace velo::schedule
