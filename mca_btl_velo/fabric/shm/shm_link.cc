#include "fabric/shm/shm_link.h"

#include <algorithm>
#include <cstring>

#include "platform/copy.h"

namespace velo::fabric::shm {
namespace {

// Copies bytes [offset, offset + bytes) of the message, at most one packet's payload.
void gather(std::byte* to, const MessageView& message, std::size_t offset, std::size_t bytes) {
    std::size_t split = message.bytes[0];
    if (offset >= split) return platform::copy_small(to, message.part[1] + (offset - split), bytes);
    std::size_t head = std::min(bytes, split - offset);
    platform::copy_small(to, message.part[0] + offset, head);
    if (bytes > head) platform::copy_small(to + head, message.part[1], bytes - head);
}

void store_piggyback(std::byte* payload, std::uint32_t credits) {
    auto value = static_cast<std::uint16_t>(credits);
    std::memcpy(payload + wire::kPiggybackOffset, &value, sizeof value);
}

}  // namespace

std::uint32_t ShmLink::carry(const Run& run) {
    mailbox::Cursor at{};
    std::uint32_t packets = run.packets;
    if (run.granted) {
        at = writer_.reserve(packets);
    } else {
        packets = writer_.try_reserve(run.whole ? packets : 1, packets, &at);
    }
    std::size_t total = run.message.total();
    std::size_t offset = run.offset;
    for (std::uint32_t i = 0; i < packets; ++i) {
        std::byte* payload = writer_.payload(at);
        std::size_t bytes = std::min(total - offset, wire::kPayloadBytes);
        std::uint8_t flags = run.flags;
        if (offset == 0) flags |= wire::kFirst;
        if (bytes == wire::kPayloadBytes && offset >= run.message.bytes[0]) {
            std::memcpy(payload, run.message.part[1] + (offset - run.message.bytes[0]), wire::kPayloadBytes);
        } else {
            gather(payload, run.message, offset, bytes);
        }
        if (offset + bytes == total) {
            flags |= wire::kLast;
            if (run.piggyback != 0) {
                flags |= wire::kPiggyback;
                store_piggyback(payload, run.piggyback);
            }
        }
        writer_.publish(at, wire::Header{wire::PacketKind::kData, flags, run.tag,
                                         static_cast<std::uint8_t>(bytes), 0, source_});
        at.advance(writer_.capacity());
        offset += bytes;
    }
    return packets;
}

void ShmLink::carry_control(wire::PacketKind kind, std::uint32_t value) {
    mailbox::Cursor at = writer_.reserve(1);
    std::memcpy(writer_.payload(at), &value, sizeof value);
    writer_.publish(at, wire::Header{kind, wire::kFirst | wire::kLast, 0, sizeof value, 0, source_});
}

}  // namespace velo::fabric::shm
