#pragma once

#include <cstdint>

#include "flow/policy_config.h"
#include "wire/packet.h"

namespace velo::schedule {

struct Packet {
    wire::PacketKind kind = wire::PacketKind::kData;
    std::uint32_t value = 0;      // credits of a CREDIT, returned credits of a RESP
    std::uint32_t piggyback = 0;  // credits in a DATA packet
    std::uint64_t sequence = 0;   // of a DATA packet in its ordered pair; no part of the protocol
    // Of a REF. What it stands for is in the sender's chunk at `place`, under this stamp (no part of the
    // protocol either).
    bool refers = false;
    bool batch = false;  // the chunk holds messages one by one, to which their sender may append
    std::uint32_t place = 0;
    std::uint32_t units =
        1;  // packets that it would take to carry what this DATA packet stands for; batch: 0
    std::uint64_t first = 0;  // of these, among all that the pair would take; no part of the protocol
    std::uint64_t stamp = 0;

    bool takes_data_slot() const {
        return wire::is_data(kind) || kind == wire::PacketKind::kRequest ||
               kind == wire::PacketKind::kResponse;
    }
};

// A DATA packet that waits for a credit, or a message of several.
struct Pending {
    bool spare = false;         // two bytes of the last one are free for a piggybacked count
    bool waited = false;        // it could not leave at once
    std::uint32_t packets = 1;  // those that are left
    std::uint32_t left = 0;     // those that are on their way
    std::uint64_t first = 0;    // of its packets, among all of the pair
};

// What stands in a batch: a message, or its end.
struct Enclosed {
    std::uint32_t units = 0;  // 0: the end
    std::uint64_t first = 0;  // as of a Packet
};

// Where a party puts the packets that an event made it send.
class Outbox {
 public:
    virtual ~Outbox() = default;
    virtual void put(flow::PeerIndex to, const Packet& packet) = 0;
    // False: the mailbox of `to` refuses a packet of this process. Only a policy that does not count may ever
    // see that.
    virtual bool has_room(flow::PeerIndex to) const = 0;
    virtual std::uint64_t now_ns() const = 0;
};

// What I8 looks at in one process, about one peer.
struct Handshake {
    bool blocked = false;
    bool request_waiting = false;
    bool response_waiting = false;
};

}  // namespace velo::schedule
