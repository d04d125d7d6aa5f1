#include "fabric/shm/shm_link.h"

#include <algorithm>
#include <cstring>

#include "platform/cache.h"
#include "platform/copy.h"
#include "platform/failure.h"

namespace velo::fabric::shm {
namespace {

using wire::kPacketBytes;
using wire::kPayloadBytes;

// The slots of an answer are fetched ahead unless they are so few that the processor can fetch them all at
// once while they are being stored, when fetching them twice only costs, and a single one would be taken
// back by its receiver, who looks at it all the time.
constexpr std::uint32_t kFewPackets = 10;
constexpr std::uint32_t kPreparedPackets = 66;

}  // namespace

std::uint32_t ShmLink::reserve_accepted(std::uint32_t least, std::uint32_t wanted, mailbox::Cursor* first) {
    const std::uint32_t count = acceptance_->accept(least, wanted);
    if (count > 0) *first = writer_.reserve(count);
    return count;
}

Carried ShmLink::carry(const Burst& burst) {
    mailbox::Cursor at{};
    std::uint32_t packets = burst.packets;
    if (burst.granted) {
        // More would go beyond the ring.
        if (packets > writer_.capacity()) [[unlikely]]
            throw Failure(VELO_ERR_PROTOCOL, "a peer has given more credits than its mailbox has slots");
        at = writer_.reserve(packets);
    } else {
        packets = reserve_free(burst.whole ? packets : 1, packets, &at);
        if (packets == 0) return {0, 0};
    }
    const std::size_t rest = burst.message.total() - burst.offset;
    const std::uint32_t run_packets = burst.framing.run_packets(rest);
    wire::PacketKind kind = burst.kind;
    std::size_t done = 0;
    for (std::uint32_t left = packets; left > 0;) {
        std::uint32_t most = std::min(run_packets, left);
        std::size_t bytes = std::min(wire::run_capacity(most), rest - done);
        std::uint32_t used = wire::packets_in_run(bytes);
        wire::Header header{kind, burst.flags, burst.tag, static_cast<std::uint16_t>(bytes), 0, source_};
        store_run(at, header, burst.message, burst.offset + done, burst.piggyback);
        kind = wire::PacketKind::kData;
        if (burst.rested) demote(at, used);
        done += bytes;
        left -= used;
        at.advance(writer_.capacity(), used);
    }
    return {packets, done};
}

// The bytes of the message from `offset` on, as many as the header says.
void ShmLink::store_run(mailbox::Cursor at, wire::Header header, const MessageView& message,
                        std::size_t offset, std::uint32_t piggyback) {
    const std::size_t bytes = header.length;
    if (offset == 0) header.flags |= wire::kFirst;
    bool last = offset + bytes == message.total();
    if (last) header.flags |= wire::kLast;
    if (bytes > kPayloadBytes) store_train(at, message, offset + kPayloadBytes, bytes - kPayloadBytes);
    message.copy_to(writer_.payload(at), offset, std::min(bytes, kPayloadBytes));
    if (last && piggyback != 0) writer_.add_piggyback(at, header, piggyback);
    writer_.publish(at, header);
}

// The packets after the first. They are stored before it: the receiver looks at the first all the time, and
// takes its line away each time that it does so.
void ShmLink::store_train(mailbox::Cursor at, const MessageView& message, std::size_t offset,
                          std::size_t bytes) {
    at.advance(writer_.capacity(), 1);
    std::byte* to = writer_.slot(at);
    std::size_t head = std::min(bytes, std::size_t{writer_.capacity() - at.index} * kPacketBytes);
    for (std::size_t line = 0; line < head; line += kPacketBytes) platform::prefetch_for_write(to + line);
    message.copy_to(to, offset, head);
    if (bytes > head) message.copy_to(writer_.start(), offset + head, bytes - head);
}

void ShmLink::demote(mailbox::Cursor at, std::uint32_t packets) {
    for (; packets > 0; --packets, at.advance(writer_.capacity(), 1)) platform::demote(writer_.slot(at));
}

bool ShmLink::begin_reference(bool granted) {
    if (!granted) return reserve_free(1, 1, &reference_) > 0;
    reference_ = writer_.reserve(1);
    return true;
}

void ShmLink::carry_reference(const Referred& what) {
    const mailbox::Cursor at = reference_;
    std::memcpy(writer_.payload(at), &what.reference, sizeof what.reference);
    wire::Header header{what.kind, what.flags, what.tag, sizeof what.reference, 0, source_};
    header.flags |= wire::kReference;
    if (what.piggyback != 0) writer_.add_piggyback(at, header, what.piggyback);
    writer_.publish(at, header);
}

void ShmLink::prepare(std::uint32_t packets) {
    if (packets < kFewPackets) return;
    mailbox::Cursor at = writer_.behind();
    for (packets = std::min(packets + 1, std::min(kPreparedPackets, writer_.capacity())); packets > 0;
         --packets) {
        platform::prefetch_for_write(writer_.slot(at));
        at.advance(writer_.capacity(), 1);
    }
}

void ShmLink::carry_control(wire::PacketKind kind, std::uint32_t value) {
    if (kind == wire::PacketKind::kHello && doorbell_) return doorbell_->ring(source_);
    mailbox::Cursor at = writer_.reserve(1);
    std::memcpy(writer_.payload(at), &value, sizeof value);
    writer_.publish(at, wire::Header{kind, wire::kFirst | wire::kLast, 0, sizeof value, 0, source_});
}

}  // namespace velo::fabric::shm
