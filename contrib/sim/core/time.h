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

[[noreturn]] inline void refuse_beyond_latest() {
    throw std::runtime_error("something lasts longer than the 106 days that can be simulated");
}
inline Time from_ns(double ns) {
    if (!(ns * 1000.0 < static_cast<double>(kLatest))) refuse_beyond_latest();
    return static_cast<Time>(std::llround(ns * 1000.0));
}
inline Time later(Time time, Time by) {
    if (by > kLatest || time > kLatest - by) refuse_beyond_latest();
    return time + by;
}
constexpr double to_us(Time time) {
    return static_cast<double>(time) / 1e6;
}

}  // namespace velo::sim
