// Packets that no correct peer stores, in the state that the pair is in.
#include <gtest/gtest.h>

#include <array>
#include <atomic>

#include "engine_party.h"
#include "fabric/shm/doorbell.h"
#include "lying_peer.h"
#include "wire/batch.h"

namespace velo::test {
namespace {

class EngineLies : public ::testing::TestWithParam<std::string> {
 protected:
    EngineLies() : party_(config()), first_(party_[0].engine, 0), other_(party_[0].engine, 1) {
        // Under a policy that opens windows on demand they have some.
        for (std::size_t from : {1U, 2U}) party_.send(from, 0, 1, "hello");
        party_.settle();
        party_[0].received.clear();
    }

    static PartyConfig config() {
        PartyConfig config;
        config.size = 3;
        config.flow_control = GetParam().c_str();
        config.slots_per_peer = config.lazy_slots = 64;
        config.preposted_buffers = config.initial_buffers = 32;
        config.credit_message_threshold = 20;
        return config;
    }
    std::vector<std::string> received() {
        std::vector<std::string> texts;
        for (const Received& message : party_[0].received) texts.push_back(message.data);
        return texts;
    }
    void expect_refusal() {
        velo_progress(party_[0].engine);
        EXPECT_EQ(party_[0].fatal.size(), 1U);
        EXPECT_TRUE(party_[0].received.empty());
    }

