// The mailbox's two views, in one thread: positions, laps, fullness.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "mailbox/reader.h"
#include "mailbox/writer.h"

namespace velo::mailbox {
namespace {

class Mailbox {
 public:
    explicit Mailbox(std::uint32_t capacity)
        : pointers_(std::make_unique<Pointers<>>()), slots_(new Slot<>[capacity] {}), capacity_(capacity) {}

    Writer<> writer() { return {pointers_.get(), slots_.get(), capacity_}; }
    Reader<> reader() { return {pointers_.get(), slots_.get(), capacity_}; }
    Pointers<>& pointers() { return *pointers_; }

 private:
    std::unique_ptr<Pointers<>> pointers_;
    std::unique_ptr<Slot<>[]> slots_;
    std::uint32_t capacity_;
};

wire::Header data_from(std::uint32_t source) {
    return {wire::PacketKind::kData, wire::kFirst | wire::kLast, 0, 0, 0, source};
}

TEST(MailboxTest, a_position_maps_to_the_same_slot_and_lap_as_division_does) {
    std::mt19937_64 random(7);
    for (std::uint32_t capacity : {1U, 2U, 3U, 7U, 64U, 100U, 4160U, 65535U, 1U << 24}) {
        Divider divider(capacity);
        for (int i = 0; i < 20000; ++i) {
            std::uint64_t position = i % 2 ? random() : random() % (3 * std::uint64_t{capacity} + 1);
            Cursor at = divider.locate(position);
            ASSERT_EQ(at.index, position % capacity) << position << " mod " << capacity;
            ASSERT_EQ(at.lap, static_cast<std::uint16_t>(position / capacity + 1));
        }
        EXPECT_EQ(divider.locate(~std::uint64_t{0}).index, ~std::uint64_t{0} % capacity);
    }
}

TEST(MailboxTest, an_empty_mailbox_shows_no_packet) {
    Mailbox mailbox(4);
    EXPECT_EQ(mailbox.reader().poll(), 0U);
}

TEST(MailboxTest, a_reserved_slot_that_is_not_yet_stored_holds_back_the_ones_after_it) {
    Mailbox mailbox(4);
    auto writer = mailbox.writer();
    auto reader = mailbox.reader();
    Cursor first = writer.reserve(1);
    Cursor second = writer.reserve(1);
    writer.publish(second, data_from(2));
    EXPECT_EQ(reader.poll(), 0U);
    writer.publish(first, data_from(1));
    EXPECT_EQ(wire::Header::unpack(reader.poll()).source, 1U);
    reader.advance(1);
    EXPECT_EQ(wire::Header::unpack(reader.poll()).source, 2U);
}

TEST(MailboxTest, packets_keep_their_order_over_many_laps_without_clearing_a_slot) {
    Mailbox mailbox(3);
    auto writer = mailbox.writer();
    auto reader = mailbox.reader();
    // More laps than the 16 bits of the lap field count.
    for (std::uint32_t i = 0; i < 3 * 70000; ++i) {
        ASSERT_EQ(reader.poll(), 0U) << "stale packet at " << i;
        writer.publish(writer.reserve(1), data_from(i % 1000));
        ASSERT_EQ(wire::Header::unpack(reader.poll()).source, i % 1000);
        reader.advance(1);
    }
}

// Payload lies where headers lie in other rounds: whatever it is, it must not be taken for one.
TEST(MailboxTest, payload_of_a_train_never_passes_for_a_header_of_the_next_round) {
    for (std::uint32_t capacity : {3U, 4U, 7U}) {
        Mailbox mailbox(capacity);
        auto writer = mailbox.writer();
        auto reader = mailbox.reader();
        for (std::uint32_t i = 0; i < 3 * 70000; ++i) {
            ASSERT_EQ(reader.poll(), 0U) << "stale header at " << i;
            std::uint32_t packets = 1 + i % 3;
            Cursor at = writer.reserve(packets);
            wire::Header header = data_from(i % 1000);
            header.length = static_cast<std::uint16_t>(wire::run_capacity(packets));
            Cursor later = at;
            for (std::uint32_t k = 1; k < packets; ++k) {
                later.advance(capacity, 1);
                wire::Header forged = data_from(999);
                forged.lap = static_cast<std::uint16_t>(later.lap + 1);
                std::uint64_t word = forged.pack();
                std::memcpy(writer.slot(later), &word, sizeof word);
            }
            writer.publish(at, header);
            ASSERT_EQ(wire::Header::unpack(reader.poll()).source, i % 1000);
            reader.advance(packets);
        }
    }
}

TEST(MailboxTest, a_run_goes_on_at_the_start_of_the_ring) {
    Mailbox mailbox(4);
    auto writer = mailbox.writer();
    auto reader = mailbox.reader();
    writer.publish(writer.reserve(1), data_from(1));
    reader.poll();
    reader.advance(1);
    writer.publish(writer.reserve(2), [] {
        wire::Header header = data_from(1);
        header.length = 100;
        return header;
    }());
    EXPECT_EQ(wire::Header::unpack(reader.poll()).packets(), 2U);
    EXPECT_EQ(reader.contiguous(), 3 * wire::kPacketBytes - wire::kHeaderBytes);
    reader.advance(2);
    Cursor at = writer.reserve(3);
    EXPECT_EQ(at.index, 3U);
    EXPECT_EQ(writer.contiguous(at), wire::kPayloadBytes);
    EXPECT_EQ(reader.contiguous(), wire::kPayloadBytes);
    EXPECT_EQ(writer.start(), reader.start());
}

TEST(MailboxTest, a_full_mailbox_refuses_without_credits_and_takes_as_much_as_was_read) {
    Mailbox mailbox(4);
    auto writer = mailbox.writer();
    auto reader = mailbox.reader();
    Cursor at{};
    EXPECT_EQ(writer.try_reserve(1, 6, &at), 4U);
    for (int i = 0; i < 4; ++i, at.advance(4, 1)) writer.publish(at, data_from(0));
    EXPECT_EQ(writer.try_reserve(1, 1, &at), 0U);

    ASSERT_NE(reader.poll(), 0U);
    reader.advance(1);
    reader.advance(1);
    EXPECT_EQ(writer.try_reserve(1, 1, &at), 0U)
        << "slots that were not published as read must not be reused";
    reader.publish();
    EXPECT_EQ(writer.try_reserve(3, 3, &at), 0U) << "all or nothing";
    EXPECT_EQ(writer.try_reserve(2, 3, &at), 2U) << "all that there is";
    EXPECT_EQ(at.index, 0U);
    EXPECT_EQ(at.lap, 2U);
}

TEST(MailboxTest, occupancy_counts_reserved_slots) {
    Mailbox mailbox(8);
    auto writer = mailbox.writer();
    auto reader = mailbox.reader();
    writer.reserve(5);
    EXPECT_EQ(reader.occupancy(), 5U);
    reader.advance(1);
    EXPECT_EQ(reader.occupancy(), 4U);
}

}  // namespace
}  // namespace velo::mailbox
