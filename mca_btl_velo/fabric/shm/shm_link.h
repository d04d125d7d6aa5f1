// The software VELO engine: stores runs of packets straight into the receiver's mailbox.
#pragma once

#include <cstring>
#include <optional>

#include "fabric/fabric.h"
#include "fabric/shm/acceptance.h"
#include "fabric/shm/doorbell.h"
#include "mailbox/writer.h"
#include "platform/cache.h"
#include "platform/copy.h"

namespace velo::fabric::shm {

class ShmLink final : public Link {
 public:
    ShmLink() = default;  // closed
    // `source`: this process's index in the receiver's directory.
    ShmLink(mailbox::Writer<> writer, std::uint32_t source) : writer_(writer), source_(source) {}
    bool is_open() const { return writer_.is_open(); }

    // From now on the receiver takes that many of this sender's packets; its mailbox has room for those of
    // all senders.
    void refuse_beyond(const Acceptance& acceptance) { acceptance_ = acceptance; }

    Carried carry(const Burst& burst) override;
    [[gnu::always_inline]] bool carry_packet(const MessageView& message, std::uint8_t tag,
                                             std::uint32_t piggyback, bool granted, bool rested) override {
        mailbox::Cursor at{};
        if (granted) {
            at = writer_.reserve(1);
        } else if (reserve_free(1, 1, &at) == 0) {
            return false;
        }
        store_packet(at, message, tag, piggyback, rested);
        return true;
    }
    // The same, granted and without credits.
    [[gnu::always_inline]] void carry_plain_packet(const MessageView& message, std::uint8_t tag,
                                                   bool rested) {
        store_packet(writer_.reserve(1), message, tag, 0, rested);
    }
    // Likewise a message that is one run of several `packets`, for which there is a place, and the first of
    // which holds all of its first part.
    bool holds(std::uint32_t packets) const { return packets <= writer_.capacity(); }
    [[gnu::always_inline]] void carry_plain_run(const MessageView& message, std::uint8_t tag,
                                                std::uint32_t packets, bool rested) {
        const mailbox::Cursor at = writer_.reserve(packets);
        if (packets > writer_.capacity() - at.index) [[unlikely]]
            return store_over_end(at, message, tag);
        std::byte* const slot = writer_.slot(at);
        std::byte* const second = slot + wire::kPacketBytes;
        std::byte* const end = slot + packets * wire::kPacketBytes;
        const std::size_t head = wire::kPayloadBytes - message.bytes[0];
        for (std::byte* line = second; line < end; line += wire::kPacketBytes)
            platform::prefetch_for_write(line);
        if (packets == 2)
            platform::copy_small(second, message.part[1] + head, message.bytes[1] - head);
        else
            platform::copy_to_lines(second, message.part[1] + head, message.bytes[1] - head);
        platform::copy_two_small(writer_.payload(at), message.part[0], message.bytes[0], message.part[1],
                                 head);
        writer_.publish(at, whole(message, tag));
        if (!rested) return;
        for (std::byte* line = slot; line < end; line += wire::kPacketBytes) platform::demote(line);
    }
    [[gnu::always_inline]] mailbox::Cursor begin_plain_reference() { return writer_.reserve(1); }
    [[gnu::always_inline]] void carry_plain_reference(mailbox::Cursor at, const wire::Reference& reference,
                                                      std::uint8_t tag, std::uint32_t piggyback) {
        std::memcpy(writer_.payload(at), &reference, sizeof reference);
        constexpr std::uint8_t kFlags = wire::kFirst | wire::kLast | wire::kReference;
        wire::Header header{wire::PacketKind::kData, kFlags, tag, sizeof reference, 0, source_};
        if (piggyback != 0) add_piggyback(at, header, piggyback);
        writer_.publish(at, header);
        platform::prefetch_for_write(writer_.slot(at) + 2 * wire::kPacketBytes);
    }
    bool begin_reference(bool granted) override;
    void carry_reference(const Referred& what) override;
    void prepare(std::uint32_t packets) override;
    void carry_control(wire::PacketKind kind, std::uint32_t value) override;

    // HELLO rings instead of taking a slot.
    void use(const Doorbell& doorbell) { doorbell_ = doorbell; }

 private:
    // Without credits: Writer::try_reserve, or as many as the receiver does not refuse.
    std::uint32_t reserve_free(std::uint32_t least, std::uint32_t wanted, mailbox::Cursor* first) {
        if (!acceptance_) [[likely]]
            return writer_.try_reserve(least, wanted, first);
        return reserve_accepted(least, wanted, first);
    }
    std::uint32_t reserve_accepted(std::uint32_t least, std::uint32_t wanted, mailbox::Cursor* first);
    [[gnu::always_inline]] void store_packet(mailbox::Cursor at, const MessageView& message, std::uint8_t tag,
                                             std::uint32_t piggyback, bool rested) {
        std::byte* const slot = writer_.slot(at);
        std::byte* const payload = writer_.payload(at);
        platform::copy_two_small(payload, message.part[0], message.bytes[0], message.part[1],
                                 message.bytes[1]);
        wire::Header header = whole(message, tag);
        if (piggyback != 0) add_piggyback(at, header, piggyback);
        writer_.publish(at, header);
        if (rested) {
            platform::demote(slot);
        } else {
            // The one after the next, over the end of the ring nobody's: the receiver looks at the next all
            // the time.
            platform::prefetch_for_write(slot + 2 * wire::kPacketBytes);
        }
    }
    // To a run of one packet.
    void add_piggyback(mailbox::Cursor at, wire::Header& header, std::uint32_t credits) {
        header.flags |= wire::kPiggyback;
        const auto value = static_cast<std::uint16_t>(credits);
        std::memcpy(writer_.payload(at) + wire::kPiggybackOffset, &value, sizeof value);
    }
    // Of a message in one run.
    wire::Header whole(const MessageView& message, std::uint8_t tag) const {
        const auto bytes = static_cast<std::uint16_t>(message.total());
        return {wire::PacketKind::kData, wire::kFirst | wire::kLast, tag, bytes, 0, source_};
    }
    void store_run(mailbox::Cursor at, wire::Header header, const MessageView& message, std::size_t offset,
                   std::uint32_t piggyback);
    // A whole message by its value, so that whoever calls this can have it in registers.
    [[gnu::noinline]] void store_over_end(mailbox::Cursor at, MessageView message, std::uint8_t tag) {
        store_run(at, whole(message, tag), message, 0, 0);
    }
    void store_train(mailbox::Cursor at, const MessageView& message, std::size_t offset, std::size_t bytes);
    void demote(mailbox::Cursor at, std::uint32_t packets);

    mailbox::Writer<> writer_;
    std::uint32_t source_ = 0;
    mailbox::Cursor reference_{0, 1};  // where a REF goes that has begun
    std::optional<Acceptance> acceptance_;
    std::optional<Doorbell> doorbell_;

 public:
    // What carry_packet needs, from the beginning on: the table of functions and the first two members.
    static constexpr std::size_t kHotBytes = sizeof(void*) + sizeof writer_ + sizeof source_;
};

}  // namespace velo::fabric::shm
