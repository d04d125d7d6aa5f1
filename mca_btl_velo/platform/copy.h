// Copies of a few bytes without a call: every size up to one packet is two overlapping moves of a fixed size.
// Never reads outside the source.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace velo::platform {

// How the sender copies into shared memory that the other core reads: by vectors through its cache, by
// non-temporal stores past the caches, or by the processor's string instruction (rep movsb).
enum class Copying : std::uint8_t { kVectors, kNonTemporal, kString };

template <std::size_t kBytes>
[[gnu::always_inline]] inline void copy_ends(std::byte* to, const std::byte* from, std::size_t bytes) {
    std::memcpy(to, from, kBytes);
    std::memcpy(to + bytes - kBytes, from + bytes - kBytes, kBytes);
}

// bytes <= 64; the regions do not overlap.
inline void copy_other_small(std::byte* to, const std::byte* from, std::size_t bytes) {
    if (bytes >= 32) return copy_ends<32>(to, from, bytes);
    if (bytes >= 16) return copy_ends<16>(to, from, bytes);
    if (bytes >= 8) return copy_ends<8>(to, from, bytes);
    if (bytes >= 4) return copy_ends<4>(to, from, bytes);
    if (bytes >= 2) return copy_ends<2>(to, from, bytes);
    if (bytes == 1) *to = *from;
}

[[gnu::always_inline]] inline void copy_small(std::byte* to, const std::byte* from, std::size_t bytes) {
    // The headers of upper layers, and a number.
    if (bytes - 8 <= 8) [[likely]]
        return copy_ends<8>(to, from, bytes);
    copy_other_small(to, from, bytes);
}

// Two pieces, the second behind the first; `a_bytes` + `b_bytes` <= 64.
[[gnu::always_inline]] inline void copy_two_small(std::byte* to, const std::byte* a, std::size_t a_bytes,
                                                  const std::byte* b, std::size_t b_bytes) {
    // One branch for the header of an upper layer and a number.
    if ((a_bytes - 8 <= 8) & (b_bytes - 8 <= 8)) [[likely]] {
        copy_ends<8>(to, a, a_bytes);
        return copy_ends<8>(to + a_bytes, b, b_bytes);
    }
    copy_small(to, a, a_bytes);
    if (b_bytes == 0) return;
    // What fills a packet behind such a header.
    if (b_bytes >= 32) return copy_ends<32>(to + a_bytes, b, b_bytes);
    copy_other_small(to + a_bytes, b, b_bytes);
}

// From kLeastLong bytes on, by 32-byte vectors where the processor has them. The library's copy stores its
// end before what lies in front of it, and goes back to lines that it has left: to lines that another core
// has just read that costs a look at that core each. From 4 KiB on it takes the processor's string
// instructions, which are slow there, and it is held up by addresses that look alike
// (design/large-messages.md).
void copy_long(std::byte* to, const std::byte* from, std::size_t bytes);
inline constexpr std::size_t kLeastLong = 512;
// The same of any size to the beginning of a line, for short ones.
void copy_to_lines(std::byte* to, const std::byte* from, std::size_t bytes);

// Any size, each in the way that is fastest.
inline void copy(std::byte* to, const std::byte* from, std::size_t bytes) {
    if (bytes <= 64) return copy_small(to, from, bytes);
    if (bytes >= kLeastLong) return copy_long(to, from, bytes);
    std::memcpy(to, from, bytes);
}

// By the processor's string instruction, which on some processors takes whole lines from another core's cache
// without fetching them first (docs/measured/routes.md). Short data as any.
inline constexpr std::size_t kLeastByString = 2048;
inline void copy_by_string(std::byte* to, const std::byte* from, std::size_t bytes) {
    if (bytes < kLeastByString) return copy(to, from, bytes);
#if defined(__x86_64__)
    asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
#else
    std::memcpy(to, from, bytes);
#endif
}

// Whole lines of 64 bytes, past the caches: for a reader whose core is far, who would otherwise take each
// line away from this core's cache. `to` is aligned to a line. fence_past_cache() comes before they are
// published.
inline void copy_lines_past_cache(std::byte* to, const std::byte* from, std::size_t lines) {
#if defined(__SSE2__)
    for (; lines > 0; --lines, to += 64, from += 64) {
        const auto* source = reinterpret_cast<const __m128i*>(from);
        auto* target = reinterpret_cast<__m128i*>(to);
        const __m128i a = _mm_loadu_si128(source), b = _mm_loadu_si128(source + 1);
        const __m128i c = _mm_loadu_si128(source + 2), d = _mm_loadu_si128(source + 3);
        _mm_stream_si128(target, a);
        _mm_stream_si128(target + 1, b);
        _mm_stream_si128(target + 2, c);
        _mm_stream_si128(target + 3, d);
    }
#else
    std::memcpy(to, from, lines * 64);
#endif
}
inline void fence_past_cache() {
#if defined(__SSE2__)
    _mm_sfence();
#endif
}

}  // namespace velo::platform
