// What travels: runs of 64-byte VELO packets, each packet one mailbox slot (thesis chapter 2).
//
// A run is one header of 8 bytes, followed by its payload without a gap over as many packets as it takes: 56
// bytes for a run of one packet, the classic VELO packet, and 64 more for each further one. A run of several
// packets (a packet train) becomes visible as a whole, which moves more bytes in less time; runs of one
// packet become visible one by one, which lets the receiver work while the sender still stores. `Framing`
// decides.
//
// The header is one 64-bit word so that a single release store publishes the run and a single acquire
// load finds it. `lap` tells a fresh slot from the one of the round before, so that the receiver need not
// write into slots. Every field that comes from a peer is validated by `plausible` before it is used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace velo::wire {

inline constexpr std::size_t kPacketBytes = 64;
inline constexpr std::size_t kHeaderBytes = 8;
// Payload of a run of one packet.
inline constexpr std::size_t kPayloadBytes = kPacketBytes - kHeaderBytes;
// A piggybacked credit count takes the last two bytes of the last packet of a run (thesis section 5.4).
inline constexpr std::size_t kPiggybackBytes = 2;
inline constexpr std::size_t kPiggybackOffset = kPayloadBytes - kPiggybackBytes;

enum class PacketKind : std::uint8_t {
    kData = 1,            // takes a credit and a data slot for each packet of the run
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

// The payload of a packet that refers to data (a REF), of a run of one packet.
struct Reference {
    std::uint32_t place;     // of the chunk in the sender's outbox, bytes
    std::uint32_t bytes;     // of data in it
    std::uint32_t read = 0;  // how many of the receiver's the sender has read: a hint, counted modulo 2^32
};

enum PacketFlags : std::uint8_t {
    kFirst = 1,       // first run of a message
    kLast = 2,        // last run of a message
    kPiggyback = 4,   // the last two bytes of the last packet are a u16 credit count
    kInternal = 8,    // the message is the engine's own (RMA over active messages), not the upper layer's
    kReference = 16,  // the payload is a Reference: what the run stands for is in the sender's outbox
    kBatch = 32,      // with kReference: the chunk holds a batch (wire/batch.h), whose sender may append
};

// Packets of a run with `bytes` of payload, piggyback included.
constexpr std::uint32_t packets_in_run(std::size_t bytes) {
    return static_cast<std::uint32_t>((kHeaderBytes + bytes + kPacketBytes - 1) / kPacketBytes);
}
// Payload that a run of `packets` >= 1 carries at most.
constexpr std::size_t run_capacity(std::uint32_t packets) {
    return std::size_t{packets} * kPacketBytes - kHeaderBytes;
}
// Runs before the last one, where `bytes` are cut into runs of `full` >= 1. Nearly always it is the only one,
// and a division takes as long as all else does for a message.
constexpr std::size_t runs_before_last(std::size_t bytes, std::size_t full) {
    return bytes <= full ? 0 : (bytes - 1) / full;
}

struct Header {
    PacketKind kind;
    std::uint8_t flags;    // PacketFlags, 6 bits
    std::uint8_t tag;      // active message tag of the upper layer; valid in the first run of a message
    std::uint16_t length;  // payload bytes of the run in use, without the piggyback field; 14 bits
    std::uint16_t lap;     // 1 + (slot position / capacity), modulo 2^16
    std::uint32_t source;  // index of the sender in the receiver's directory, 16 bits

    static constexpr std::uint32_t kMaxSource = (1U << 16) - 1;
    static constexpr std::uint16_t kMaxLength = (1U << 14) - 1;

    constexpr std::uint64_t pack() const {
        return static_cast<std::uint64_t>(kind) | static_cast<std::uint64_t>(flags) << 4 |
               static_cast<std::uint64_t>(length) << 10 | static_cast<std::uint64_t>(tag) << 24 |
               static_cast<std::uint64_t>(source) << 32 | static_cast<std::uint64_t>(lap) << 48;
    }
    static constexpr Header unpack(std::uint64_t word) {
        return Header{
            static_cast<PacketKind>(word & 0xf),    static_cast<std::uint8_t>(word >> 4 & 0x3f),
            static_cast<std::uint8_t>(word >> 24),  static_cast<std::uint16_t>(word >> 10 & kMaxLength),
            static_cast<std::uint16_t>(word >> 48), static_cast<std::uint32_t>(word >> 32 & kMaxSource)};
    }
    static constexpr std::uint16_t lap_of(std::uint64_t word) {
        return static_cast<std::uint16_t>(word >> 48);
    }
    // Nearly all that travels is plain: a message of one run, DATA that brings no credits. Such words have
    // these bits in common, and their lap.
    static constexpr std::uint64_t kPlainMask = 0xffffULL << 48 | 0x3ff;
    static constexpr std::uint64_t plain(std::uint16_t lap) {
        return Header{PacketKind::kData, kFirst | kLast, 0, 0, lap, 0}.pack();
    }

