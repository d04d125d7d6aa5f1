// A board as it lies in shared memory: what processes of one node write for all the others of a group to
// read.
//
//   Header | Progress[members] | Counter[counters] | Line[members + 1][window + 2]
//          | chunk[members + 1][chunks] | slip[members + 1][slips]
//
// Each member writes its own progress, lines, chunks and slips; what stands behind those of the last member,
// where there are more than two, is for the result that the last to arrive writes. Offsets only, no pointers.
// The atomic type is a parameter as in mailbox/layout.h.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "collectives/board/signature.h"

namespace velo::board {

inline constexpr std::size_t kLineBytes = 64;
inline constexpr std::size_t kInLine = kLineBytes - sizeof(std::uint64_t);  // payload
// Two lines: neighbouring lines are prefetched in pairs, and these have different writers.
inline constexpr std::size_t kSpacing = 128;

// How large it is; the same for all members.
struct Shape {
    static constexpr std::uint32_t kMostMembers = 4096, kMostWindow = 1024, kMostChunk = 1U << 19;
    static constexpr std::uint32_t kLeastPart = 8;  // bytes of a chunk for each member: elements are not cut

    std::uint32_t members;  // 1..kMostMembers
    std::uint32_t window;   // runs, 1..kMostWindow
    std::uint32_t chunks;   // of them, those whose payload lies in no line, up to `window`
    std::uint32_t chunk;    // bytes of such a payload at most, a multiple of 64, up to kMostChunk

    // Of a writer: those of the window, and two for runs in which two members wait for each other.
    static constexpr std::uint32_t kTurns = 2;
    constexpr std::size_t lines() const { return std::size_t{window} + kTurns; }
    // Up to so many members everybody reads all contributions; above, the last to arrive does it for all.
    static constexpr std::uint32_t kMostExchange = 2;
    constexpr bool exchanges() const { return members <= kMostExchange; }
    constexpr std::size_t writers() const { return members + (exchanges() ? 0U : 1U); }

    // Payload that needs no chunk has more places, which lie closer together: its writer need not wait for
    // the slowest reader so soon, and caches hold more of them.
    static constexpr std::uint32_t kSlips = 128, kSlipBytes = 1024;
    constexpr std::uint32_t slips() const {
        const std::uint32_t places = std::bit_floor(window < kSlips ? window : kSlips);
        return chunks < places && chunk > kSlipBytes ? places : 0;
    }

    bool operator==(const Shape&) const = default;
    constexpr bool plausible() const {
        return members >= 1 && members <= kMostMembers && window >= 1 && window <= kMostWindow &&
               chunks >= 1 && chunks <= window && chunk >= members * kLeastPart && chunk >= kLineBytes &&
               chunk <= kMostChunk && chunk % kLineBytes == 0;
    }
};

struct alignas(kSpacing) Header {
    static constexpr std::uint64_t kMagic = 0x39304452414f42;  // "BOARD09": changes with the layout

    std::uint64_t magic;
    Shape shape;
    std::uint64_t first_run;
};

// The first word of a line: the kind of the operation, payload bytes and run. A line that nobody has written
// is 0.
struct Word {
    static constexpr std::uint64_t kPublished = 1;
    static constexpr unsigned kKindAt = 1, kBytesAt = kKindAt + Signature::kKindBits, kBytesBits = 20,
                              kRunAt = kBytesAt + kBytesBits;
    // A slot holds what is `window` runs old, or many times as much, but less than kRuns: each time that
    // kForget runs have passed, an hour at the earliest, lines that are older than kOld are forgotten.
    static constexpr std::uint64_t kRuns = std::uint64_t{1} << (64 - kRunAt), kForget = kRuns / 4,
                                   kOld = std::uint64_t{1} << 24;

