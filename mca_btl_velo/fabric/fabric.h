// Who carries packets. A Link is the way from this process to one receiver's mailbox; shared memory has one
// implementation, a network has another. Receiving is the same for all: packets end up in the mailbox.
//
// A link is FIFO and lossless. Packets that the flow control has granted (credits, or the credit region) are
// always accepted; without flow control a link may accept fewer than offered, and the caller tries again
// later.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "platform/copy.h"
#include "wire/packet.h"

namespace velo::fabric {

// A message as its sender has it: two parts that arrive as one.
struct MessageView {
    const std::byte* part[2];
    std::size_t bytes[2];

    std::size_t total() const { return bytes[0] + bytes[1]; }
    // Copies bytes [offset, offset + count) of the message.
    void copy_to(std::byte* to, std::size_t offset, std::size_t count) const {
        copy_by(platform::copy, to, offset, count);
    }
    // The same past the caches, in whole lines: writes up to 63 bytes more than `count`.
    void stream_to(std::byte* to, std::size_t offset, std::size_t count) const {
        constexpr std::size_t kLine = 64;
        while (count > 0) {
            const std::size_t in = offset < bytes[0] ? 0 : 1;
            const std::size_t from = in == 0 ? offset : offset - bytes[0];
            std::size_t step = std::min(count, bytes[in] - from) / kLine * kLine;
            if (step > 0) {
                platform::copy_lines_past_cache(to, part[in] + from, step / kLine);
            } else {
                alignas(kLine) std::byte line[kLine] = {};
                step = std::min(count, kLine);
                const std::size_t head = offset < bytes[0] ? std::min(step, bytes[0] - offset) : 0;
                if (head > 0) std::memcpy(line, part[0] + offset, head);
                if (step > head) std::memcpy(line + head, part[1] + (offset + head - bytes[0]), step - head);
                platform::copy_lines_past_cache(to, line, 1);
            }
            to += kLine * ((step + kLine - 1) / kLine);
            offset += step;
            count -= step;
        }
        platform::fence_past_cache();
    }
    // Bytes [offset, offset + count) of the message by `copy` (to, from, bytes).
    template <typename Copy>
    [[gnu::always_inline]] void copy_by(Copy&& copy, std::byte* to, std::size_t offset,
                                        std::size_t count) const {
        const std::size_t split = bytes[0];
        if (offset < split) {
            const std::size_t head = split - offset;
            if (count <= head) return copy(to, part[0] + offset, count);
            copy(to, part[0] + offset, head);
            to += head;
            count -= head;
            offset = split;
        }
        copy(to, part[1] + (offset - split), count);
    }
};

// What may be sent of a message now.
struct Burst {
    MessageView message;
    std::size_t offset;     // of the first byte to carry; 0: the first of the message
    std::uint32_t packets;  // that may be used, 1..what the rest of the message takes
    wire::PacketKind kind;  // of the first run: kData, or kBackloggedData if it waited
    std::uint8_t tag;
    std::uint8_t flags;       // wire::kInternal or 0; kFirst, kLast and kPiggyback are the link's to set
    std::uint32_t piggyback;  // credits for the last packet of the message, 0 for none; there is room
    bool granted;             // the flow control has room for all of them
    bool whole;               // not granted: carry all or none
    bool rested;              // nothing went this way for a while: the latency counts, not the rate
    bool stays;               // the message is left where it is until Link::holds_some says no
    const wire::Framing& framing;
};

// Data that stays where it is until its receiver has read it.
struct Referred {
    wire::Reference reference;
    const std::byte* data;  // of this process
    wire::PacketKind kind;
    std::uint8_t tag;
    std::uint8_t flags;  // wire::kFirst, kLast and kInternal of what it stands for
    std::uint32_t piggyback;
};

struct Carried {
    std::uint32_t packets;  // 0: the fabric is full
    std::size_t bytes;
};

class Link {
 public:
    virtual ~Link() = default;
    // Carries packets from the first on: all of them if granted, else possibly fewer.
    virtual Carried carry(const Burst& burst) = 0;
    // A message of one packet, at most wire::kPayloadBytes long, piggyback included. False if the fabric is
    // full.
    virtual bool carry_packet(const MessageView& message, std::uint8_t tag, std::uint32_t piggyback,
                              bool granted, bool rested) = 0;
    // The next that is carried is one packet that says where data is. False if the fabric is full. Before the
    // data is stored: where a place in the mailbox is taken by an atomic operation, that would wait for it.
    // Only where the receiver reads the data in place: what it had to be sent would hold up the mailbox until
    // its sender makes progress.
    virtual bool begin_reference(bool) { return false; }
    virtual void carry_reference(const Referred&) {}
    // A message of that many packets has come from there, and nothing is on its way to there: an answer is
    // likely.
    virtual void prepare(std::uint32_t packets) = 0;
    // Some of what was carried is still in this process, and leaves only when the network is looked at.
    virtual bool holds_some() const { return false; }
    // A packet of any kind but DATA, with its count. A link may carry HELLO faster than what went before.
    virtual void carry_control(wire::PacketKind kind, std::uint32_t value) = 0;
};

}  // namespace velo::fabric
