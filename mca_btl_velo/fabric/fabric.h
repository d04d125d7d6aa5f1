// Who carries packets. A Link is the way from this process to one receiver's mailbox; shared memory has one
// implementation, a network has another. Receiving is the same for all: packets end up in the mailbox.
//
// A link is FIFO and lossless. Packets that the flow control has granted (credits, or the credit region) are
// always accepted; without flow control a link may accept fewer than offered, and the caller tries again
// later.
#pragma once

#include <cstddef>
#include <cstdint>

#include "wire/packet.h"

namespace velo::fabric {

// A message as its sender has it: two parts that arrive as one.
struct MessageView {
    const std::byte* part[2];
    std::size_t bytes[2];

    std::size_t total() const { return bytes[0] + bytes[1]; }
};

// Consecutive DATA packets of one message.
struct Run {
    MessageView message;
    std::size_t offset;     // of the first byte to carry; a multiple of the packet payload
    std::uint32_t packets;  // >= 1
    std::uint8_t tag;
    std::uint8_t flags;  // wire::kInternal or 0; kFirst, kLast and kPiggyback are the link's to set
    std::uint32_t
        piggyback;  // credits for the last packet of the message, 0 for none; fits in its spare bytes
    bool granted;   // the flow control has room for all of them
    bool whole;     // not granted: carry all or none
};

class Link {
 public:
    virtual ~Link() = default;
    // Returns the number of packets carried, from the first on: all of them if granted, else possibly fewer.
    virtual std::uint32_t carry(const Run& run) = 0;
    // CREDIT, REQ or RESP with its count.
    virtual void carry_control(wire::PacketKind kind, std::uint32_t value) = 0;
};

}  // namespace velo::fabric
