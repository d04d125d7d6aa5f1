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
// Each line is stored once, by two stores, and none after the next.
[[gnu::target("avx2")]] void copy_lines_by_vectors(std::byte* to, const std::byte* from, std::size_t bytes) {
    constexpr std::size_t kLine = 64;
    for (const std::byte* const end = from + bytes / kLine * kLine; from != end; to += kLine, from += kLine) {
        const auto* source = reinterpret_cast<const __m256i*>(from);
        auto* target = reinterpret_cast<__m256i*>(to);
        const __m256i a = _mm256_loadu_si256(source), b = _mm256_loadu_si256(source + 1);
        _mm256_store_si256(target, a);
        _mm256_store_si256(target + 1, b);
    }
    copy_small(to, from, bytes % kLine);
}

// Four vectors are loaded before the first of them is stored, so that a load waits for no store that only
// looks as if it were to the same place.
[[gnu::target("avx2")]] void copy_by_vectors(std::byte* to, const std::byte* from, std::size_t bytes) {
    constexpr std::size_t kVector = 32, kLine = 2 * kVector, kBlock = 2 * kLine;
    const std::size_t head = -reinterpret_cast<std::uintptr_t>(to) % kLine;
    copy_small(to, from, head);
    to += head, from += head, bytes -= head;
    for (; bytes >= kBlock; bytes -= kBlock, to += kBlock, from += kBlock) {
        const auto* source = reinterpret_cast<const __m256i*>(from);
        auto* target = reinterpret_cast<__m256i*>(to);
        const __m256i a = _mm256_loadu_si256(source), b = _mm256_loadu_si256(source + 1);
        const __m256i c = _mm256_loadu_si256(source + 2), d = _mm256_loadu_si256(source + 3);
        _mm256_store_si256(target, a);
        _mm256_store_si256(target + 1, b);
        _mm256_store_si256(target + 2, c);
        _mm256_store_si256(target + 3, d);
    }
    copy_lines_by_vectors(to, from, bytes);
}

const bool has_vectors = __builtin_cpu_supports("avx2") != 0;
#endif

}  // namespace

void copy_to_lines(std::byte* to, const std::byte* from, std::size_t bytes) {
#if defined(__x86_64__)
    if (has_vectors) return copy_lines_by_vectors(to, from, bytes);
#endif
    std::memcpy(to, from, bytes);
}

void copy_long(std::byte* to, const std::byte* from, std::size_t bytes) {
#if defined(__x86_64__)
    if (has_vectors) return copy_by_vectors(to, from, bytes);
#endif
    copy_in_steps(to, from, bytes);
}

}  // namespace velo::platform
