// Packets that no correct peer stores, in the state that the pair is in.
#include <gtest/gtest.h>

#include <array>
#include <atomic>

#include "engine_party.h"
#include "fabric/shm/doorbell.h"
#include "lying_peer.h"

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
