// Simulated time in picoseconds: 2^64 of them are 213 days, and link rates need fractions of a nanosecond.
#pragma once

#include <cmath>
#include <cstdint>

namespace velo::sim {

using Time = std::uint64_t;

inline constexpr Time kNever = UINT64_MAX;

inline Time from_ns(double ns) {
    return static_cast<Time>(std::llround(ns * 1000.0));
}
constexpr double to_us(Time time) {
    return static_cast<double>(time) / 1e6;
}

}  // namespace velo::sim
