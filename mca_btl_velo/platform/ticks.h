// Time.
#pragma once

#include <chrono>
#include <cstdint>

namespace velo::platform {

// The processor's own counter: costs a few nanoseconds, runs at a constant rate, its unit differs between
// machines.
inline std::uint64_t ticks() {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    std::uint64_t value;
    asm volatile("mrs %0, cntvct_el0" : "=r"(value));
    return value;
#else
    return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
}

// Between two looks at what another processor is about to change.
inline void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

// What a load takes, in ticks, the reading of the counter included.
template <typename Load>
inline std::uint64_t ticks_of(Load&& load) {
#if defined(__x86_64__)
    __builtin_ia32_lfence();
    const std::uint64_t begin = ticks();
    load();
    __builtin_ia32_lfence();
    return ticks() - begin;
#else
    const std::uint64_t begin = ticks();
    load();
    return ticks() - begin;
#endif
}

// A monotonic clock.
inline std::uint64_t now_ns() {
    auto since = std::chrono::steady_clock::now().time_since_epoch();
    return static_cast<std::uint64_t>(std::chrono::nanoseconds(since).count());
}

}  // namespace velo::platform
