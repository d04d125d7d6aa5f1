// The clock that all processes of a machine share.
#pragma once

#include <cstdint>
#include <ctime>

namespace velo::platform {

inline std::uint64_t clock_ns(clockid_t clock) {
    timespec now{};
    clock_gettime(clock, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(now.tv_nsec);
}
inline std::uint64_t monotonic_ns() {
    return clock_ns(CLOCK_MONOTONIC);
}

}  // namespace velo::platform
