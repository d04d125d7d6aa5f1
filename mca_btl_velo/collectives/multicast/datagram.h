// What members of a group say to each other. The fields alone: their bytes, a key and the payload are added
// by whoever carries them.
#pragma once

#include <array>
#include <cstdint>

namespace velo::multicast {

// Numbers of the datagrams of a stream, on a circle: compared by distance() only.
using Sequence = std::uint32_t;

// How far it is from `a` to `b`; negative: `b` comes before `a`.
constexpr std::int32_t distance(Sequence a, Sequence b) {
    return static_cast<std::int32_t>(b - a);
}

enum class Kind : std::uint8_t {
    kData,   // one datagram of a stream, from its source or repaired by a collector
    kAck,    // nothing but acknowledgements
    kNack,   // to the collector: these are missing
    kProbe,  // from the collector: so many have been sent, where are you?
};

// `to` hears that the sender, and all whose collector the sender is, have every datagram before `next`.
struct Ack {
    std::uint32_t to = 0;
    std::uint32_t stream = 0;
    Sequence next = 0;
    std::uint32_t slowest = 0;  // of them: who lacks that one, for words alone

    friend bool operator==(const Ack&, const Ack&) = default;
};

struct Datagram {
    static constexpr std::size_t kMostAcks = 8;
    static constexpr unsigned kMissing = 64;  // as many as a NACK can name

    Kind kind = Kind::kAck;
    bool again = false;  // data: it has been sent before
    std::uint8_t acks = 0;
    std::uint32_t stream = 0;
    Sequence sequence = 0;  // data: its number; NACK: the first that is missing; probe: the first not sent
    Sequence low = 0;       // data, probe: the first that the source has not freed
    std::uint64_t missing = 0;         // NACK: bit i is sequence + i
    std::array<Ack, kMostAcks> ack{};  // of any streams, to any members: those who are not meant pass over

    friend bool operator==(const Datagram&, const Datagram&) = default;
};

}  // namespace velo::multicast
