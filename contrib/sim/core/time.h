// Simulated time in picoseconds: 2^64 of them are 213 days, and link rates need fractions of a nanosecond.
#pragma once

#include <cmath>
#include <cstdint>
#include <stdexcept>

namespace velo::sim {

using Time = std::uint64_t;

inline constexpr Time kNever = UINT64_MAX;

// Simulated time ends here, and what lasts longer is refused.
inline constexpr Time kLatest = INT64_MAX;

inline Time from_ns(double ns) {
    return static_cast<Time>(std::llround(ns * 1000.0));
}
// For what users say how long it lasts.
inline Time later(Time time, double ns) {
    if (!(static_cast<double>(time) + ns * 1000.0 < static_cast<double>(kLatest)))
        throw std::runtime_error("something lasts longer than the 106 days that can be simulated");
    return time + from_ns(ns);
}
constexpr double to_us(Time time) {
    return static_cast<double>(time) / 1e6;
}

}  // namespace velo::sim
