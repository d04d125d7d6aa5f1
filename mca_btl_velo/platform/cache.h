// Hints to the cache: without effect on the result, and no-operations on processors that do not know them.
#pragma once

namespace velo::platform {

// Fetches the line of `at` to be written soon, so that the stores do not wait for it one after the other.
inline void prefetch_for_write(const void* at) {
#if defined(__x86_64__)
    asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(at)));
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

}  // namespace velo::platform
