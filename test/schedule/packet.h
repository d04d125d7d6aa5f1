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

    bool takes_data_slot() const {
        return wire::is_data(kind) || kind == wire::PacketKind::kRequest ||
               kind == wire::PacketKind::kResponse;
    }
};

// A DATA packet that waits for a credit.
struct Pending {
    bool spare = false;   // two bytes are free for a piggybacked count
    bool waited = false;  // it could not leave at once
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
