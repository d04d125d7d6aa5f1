// What comes from other nodes, as far as it needs no network: rubbish, order, room.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "fabric/ucx/address.h"
#include "fabric/ucx/intake.h"

namespace velo::fabric::ucx {
namespace {

constexpr std::uint32_t kCapacity = 16;

Parcel data_parcel(std::uint32_t sequence, std::size_t bytes, std::uint8_t run = 1) {
    Parcel parcel{};
    parcel.kind = static_cast<std::uint8_t>(wire::PacketKind::kData);
    parcel.flags = wire::kFirst | wire::kLast;
    parcel.sequence = sequence;
    parcel.run_packets = run;
    parcel.bytes = static_cast<std::uint32_t>(bytes);
    return parcel;
}

std::vector<std::byte> bytes_of(const std::string& text) {
    std::vector<std::byte> bytes(text.size());
    std::memcpy(bytes.data(), text.data(), text.size());
    return bytes;
}

// Takes everything out of the mailbox; one string for each run.
std::vector<std::string> drain(mailbox::Reader<>& reader) {
    std::vector<std::string> runs;
    while (std::uint64_t word = reader.poll()) {
        wire::Header header = wire::Header::unpack(word);
        std::size_t head = std::min<std::size_t>(header.length, reader.contiguous());
        std::string text(reinterpret_cast<char*>(reader.payload()), head);
        text.append(reinterpret_cast<char*>(reader.start()), header.length - head);
        runs.push_back(text);
        reader.advance(header.packets());
    }
    reader.publish();
    return runs;
}

TEST(UcxIntake, parcels_that_overtake_each_other_are_stored_in_the_order_of_sending) {
    Intake intake(kCapacity, 2, true);
    auto reader = intake.reader();
    for (std::uint32_t sequence : {2U, 0U, 3U, 1U}) {
        auto payload = bytes_of("message " + std::to_string(sequence));
        EXPECT_EQ(intake.arrive(0, data_parcel(sequence, payload.size()), payload), nullptr);
    }
    EXPECT_EQ(drain(reader), (std::vector<std::string>{"message 0", "message 1", "message 2", "message 3"}));
}

TEST(UcxIntake, sequence_numbers_begin_again_behind_the_last_one) {
    constexpr std::uint32_t kFirst = UINT32_MAX - 1;
    Intake intake(kCapacity, 1, true, kFirst);
    auto reader = intake.reader();
    const auto arrive = [&](std::uint32_t number) {
        auto payload = bytes_of(std::to_string(number));
        return intake.arrive(0, data_parcel(kFirst + number, payload.size()), payload);
    };
    for (std::uint32_t number : {3U, 1U, 2U, 0U, 4U}) EXPECT_EQ(arrive(number), nullptr);
    EXPECT_EQ(drain(reader), (std::vector<std::string>{"0", "1", "2", "3", "4"}));
    EXPECT_STREQ(arrive(1), "a parcel that came before");
    EXPECT_TRUE(intake.has_stored(0, kFirst + 5));
}

TEST(UcxIntake, a_parcel_that_comes_twice_is_refused) {
    Intake intake(kCapacity, 1, true);
    auto payload = bytes_of("x");
    EXPECT_EQ(intake.arrive(0, data_parcel(0, 1), payload), nullptr);
    EXPECT_NE(intake.arrive(0, data_parcel(0, 1), payload), nullptr);
    EXPECT_EQ(intake.arrive(0, data_parcel(5, 1), payload), nullptr);
    EXPECT_NE(intake.arrive(0, data_parcel(5, 1), payload), nullptr);
}

TEST(UcxIntake, who_leaves_has_left_when_all_that_it_sent_is_stored) {
    Intake intake(kCapacity, 2, false);
    auto reader = intake.reader();
    auto payload = bytes_of(std::string(8 * wire::kPayloadBytes, 'x'));
    for (std::uint32_t sequence : {0U, 2U})
        ASSERT_EQ(intake.arrive(0, data_parcel(sequence, payload.size(), 8), payload), nullptr);
    EXPECT_FALSE(intake.has_stored(0, 3)) << "one is under way";
    ASSERT_EQ(intake.arrive(0, data_parcel(1, payload.size(), 8), payload), nullptr);
    EXPECT_FALSE(intake.has_stored(0, 3)) << "one waits for room";
    EXPECT_TRUE(intake.has_stored(1, 0));
    drain(reader);
    EXPECT_TRUE(intake.settle());
    EXPECT_TRUE(intake.has_stored(0, 3));
}

TEST(UcxIntake, more_packets_than_credits_are_refused) {
    Intake intake(kCapacity, 1, true);
    auto payload = bytes_of("x");
    for (std::uint32_t i = 0; i < kCapacity; ++i)
        ASSERT_EQ(intake.arrive(0, data_parcel(i, 1), payload), nullptr);
    EXPECT_STREQ(intake.arrive(0, data_parcel(kCapacity, 1), payload), "more packets than credits");
}

TEST(UcxIntake, without_credits_what_finds_no_room_waits_and_keeps_its_order) {
    Intake intake(kCapacity, 1, false);
    auto reader = intake.reader();
    std::string sent;
    for (std::uint32_t i = 0; i < 5; ++i) {
        std::string text(7 * wire::kPayloadBytes, static_cast<char>('a' + i));
        sent += text;
        ASSERT_EQ(intake.arrive(0, data_parcel(i, text.size()), bytes_of(text)), nullptr);
    }
    EXPECT_FALSE(intake.settle());
    std::string received;
    for (int round = 0; round < 10; ++round) {
        for (const std::string& run : drain(reader)) received += run;
        if (intake.settle() && received.size() == sent.size()) break;
    }
    EXPECT_EQ(received, sent);
}

TEST(UcxIntake, a_run_over_the_end_of_the_ring_keeps_its_bytes_and_its_credits) {
    Intake intake(kCapacity, 1, true);
    auto reader = intake.reader();
    std::uint32_t sequence = 0;
    for (std::uint32_t skip = 0; skip < kCapacity; ++skip) {
        std::string text(300, static_cast<char>('A' + skip));
        Parcel parcel = data_parcel(sequence++, text.size(), 5);
        parcel.value = 7;
        ASSERT_EQ(intake.arrive(0, parcel, bytes_of(text)), nullptr);
        std::uint64_t word = reader.poll();
        ASSERT_NE(word, 0U);
        EXPECT_EQ(wire::Header::unpack(word).packets(), slots_of(parcel));
        EXPECT_TRUE(wire::Header::unpack(word).flags & wire::kPiggyback);
        EXPECT_EQ(drain(reader), std::vector<std::string>{text});
        ASSERT_EQ(intake.arrive(0, data_parcel(sequence++, 1), bytes_of("x")), nullptr);
        drain(reader);
    }
}

TEST(UcxIntake, a_parcel_passes_the_ring_only_when_all_before_it_has_been_retrieved) {
    Intake intake(kCapacity, 2, true);
    auto reader = intake.reader();
    const Parcel first = data_parcel(0, 1);
    EXPECT_TRUE(intake.pass(0, first));
    EXPECT_FALSE(intake.pass(0, first)) << "twice";
    EXPECT_FALSE(intake.pass(0, data_parcel(2, 1))) << "too early";
    EXPECT_EQ(intake.arrive(0, data_parcel(2, 1), bytes_of("c")), nullptr);
    EXPECT_FALSE(intake.pass(0, data_parcel(1, 1))) << "another one waits for it";
    EXPECT_EQ(intake.arrive(0, data_parcel(1, 1), bytes_of("b")), nullptr);
    EXPECT_FALSE(intake.pass(0, data_parcel(3, 1))) << "the ring is not empty";
    EXPECT_FALSE(intake.pass(1, data_parcel(0, 1))) << "for nobody";
    EXPECT_EQ(drain(reader), (std::vector<std::string>{"b", "c"}));
    EXPECT_TRUE(intake.pass(0, data_parcel(3, 1)));
    EXPECT_TRUE(intake.pass(1, data_parcel(0, 1)));
}

TEST(UcxIntake, a_parcel_that_the_ring_could_not_hold_does_not_pass_it) {
    Intake intake(kCapacity, 1, true);
    const Parcel parcel = data_parcel(0, kCapacity * wire::kPacketBytes, 4);
    EXPECT_FALSE(intake.pass(0, parcel));
    EXPECT_STREQ(intake.arrive(0, parcel, std::vector<std::byte>(parcel.bytes)), "more packets than credits");
}

// It would wait for room for ever.
TEST(UcxIntake, a_run_that_the_ring_never_has_room_for_is_refused) {
    Parcel parcel = data_parcel(0, 10, kCapacity);
    EXPECT_EQ(fault_of(parcel, 10, kCapacity), nullptr);
    parcel.run_packets = kCapacity + 1;
    EXPECT_STREQ(fault_of(parcel, 10, kCapacity), "runs that do not fit");
    parcel.run_packets = 0;
    EXPECT_STREQ(fault_of(parcel, 10, kCapacity), "runs that do not fit");
}

TEST(UcxIntake, credits_without_room_for_them_are_refused) {
    const auto fault = [](std::size_t bytes, std::uint32_t credits,
                          std::uint8_t flags = wire::kFirst | wire::kLast) {
        Parcel parcel = data_parcel(0, bytes, 2);
        parcel.value = credits;
        parcel.flags = flags;
        return std::string(
            fault_of(parcel, bytes, kCapacity) == nullptr ? "" : fault_of(parcel, bytes, kCapacity));
    };
    for (std::size_t packets : {1, 2, 3, 4}) {
        // The last run ends with its last packet.
        const std::size_t runs = (packets - 1) / 2, last = packets - 2 * runs;
        const std::size_t full = runs * wire::run_capacity(2) + wire::run_capacity(last);
        EXPECT_EQ(fault(full - wire::kPiggybackBytes, 1), "");
        EXPECT_EQ(fault(full - wire::kPiggybackBytes + 1, 1), "credits without room for them");
        EXPECT_EQ(fault(full, 0), "");
    }
    EXPECT_EQ(fault(10, 0xffff), "");
    EXPECT_EQ(fault(10, 0x10000), "too many piggybacked credits");
    EXPECT_EQ(fault(10, 1, wire::kFirst), "credits in the middle of a message");
    EXPECT_EQ(fault(10, 0, wire::kFirst | wire::kPiggyback), "unknown flags");
}

// Random headers, many of them near the truth: whatever is accepted must leave the mailbox readable.
TEST(UcxIntake, rubbish_neither_overflows_nor_confuses_the_mailbox) {
    std::mt19937 random(20260);
    int accepted = 0, refused = 0;
    for (int round = 0; round < 3000; ++round) {
        Intake intake(kCapacity, 3, round % 2 == 0);
        auto reader = intake.reader();
        for (std::uint32_t step = 0; step < 8; ++step) {
            std::vector<std::byte> payload(random() % 700);
            Parcel parcel = data_parcel(random() % 4 == 0 ? random() : step, payload.size(),
                                        static_cast<std::uint8_t>(random() % 20));
            auto* raw = reinterpret_cast<unsigned char*>(&parcel);
            for (unsigned flips = random() % 3; flips > 0; --flips)
                raw[random() % sizeof parcel] ^= static_cast<unsigned char>(1U << random() % 8);
            if (intake.arrive(0, parcel, payload) != nullptr) {
                ++refused;
                break;  // the engine ends the job
            }
            ++accepted;
            while (std::uint64_t word = reader.poll()) {
                wire::Header header = wire::Header::unpack(word);
                ASSERT_TRUE(header.plausible(3)) << wire::to_string(header);
                ASSERT_LE(header.packets(), kCapacity);
                reader.advance(header.packets());
            }
            ASSERT_LE(reader.occupancy(), kCapacity);
            reader.publish();
            intake.settle();
        }
    }
    EXPECT_GT(accepted, 1000);
    EXPECT_GT(refused, 1000);
}

Address sample_address() {
    Address address;
    address.name = 77;
    address.key = 5;
    std::strcpy(address.agreement.flow_control, "dynamic");
    address.agreement.credit_slots = 2;
    address.flow.peers = 3;
    address.flow.spare_peers = 1;
    address.flow.data_slots = 30;
    address.worker = bytes_of("worker address");
    return address;
}

TEST(UcxAddress, an_address_survives_its_journey) {
    Address parsed;
    ASSERT_TRUE(parse(pack(sample_address()), &parsed));
    EXPECT_EQ(parsed.name, 77U);
    EXPECT_EQ(parsed.key, 5U);
    EXPECT_EQ(parsed.flow.peers, 3U);
    EXPECT_EQ(parsed.flow.credit_slots, 2U);
    EXPECT_EQ(parsed.worker, sample_address().worker);
}

TEST(UcxAddress, a_shortened_or_lengthened_address_is_refused) {
    auto bytes = pack(sample_address());
    Address parsed;
    for (std::size_t length = 0; length < bytes.size(); ++length)
        EXPECT_FALSE(parse(std::span(bytes).first(length), &parsed)) << length;
    bytes.push_back(std::byte{0});
    EXPECT_FALSE(parse(bytes, &parsed));
}

TEST(UcxAddress, values_out_of_range_are_refused) {
    Address parsed, wrong = sample_address();
    wrong.agreement.credit_slots = 0;
    EXPECT_FALSE(parse(pack(wrong), &parsed));
    wrong = sample_address();
    wrong.flow.data_slots = 1U << 30;
    EXPECT_FALSE(parse(pack(wrong), &parsed));
    wrong = sample_address();
    std::memset(wrong.agreement.flow_control, 'x', sizeof wrong.agreement.flow_control);
    EXPECT_FALSE(parse(pack(wrong), &parsed));
    wrong = sample_address();
    wrong.worker.clear();
    EXPECT_FALSE(parse(pack(wrong), &parsed));
}

}  // namespace
}  // namespace velo::fabric::ucx
