// The 64-byte VELO packet: one mailbox slot, 8 bytes of header and 56 bytes of payload (thesis chapter 2).
//
// The header is one 64-bit word so that a single release store publishes the packet and a single acquire
// load finds it. `lap` tells a fresh slot from the one of the round before, so that the receiver never has to
// write into the slot. Every field that comes from a peer is validated by `plausible` before it is used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace velo::wire {

inline constexpr std::size_t kPacketBytes = 64;
inline constexpr std::size_t kPayloadBytes = 56;
// A piggybacked credit count takes the last two bytes of the payload (thesis section 5.4).
inline constexpr std::size_t kPiggybackBytes = 2;
inline constexpr std::size_t kPiggybackOffset = kPayloadBytes - kPiggybackBytes;

enum class PacketKind : std::uint8_t {
    kData = 1,            // takes a credit and a data slot
    kCredit = 2,          // credit packet: travels in the credit region, takes no credit
    kRequest = 3,         // compulsory credit return request (REQ): takes a credit and a data slot
    kResponse = 4,        // compulsory credit return response (RESP): takes a credit and a data slot
    kHello = 5,           // asks for first credits: a control slot of each peer
    kBye = 6,             // returns all credits: a control slot of each active sender
    kRelease = 7,         // asks for the return of all credits: a control slot of each open window
    kLeave = 8,           // asks for a RELEASE: a control slot of each active sender
    kBackloggedData = 9,  // DATA that has waited for credits, and says so
};

constexpr bool is_data(PacketKind kind) {
    return kind == PacketKind::kData || kind == PacketKind::kBackloggedData;
}

enum PacketFlags : std::uint8_t {
    kFirst = 1,      // first packet of a message
    kLast = 2,       // last packet of a message
    kPiggyback = 4,  // the last two payload bytes are a u16 credit count
    kInternal = 8,   // the message is the engine's own (RMA over active messages), not the upper layer's
};

// Number of packets that a message of `bytes` takes; an empty message takes one.
constexpr std::uint64_t packets_for(std::uint64_t bytes) {
    return bytes == 0 ? 1 : (bytes + kPayloadBytes - 1) / kPayloadBytes;
}

struct Header {
    PacketKind kind;
    std::uint8_t flags;    // PacketFlags, 4 bits
    std::uint8_t tag;      // active message tag of the upper layer; valid in the first packet of a message
    std::uint8_t length;   // payload bytes in use, without the piggyback field: 0..56, 0..54 with kPiggyback
    std::uint16_t lap;     // 1 + (slot position / capacity), modulo 2^16
    std::uint32_t source;  // index of the sender in the receiver's directory, 24 bits

    static constexpr std::uint32_t kMaxSource = (1U << 24) - 1;

    constexpr std::uint64_t pack() const {
        return static_cast<std::uint64_t>(kind) | static_cast<std::uint64_t>(flags) << 4 |
               static_cast<std::uint64_t>(tag) << 8 | static_cast<std::uint64_t>(length) << 16 |
               static_cast<std::uint64_t>(source) << 24 | static_cast<std::uint64_t>(lap) << 48;
    }
    static constexpr Header unpack(std::uint64_t word) {
        return Header{
            static_cast<PacketKind>(word & 0xf),    static_cast<std::uint8_t>(word >> 4 & 0xf),
            static_cast<std::uint8_t>(word >> 8),   static_cast<std::uint8_t>(word >> 16),
            static_cast<std::uint16_t>(word >> 48), static_cast<std::uint32_t>(word >> 24 & kMaxSource)};
    }
    // The packed header without its lap: equal in all middle packets of a message.
    static constexpr std::uint64_t without_lap(std::uint64_t word) {
        return word & ~(std::uint64_t{0xffff} << 48);
    }
    static constexpr std::uint16_t lap_of(std::uint64_t word) {
        return static_cast<std::uint16_t>(word >> 48);
    }

    // True if the fields could have been written by a correct sender in a directory of `sources` entries.
    constexpr bool plausible(std::uint32_t sources) const {
        bool known = kind >= PacketKind::kData && kind <= PacketKind::kBackloggedData;
        std::size_t room = flags & kPiggyback ? kPiggybackOffset : kPayloadBytes;
        return known && source < sources && length <= room;
    }
};

// One line of text for logs and test failures: "DATA src 3 tag 65 len 22 first last lap 1".
std::string to_string(const Header& header);

static_assert(Header::unpack(Header{PacketKind::kData, kFirst | kLast, 65, 56, 0xfffe, 0xabcdef}.pack())
                  .source == 0xabcdef);
static_assert(Header::lap_of(Header{PacketKind::kData, 0xf, 255, 56, 0xfffe, 0xffffff}.pack()) == 0xfffe);
static_assert(kPayloadBytes + sizeof(std::uint64_t) == kPacketBytes);

}  // namespace velo::wire