    // The same for a message that went by reference, which may bring credits.
    static constexpr std::uint64_t kPlainReference = std::uint64_t{kReference} << 4;
    static constexpr std::uint64_t kPlainReferenceMask = kPlainMask & ~(std::uint64_t{kPiggyback} << 4);

    // Packets, and so slots, of the run.
    constexpr std::uint32_t packets() const {
        return packets_in_run(length + (flags & kPiggyback ? kPiggybackBytes : 0));
    }
    // Where the piggybacked count is, in bytes from the start of the payload.
    constexpr std::size_t piggyback_offset() const { return run_capacity(packets()) - kPiggybackBytes; }

    // True if the fields could have been written by a correct sender in a directory of `sources` entries.
    constexpr bool plausible(std::uint32_t sources) const {
        bool known = kind >= PacketKind::kData && kind <= PacketKind::kBackloggedData;
        return known && source < sources && (is_data(kind) || length <= kPayloadBytes);
    }
};

// How a message is cut into runs: below `train_from` bytes into runs of one packet, from there on into
// trains. Up to `whole_packets` a message is one train, which the receiver hands on without copying it; up to
// twice `train_packets` it is two halves, of which the receiver fetches one while the sender stores the
// other.
struct Framing {
    std::size_t train_from;       // bytes
    std::uint32_t whole_packets;  // 1..255
    std::uint32_t train_packets;  // 1..255

    // Packets of all runs but the last of a message of which `bytes` are left.
    constexpr std::uint32_t run_packets(std::size_t bytes) const {
        if (bytes < train_from) return 1;
        std::size_t whole = (kHeaderBytes + bytes + kPacketBytes - 1) / kPacketBytes;
        if (whole <= whole_packets) return static_cast<std::uint32_t>(whole);
        return static_cast<std::uint32_t>(whole < std::size_t{2} * train_packets ? (whole + 1) / 2
                                                                                 : train_packets);
    }
    // Packets that `bytes` take; an empty message takes one.
    constexpr std::uint64_t packets_for(std::size_t bytes) const {
        std::uint32_t packets = run_packets(bytes);
        std::size_t full = run_capacity(packets), runs = runs_before_last(bytes, full);
        return std::uint64_t{runs} * packets + packets_in_run(bytes - runs * full);
    }
    // Whether the last run of a message, of which `bytes` are left, has room for a piggybacked count.
    constexpr bool room_for_piggyback(std::size_t bytes) const {
        std::size_t full = run_capacity(run_packets(bytes));
        std::size_t last = bytes - runs_before_last(bytes, full) * full;
        return last + kPiggybackBytes <= run_capacity(packets_in_run(last));
    }
};

// The thesis's format, a header in every packet: a 2 KB message with MPI's 16 bytes of header takes 37
// packets, as one train 33.
inline constexpr Framing kClassicFraming{~std::size_t{0}, 1, 1};

// One line of text for logs and test failures: "DATA src 3 tag 65 len 22 first last lap 1".
std::string to_string(const Header& header);

static_assert(Header::unpack(Header{PacketKind::kData, kFirst | kLast, 65, 56, 0xfffe, 0xabcd}.pack())
                  .source == 0xabcd);
static_assert((Header{PacketKind::kData, kFirst | kLast, 255, 0x3fff, 0xfffe, 0xffff}.pack() &
               Header::kPlainMask) == Header::plain(0xfffe));
static_assert(Header::lap_of(Header{PacketKind::kData, 0x3f, 255, 0x3fff, 0xfffe, 0xffff}.pack()) == 0xfffe);
static_assert(packets_in_run(0) == 1 && packets_in_run(56) == 1 && packets_in_run(57) == 2);

}  // namespace velo::wire
