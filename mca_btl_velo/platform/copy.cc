#include "platform/copy.h"

#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace velo::platform {
namespace {

// In steps below those for which the library takes string instructions.
void copy_in_steps(std::byte* to, const std::byte* from, std::size_t bytes) {
    constexpr std::size_t kStep = 2048;
    for (; bytes > kStep; bytes -= kStep, to += kStep, from += kStep) std::memcpy(to, from, kStep);
    std::memcpy(to, from, bytes);
}

#if defined(__x86_64__)
constexpr std::size_t kLine = 64;

// Whole lines, and nothing else: whatever these called at their end would run before the upper halves of the
// vectors are cleared, and each load of 16 bytes then waits for the last one to the same register
// (design/shared-memory.md).

// Each line is stored once, by two stores, and none after the next.
[[gnu::target("avx2")]] void copy_lines_by_vectors(std::byte* to, const std::byte* from, std::size_t bytes) {
    for (const std::byte* const end = from + bytes; from != end; to += kLine, from += kLine) {
        const auto* source = reinterpret_cast<const __m256i*>(from);
        auto* target = reinterpret_cast<__m256i*>(to);
        const __m256i a = _mm256_loadu_si256(source), b = _mm256_loadu_si256(source + 1);
        _mm256_store_si256(target, a);
        _mm256_store_si256(target + 1, b);
    }
}

// Four vectors are loaded before the first of them is stored, so that a load waits for no store that only
// looks as if it were to the same place.
[[gnu::target("avx2")]] void copy_pairs_by_vectors(std::byte* to, const std::byte* from, std::size_t bytes) {
    constexpr std::size_t kPair = 2 * kLine;
    for (const std::byte* const end = from + bytes; from != end; to += kPair, from += kPair) {
        const auto* source = reinterpret_cast<const __m256i*>(from);
        auto* target = reinterpret_cast<__m256i*>(to);
        const __m256i a = _mm256_loadu_si256(source), b = _mm256_loadu_si256(source + 1);
        const __m256i c = _mm256_loadu_si256(source + 2), d = _mm256_loadu_si256(source + 3);
        _mm256_store_si256(target, a);
        _mm256_store_si256(target + 1, b);
        _mm256_store_si256(target + 2, c);
        _mm256_store_si256(target + 3, d);
    }
}

const bool has_vectors = __builtin_cpu_supports("avx2") != 0;
#endif

}  // namespace

void copy_to_lines(std::byte* to, const std::byte* from, std::size_t bytes) {
#if defined(__x86_64__)
    if (has_vectors) {
        const std::size_t lines = bytes / kLine * kLine;
        copy_lines_by_vectors(to, from, lines);
        return copy_small(to + lines, from + lines, bytes - lines);
    }
#endif
    std::memcpy(to, from, bytes);
}

void copy_long(std::byte* to, const std::byte* from, std::size_t bytes) {
#if defined(__x86_64__)
    if (has_vectors) {
        const std::size_t head = -reinterpret_cast<std::uintptr_t>(to) % kLine;
        copy_small(to, from, head);
        const std::size_t pairs = (bytes - head) / (2 * kLine) * (2 * kLine);
        copy_pairs_by_vectors(to + head, from + head, pairs);
        const std::size_t done = head + pairs;
        return copy_to_lines(to + done, from + done, bytes - done);
    }
#endif
    copy_in_steps(to, from, bytes);
}

}  // namespace velo::platform
