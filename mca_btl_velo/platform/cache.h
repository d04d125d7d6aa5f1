// Hints to the cache: without effect on the result, and no-operations on processors that do not know them.
// And how large it is.
#pragma once

#include <unistd.h>

#include <cstddef>

namespace velo::platform {

// Assembler where it is known: a compiler takes a function of nothing but __builtin_prefetch for one without
// an effect, and drops its calls.

// Fetches the line of `at` to be read soon, so that it travels while something else is done.
inline void prefetch(const void* at) {
#if defined(__x86_64__)
    asm volatile("prefetcht0 %0" : : "m"(*static_cast<const char*>(at)));
#elif defined(__aarch64__)
    asm volatile("prfm pldl1keep, %0" : : "Q"(*static_cast<const char*>(at)));
#else
    __builtin_prefetch(at);
#endif
}

// Fetches the line of `at` to be written soon, so that the stores do not wait for it one after the other.
inline void prefetch_for_write(const void* at) {
#if defined(__x86_64__)
    asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(at)));
#elif defined(__aarch64__)
    asm volatile("prfm pstl1keep, %0" : : "Q"(*static_cast<const char*>(at)));
#else
    __builtin_prefetch(at, 1);
#endif
}

// Moves the line of `at` to the shared cache, from where another core reads it faster than from this core's
// own.
inline void demote(const void* at) {
#if defined(__x86_64__)
    asm volatile("cldemote %0" : : "m"(*static_cast<const char*>(at)) : "memory");
#else
    (void)at;
#endif
}

// Bytes of the cache that a core has for itself, the second level; 0 if that is not known.
inline std::size_t second_level_cache_bytes() {
#if defined(_SC_LEVEL2_CACHE_SIZE)
    const long bytes = ::sysconf(_SC_LEVEL2_CACHE_SIZE);
    return bytes > 0 ? static_cast<std::size_t>(bytes) : 0;
#else
    return 0;
#endif
}

}  // namespace velo::platform
