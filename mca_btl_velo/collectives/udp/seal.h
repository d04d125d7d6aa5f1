// A datagram as bytes, sealed with the key of the job: who has not got it can neither make one nor change
// one.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>

#include "collectives/multicast/datagram.h"
#include "collectives/udp/siphash.h"

namespace velo::fabric::udp {

// What is said before a group is relied on, beside the kinds of the core.
enum class Call : std::uint8_t {
    kNone,    // a datagram of the core
    kHello,   // to all: who hears this?
    kAsk,     // to one: have you heard it?
    kAnswer,  // to who asked: yes, or no
    kNoUse,   // somebody does not
};

// What a broadcast's data is of.
struct Content {
    std::uint64_t run = 0;
    std::uint64_t group = 0;   // its name
    std::uint32_t total = 0;   // bytes of the broadcast
    std::uint32_t offset = 0;  // of this datagram's in it

    friend bool operator==(const Content&, const Content&) = default;
};

struct Letter {
    Call call = Call::kNone;
    bool heard = false;  // an answer
    std::uint32_t from = 0;
    multicast::Datagram datagram;
    Content content;                     // of data
    std::span<const std::byte> payload;  // of data
};

inline constexpr std::size_t kHeaderBytes = 40, kAckBytes = 16;
// In front of the payload, at most; of data always, so that the datagrams of a broadcast are equally long.
inline constexpr std::size_t kMostHeaderBytes =
    kHeaderBytes + multicast::Datagram::kMostAcks * kAckBytes + sizeof(Content);
inline constexpr std::size_t kMostPayloadBytes = 16384;

// SipHash of the digests of a datagram, and of its length. A digest is NH with 64-bit words (Krovetz: Message
// Authentication on 64-bit Architectures, 2006) of what is before the payload, or of 1024 bytes of that: two
// of the same length have the same one with a probability of 2^-64. Takes a sixth of the time of SipHash of
// it all.
class Sealer {
 public:
    explicit Sealer(const Key& key);

    // `payload` has kMostPayloadBytes at most.
    std::uint64_t tag(std::span<const std::byte> head, std::span<const std::byte> payload) const;

 private:
    static constexpr std::size_t kBlockBytes = 1024;

    SipHash hash_;
    std::array<std::uint64_t, kBlockBytes / 8> words_;
};

// Writes what goes before the payload, tag included; how many bytes. `room` has kMostHeaderBytes.
std::size_t seal(const Sealer& sealer, const Letter& letter, std::byte* room);
// None: it has not been sealed with this key, or has been changed since, or is no letter.
std::optional<Letter> opened(const Sealer& sealer, std::span<const std::byte> bytes);

}  // namespace velo::fabric::udp
