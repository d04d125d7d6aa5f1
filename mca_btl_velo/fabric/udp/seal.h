// A datagram as bytes, sealed with the key of the job: who has not got it can neither make one nor change
// one.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "fabric/udp/siphash.h"
#include "multicast/datagram.h"

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
    std::uint32_t group = 0;
    std::uint32_t total = 0;   // bytes of the broadcast
    std::uint32_t offset = 0;  // of this datagram's in it
    std::uint32_t spare = 0;

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
// In front of the payload, at most.
inline constexpr std::size_t kMostHeaderBytes =
    kHeaderBytes + multicast::Datagram::kMostAcks * kAckBytes + sizeof(Content);

// Writes what goes before the payload, tag included; how many bytes. `room` has kMostHeaderBytes.
std::size_t seal(const SipHash& hash, const Letter& letter, std::byte* room);
// None: it has not been sealed with this key, or has been changed since, or is no letter.
std::optional<Letter> opened(const SipHash& hash, std::span<const std::byte> bytes);

}  // namespace velo::fabric::udp
