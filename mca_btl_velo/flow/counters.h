// What flow control has done so far: the rows VELO_FLOW_COUNTER of types/counters.inc.

#pragma once

#include <cstdint>

namespace velo::flow {

struct Counters {
#define VELO_FLOW_COUNTER(name, ...) std::uint64_t name = 0;
#include "types/counters.inc"

    Counters& operator+=(const Counters& other) {
#define VELO_FLOW_COUNTER(name, ...) name += other.name;
#include "types/counters.inc"
        return *this;
    }
};

struct CounterInfo {
    const char* name;
    std::uint64_t Counters::*value;
};

inline constexpr CounterInfo kCounters[] = {
#define VELO_FLOW_COUNTER(name, ...) {#name, &Counters::name},
#include "types/counters.inc"
};

}  // namespace velo::flow