    Party party_;
    LyingPeer first_, other_;
};

INSTANTIATE_TEST_SUITE_P(EveryPolicy, EngineLies, ::testing::ValuesIn(policies()),
                         [](const auto& info) { return info.param; });

TEST_P(EngineLies, a_message_in_the_middle_of_another_is_refused) {
    first_.store(wire::kFirst, 1, "half a ");
    first_.store(wire::kFirst | wire::kLast, 1, "whole");
    expect_refusal();
}

TEST_P(EngineLies, a_message_without_a_beginning_is_refused) {
    first_.store(wire::kLast, 1, "end");
    expect_refusal();
}

TEST_P(EngineLies, a_message_of_nobody_is_refused) {
    LyingPeer nobody(party_[0].engine, 50'000);
    nobody.store(wire::kFirst | wire::kLast, 1, "hello");
    expect_refusal();
}

TEST_P(EngineLies, a_message_that_is_longer_than_any_may_be_is_refused) {
    PartyConfig small = config();
    small.max_message_bytes = 1024;
    Party party(small);
    for (std::size_t from : {1U, 2U}) party.send(from, 0, 1, "hello");
    party.settle();
    party[0].received.clear();
    LyingPeer liar(party[0].engine, 0);
    liar.store(wire::kFirst | wire::kLast, 1, std::string(1025, 'x'));
    velo_progress(party[0].engine);
    EXPECT_EQ(party[0].fatal.size(), 1U);
    EXPECT_TRUE(party[0].received.empty());
}

TEST_P(EngineLies, runs_of_two_senders_that_alternate_are_not_joined) {
    first_.store(wire::kFirst, 1, "a");
    other_.store(wire::kFirst, 1, "1");
    for (const auto& [letter, digit] : {std::pair{"b", "2"}, {"c", "3"}, {"d", "4"}}) {
        first_.store(0, 1, letter);
        other_.store(0, 1, digit);
    }
    first_.store(wire::kLast, 1, "e");
    other_.store(wire::kLast, 1, "5");
    velo_progress(party_[0].engine);
    EXPECT_EQ(received(), (std::vector<std::string>{"abcde", "12345"}));
    EXPECT_TRUE(party_[0].fatal.empty());
}

// Beyond the outbox, between its chunks, more than a chunk holds, no reference at all.
TEST_P(EngineLies, a_reference_to_what_is_not_in_the_outbox_is_refused_and_its_sender_named) {
    constexpr std::uint32_t kChunk = flow::OutboxPlan::kMostRoom;  // the first one's bytes
    const wire::Reference wrong[] = {{1U << 30, 8},    {UINT32_MAX, 8}, {1, 8},
                                     {kChunk - 64, 8}, {0, kChunk + 1}, {0, UINT32_MAX}};
    for (const wire::Reference& reference : wrong) {
        Party party(config());
        for (std::size_t from : {1U, 2U}) party.send(from, 0, 1, "hello");
        party.settle();
        party[0].received.clear();
        LyingPeer liar(party[0].engine, 0);
        liar.store(wire::kReference | wire::kFirst | wire::kLast, 1,
                   {reinterpret_cast<const char*>(&reference), sizeof reference});
        velo_progress(party[0].engine);
        ASSERT_EQ(party[0].fatal.size(), 1U);
        EXPECT_NE(party[0].fatal[0].find("of its outbox, where no such chunk is"), std::string::npos);
        EXPECT_NE(party[0].fatal[0].find("101"), std::string::npos) << party[0].fatal[0];
        EXPECT_TRUE(party[0].received.empty());
    }
}

TEST_P(EngineLies, a_reference_to_more_than_its_chunk_holds_is_refused) {
    Party party(config());
    for (std::size_t from : {1U, 2U}) party.send(from, 0, 1, "hello");
    party.settle();
    const wire::Reference reference{0, flow::OutboxPlan::kMostRoom + 1};
    LyingPeer liar(party[0].engine, 0);
    liar.store(wire::kReference | wire::kFirst | wire::kLast, 1,
               {reinterpret_cast<const char*>(&reference), sizeof reference});
    velo_progress(party[0].engine);
    ASSERT_EQ(party[0].fatal.size(), 1U);
    EXPECT_NE(party[0].fatal[0].find("of its outbox, where no such chunk is"), std::string::npos)
        << party[0].fatal[0];
}

TEST_P(EngineLies, a_reference_of_another_size_is_refused) {
    first_.store(wire::kReference | wire::kFirst | wire::kLast, 1, "seven..");
    expect_refusal();
}

// A batch of which the last header lies; what comes before it is right.
class EnclosedLies : public EngineLies {
 protected:
    // In the chunk at 0 of rank 1, of which `bytes` are the batch's. Returns whether it counts as read
    // afterwards.
    static bool refer(Party& party, const wire::Enclosed& last, std::uint32_t bytes = 8192) {
        fabric::shm::Segment segment = segment_of(party[1].engine);
        std::byte* at = segment.chunk(0);
        for (const wire::Enclosed& enclosed :
             {wire::Enclosed{5, 9, 0, 1}, wire::Enclosed{0, 8, 0, 1}, last, wire::Enclosed{0, 0, 0, 2}}) {
            std::memcpy(at, &enclosed, sizeof enclosed);
            if (enclosed.bytes > 0) std::memcpy(at + sizeof enclosed, "right", 5);
            at += wire::enclosed_bytes(enclosed.bytes <= bytes ? enclosed.bytes : 0);
        }
        const wire::Reference reference{0, bytes};
        LyingPeer(party[0].engine, 0)
            .store(wire::kReference | wire::kBatch | wire::kFirst | wire::kLast, 0,
                   {reinterpret_cast<const char*>(&reference), sizeof reference});
        velo_progress(party[0].engine);
        return segment_of(party[0].engine).references_read(0) == 1;
    }
};
INSTANTIATE_TEST_SUITE_P(EveryPolicy, EnclosedLies, ::testing::ValuesIn(policies()),
                         [](const auto& info) { return info.param; });

TEST_P(EnclosedLies, messages_of_a_batch_come_one_by_one_with_their_tags) {
    EXPECT_TRUE(refer(party_, {3, 7, 0, 1}));
    EXPECT_TRUE(party_[0].fatal.empty());
    EXPECT_EQ(received(), (std::vector<std::string>{"right", "", "rig"}));
    for (std::uint8_t i = 0; i < 3; ++i) EXPECT_EQ(party_[0].received[i].tag, 9 - i);
}

// Longer than the chunk, longer than what the REF stands for, longer than any may be; one of the engine that
// is shorter than its header; of no kind.
TEST_P(EnclosedLies, one_that_is_not_as_its_header_says_is_refused_and_those_before_it_arrive) {
    const std::pair<wire::Enclosed, std::uint32_t> wrong[] = {{{UINT32_MAX, 7, 0, 1}, 8192},
                                                              {{9000, 7, 0, 1}, 8192},
                                                              {{64, 7, 0, 1}, 3 * 64},
                                                              {{32 * 1024 - 700, 7, 0, 1}, 32'900},
                                                              {{5, 7, wire::kInternal, 1}, 8192},
                                                              {{5, 7, 0, 3}, 8192}};
    for (const auto& [last, bytes] : wrong) {
        PartyConfig lower = config();
        lower.max_message_bytes = 16 * 1024;
        Party party(lower);
        for (std::size_t from : {1U, 2U}) party.send(from, 0, 1, "hello");
        party.settle();
        party[0].received.clear();
        refer(party, last, bytes);
        EXPECT_EQ(party[0].fatal.size(), 1U) << last.bytes << " of " << bytes;
        ASSERT_EQ(party[0].received.size(), 2U) << last.bytes << " of " << bytes;
        EXPECT_EQ(party[0].received[0].data, "right");
    }
}

TEST_P(EnclosedLies, in_the_middle_of_another_message_are_refused) {
    first_.store(wire::kFirst, 1, "half a ");
    refer(party_, {3, 7, 0, 1});
    EXPECT_EQ(party_[0].fatal.size(), 1U);
    EXPECT_TRUE(party_[0].received.empty());
}

// Of which nobody could tell where they belong.
TEST_P(EnclosedLies, a_packet_before_the_end_of_a_batch_is_refused) {
    const wire::Reference reference{0, 8192};
    first_.store(wire::kReference | wire::kBatch | wire::kFirst | wire::kLast, 0,
                 {reinterpret_cast<const char*>(&reference), sizeof reference});
    velo_progress(party_[0].engine);
    EXPECT_TRUE(party_[0].fatal.empty());
    first_.store(wire::kFirst | wire::kLast, 1, "too early");
    expect_refusal();
    EXPECT_NE(party_[0].fatal.at(0).find("before the end of the batch"), std::string::npos);
}

// A batch in no room at all.
TEST_P(EnclosedLies, a_batch_of_less_than_a_message_is_refused) {
    EXPECT_FALSE(refer(party_, {3, 7, 0, 1}, static_cast<std::uint32_t>(wire::batch_bytes(0)) - 1));
    EXPECT_EQ(party_[0].fatal.size(), 1U);
    EXPECT_TRUE(party_[0].received.empty());
}

TEST(DoorbellLies, a_bell_of_nobody_calls_nobody) {
    std::atomic<std::uint32_t> rings{0};
    std::array<std::atomic<std::uint64_t>, 2> bits{};
    fabric::shm::Doorbell bell(&rings, bits.data(), 70);
    bits[1] = std::uint64_t{1} << 6 | std::uint64_t{1} << 5 | std::uint64_t{1} << 63;
    rings = 3;
    std::vector<std::uint32_t> callers;
    bell.answer([&](std::uint32_t sender) { callers.push_back(sender); });
    EXPECT_EQ(callers, std::vector<std::uint32_t>{69});
}

}  // namespace
}  // namespace velo::test
