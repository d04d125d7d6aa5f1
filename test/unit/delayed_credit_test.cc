// btl_velo_delay_credits: a credit packet that falls due with the last packet in the mailbox.
#include <gtest/gtest.h>

#include "engine_party.h"

namespace velo::test {
namespace {

PartyConfig config(unsigned slots, bool delay = true) {
    PartyConfig config{.flow_control = "static"};
    config.by_reference = "never";
    config.slots_per_peer = slots;
    config.delay_credits = delay;
    return config;
}

// Every message is answered at once by one of the same size.
void play(Party& party, unsigned rounds) {
    for (unsigned round = 0; round < rounds; ++round) {
        for (std::size_t rank : {0U, 1U}) {
            std::size_t known = party[1 - rank].received.size();
            party.send(rank, 1 - rank, 1, pattern(2000, round));
            while (party[1 - rank].received.size() == known) {
                velo_progress(party[1 - rank].engine);
                if (party[1 - rank].received.size() == known) velo_progress(party[rank].engine);
            }
            EXPECT_EQ(party[1 - rank].received.back().data, pattern(2000, round));
        }
    }
}

TEST(DelayedCreditTest, an_answer_takes_them_along) {
    constexpr unsigned kRounds = 20, kPackets = 32;  // 21 of 62 are enough for a credit packet
    for (bool delay : {true, false}) {
        Party party(config(64, delay));
        play(party, kRounds);
        EXPECT_EQ(party.queued(), 0U);
        EXPECT_EQ(counter(party[0], "credit_packets"), delay ? 0U : kRounds);
        EXPECT_EQ(counter(party[1], "piggybacks"), kRounds);
        party.settle();
        EXPECT_EQ(counter(party[0], "credit_packets"),
                  delay ? 1U : kRounds);  // the last message has no answer
        for (std::size_t rank : {0U, 1U}) {
            EXPECT_EQ(counter(party[rank], "data_packets"), kRounds * kPackets);
            EXPECT_EQ(
                counter(party[rank], "piggybacked_credits") + counter(party[rank], "credits_in_packets"),
                kRounds * kPackets - (62 - counter(party[1 - rank], "credits")));
        }
    }
}

TEST(DelayedCreditTest, without_an_answer_they_leave_at_the_next_look) {
    Party party(config(64));
    ASSERT_EQ(party.send(0, 1, 1, pattern(2000, 7)), VELO_OK);
    velo_progress(party[1].engine);
    ASSERT_EQ(party[1].received.size(), 1U);
    velo_progress(party[0].engine);
    EXPECT_EQ(counter(party[0], "credits"), 30U);
    velo_progress(party[1].engine);
    velo_progress(party[0].engine);
    EXPECT_EQ(counter(party[0], "credits"), 30U + 21U);
    EXPECT_EQ(counter(party[1], "credit_packets"), 1U);
}

TEST(DelayedCreditTest, a_message_that_needs_them_does_not_wait) {
    std::size_t looks[2];
    for (bool delay : {true, false}) {
        Party party(config(8, delay));
        ASSERT_EQ(party.send(0, 1, 1, pattern(2000, 7)), VELO_QUEUED);
        std::size_t& count = looks[delay];
        for (count = 0; party[1].received.empty() && count < 1000; ++count) {
            velo_progress(party[1].engine);
            velo_progress(party[0].engine);
        }
        EXPECT_EQ(party[1].received.size(), 1U);
    }
    EXPECT_EQ(looks[true], looks[false]);
}

TEST(DelayedCreditTest, several_that_are_due_at_once_count_as_the_packet_that_they_become) {
    // 16 packets cross a threshold of 7 more than once.
    std::uint64_t packets[2];
    for (bool delay : {true, false}) {
        Party party(config(20, delay));
        for (unsigned round = 0; round < 20; ++round) {
            party.send(0, 1, 1, pattern(1000, round));
            party.settle();
        }
        packets[delay] = counter(party[1], "credit_packets");
        EXPECT_EQ(counter(party[1], "credits_in_packets"),
                  counter(party[0], "data_packets") + counter(party[0], "credits") - 18);
    }
    EXPECT_LT(packets[true], packets[false]);
}

TEST(DelayedCreditTest, data_for_another_peer_sends_them) {
    PartyConfig three = config(64);
    three.size = 3;
    Party party(three);
    ASSERT_EQ(party.send(0, 1, 1, pattern(2000, 7)), VELO_OK);
    velo_progress(party[1].engine);
    ASSERT_EQ(party[1].received.size(), 1U);
    ASSERT_EQ(party.send(1, 2, 1, "to a third one"), VELO_OK);
    velo_progress(party[0].engine);
    EXPECT_EQ(counter(party[0], "credits"), 51U + 62U);
}

}  // namespace
}  // namespace velo::test