    static constexpr std::uint64_t pack(std::uint64_t run, std::uint32_t bytes, std::uint32_t kind) {
        return kPublished | kind << kKindAt | static_cast<std::uint64_t>(bytes) << kBytesAt | run << kRunAt;
    }
    static constexpr std::uint32_t bytes_of(std::uint64_t word) {
        return static_cast<std::uint32_t>(word >> kBytesAt & ((1U << kBytesBits) - 1));
    }
    static constexpr std::uint32_t kind_of(std::uint64_t word) {
        return static_cast<std::uint32_t>(word >> kKindAt & ((1U << Signature::kKindBits) - 1));
    }
    // Runs from the one in `word` to `run`, modulo kRuns.
    static constexpr std::uint64_t age(std::uint64_t word, std::uint64_t run) {
        return (run - (word >> kRunAt)) % kRuns;
    }
};
static_assert(Shape::kMostChunk < 1U << Word::kBytesBits);

// Where all is, in the writer's memory, that it gives in an operation; the bytes of a block of it. Address 0:
// it is in chunks.
struct Whole {
    std::uint64_t address = 0, bytes = 0;
};

template <template <class> class Atom = std::atomic>
struct alignas(kLineBytes) Line {
    // Word::pack, written last, with release: whoever finds its run here with acquire sees the payload.
    Atom<std::uint64_t> word;
    // Of more than that: Whole.
    std::byte payload[kInLine];
};
static_assert(sizeof(Line<>) == kLineBytes);

// What a member has begun: all runs before `runs`, the last of them with that signature; and whether it has
// ended there, with an error. The number has 50 bits, for three years of runs of .1 us.
struct Begun {
    static constexpr unsigned kRunsAt = Signature::kBits + 1;
    static constexpr std::uint64_t kEnded = std::uint64_t{1} << Signature::kBits;
    static_assert(64 - kRunsAt >= 50);

    static constexpr std::uint64_t pack(std::uint64_t runs, std::uint32_t signature) {
        return runs << kRunsAt | signature;
    }
    static constexpr std::uint64_t runs_of(std::uint64_t begun) { return begun >> kRunsAt; }
    static constexpr std::uint32_t signature_of(std::uint64_t begun) {
        return static_cast<std::uint32_t>(begun & (kEnded - 1));
    }
};

// How others read a process's memory: singlecopy::RemoteProcess.
struct Memory {
    std::uint64_t pid, probe, cookie;
    std::int64_t xpmem_segment;
};

// Of a member, written by nobody else. finished: all runs before that one, release, so that what it has read
// may be overwritten. begun: Begun::pack, for those who ask whom they wait for, and what he is in. reads: a
// bit for each member whose memory it can read, as it has tried. memory: of this one, from before it has
// published anything. own, result: whether its places have memory, and in the first member those of the
// result; Backing, written under the lock of the store by whoever needs them first.
template <template <class> class Atom = std::atomic>
struct alignas(kSpacing) Progress {
    Atom<std::uint64_t> finished;
    Atom<std::uint64_t> begun;
    Atom<std::uint64_t> reads;
    Memory memory;
    Atom<std::uint32_t> own, result;
};

// The places of a writer beside its lines are of two kinds, a bit for each in what is asked for. Whether they
// have memory is decided once, for all members: granted, or by the same bit shifted refused.
struct Backing {
    static constexpr std::uint32_t kSlips = 1, kChunks = 2, kAll = kSlips | kChunks;
    static constexpr unsigned kRefused = 2;

    static constexpr std::uint32_t granted(std::uint32_t word) { return word & kAll; }
    static constexpr std::uint32_t decided(std::uint32_t word) { return (word | word >> kRefused) & kAll; }
};

// Arrivals in a run in which everybody waits for everybody. One for each eight members, who so take it from
// few others, and one above them if they are several.
inline constexpr std::uint32_t kCounted = 8;
template <template <class> class Atom = std::atomic>
struct alignas(kSpacing) Counter {
    Atom<std::uint32_t> arrived;
};
constexpr std::uint32_t groups_of(std::uint32_t members) {
    return (members + kCounted - 1) / kCounted;
}

// Where everything is, from the first byte on.
struct Offsets {
    std::size_t progress, counters, lines, chunks, slips, end;

    static constexpr Offsets of(const Shape& shape) {
        const std::size_t writers = shape.writers();
        Offsets at{};
        at.progress = sizeof(Header);
        at.counters = at.progress + shape.members * sizeof(Progress<>);
        at.lines = at.counters + (groups_of(shape.members) + 1U) * sizeof(Counter<>);
        at.chunks = at.lines + writers * shape.lines() * kLineBytes;
        at.slips = at.chunks + writers * shape.chunks * shape.chunk;
        at.end = at.slips + writers * shape.slips() * Shape::kSlipBytes;
        return at;
    }
};

}  // namespace velo::board
