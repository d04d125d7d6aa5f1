// Messages with matching, through the C interface: modes, sizes, order, and what the pool holds.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <random>

#include "messenger_party.h"

namespace velo::test {
namespace {

constexpr std::size_t kSizes[] = {0, 1, 8, 40, 95, 96, 97, 344, 345, 1024, 4096, 8192, 8193, 50'000, 600'000};

class MessengerTest : public ::testing::TestWithParam<std::string> {
 protected:
    PartyConfig config(std::size_t size = 2, std::uint32_t slots = 8) const {
        PartyConfig config;
        config.size = size;
        config.slots_per_peer = slots;
        config.flow_control = GetParam().c_str();
        return config;
    }
};

INSTANTIATE_TEST_SUITE_P(EveryPolicy, MessengerTest, ::testing::ValuesIn(policies()),
                         [](const auto& info) { return info.param; });

TEST_P(MessengerTest, every_size_and_mode_arrives_whole_whether_it_is_expected_or_not) {
    for (const char* single_copy : {"auto", "copy"}) {
        PartyConfig how = config();
        how.single_copy = single_copy;
        MessengerParty party(how);
        unsigned seed = 0;
        for (std::size_t bytes : kSizes) {
            for (auto mode : {VELO_SEND_STANDARD, VELO_SEND_SYNCHRONOUS}) {
                for (int variant = 0; variant < 4; ++variant) {
                    const bool expected = variant & 1, unpack = variant & 2;
                    const std::string data = pattern(bytes, ++seed);
                    Transfer* receive = expected ? &party.receive(1, 0, 5, 700'000, unpack) : nullptr;
                    const Transfer& send = party.send(0, 1, 5, data, mode);
                    party.settle();
                    EXPECT_TRUE(expected || !send.done || (bytes <= 8192 && mode == VELO_SEND_STANDARD))
                        << "complete before it has matched";
                    if (!expected) receive = &party.receive(1, 0, 5, 700'000, unpack);
                    party.settle();
                    ASSERT_TRUE(receive->done && send.done) << bytes << " variant " << variant;
                    EXPECT_EQ(receive->receive.bytes, bytes);
                    EXPECT_EQ(receive->status, VELO_OK);
                    EXPECT_EQ(unpack ? receive->parts : receive->text(), data) << bytes;
                }
            }
        }
        EXPECT_EQ(party.state(1).pool_used_bytes, 0U);
        EXPECT_EQ(party.state(1).headers, 0U);
    }
}

TEST_P(MessengerTest, messages_of_all_sizes_match_in_the_order_in_which_they_were_sent) {
    MessengerParty party(config());
    std::vector<std::string> data;
    for (unsigned i = 0; i < 60; ++i) {
        data.push_back(pattern(kSizes[i * 7 % std::size(kSizes)], i));
        party.send(0, 1, 3, data.back());
    }
    party.settle();
    for (unsigned i = 0; i < 60; ++i) {
        const Transfer& receive =
            party.receive(1, i % 2 ? 0 : VELO_ANY_SOURCE, i % 3 ? 3 : VELO_ANY_TAG, 1 << 20);
        party.settle();
        ASSERT_TRUE(receive.done) << i;
        ASSERT_EQ(receive.text(), data[i]) << i;
    }
}

// What comes behind the message that the last receive waited for is most likely asked for next, and would be
// copied twice.
TEST_P(MessengerTest, what_lies_behind_the_last_awaited_message_stays_in_the_mailbox) {
    MessengerParty party(config());
    const Transfer& first = party.receive(1, 0, 5, 8);
    party.send(0, 1, 5, pattern(8, 0));
    party.settle();
    ASSERT_TRUE(first.done);
    for (unsigned i = 1; i <= 2; ++i) party.send(0, 1, 5, pattern(8, i));
    for (unsigned i = 1; i <= 2; ++i) {
        const Transfer& receive = party.receive(1, 0, 5, 8);
        for (int looks = 0; looks < 100 && !receive.done; ++looks) {
            velo_progress(party.party[0].engine);
            velo_progress(party.party[1].engine);
        }
        ASSERT_TRUE(receive.done) << i;
        EXPECT_EQ(receive.text(), pattern(8, i));
    }
    EXPECT_EQ(party.state(1).unexpected, 0U);
    party.send(0, 1, 5, pattern(8, 4));
    velo_progress(party.party[1].engine);
    EXPECT_EQ(party.state(1).unexpected, 1U) << "where nothing is awaited it is taken all the same";
}

// As rma/deposit.h has it, of which a message tells in its header.
TEST_P(MessengerTest, what_is_deposited_is_got_from_there_and_its_ring_comes_back) {
    constexpr std::size_t kDeposited = 16'000;
    MessengerParty party(config());
    constexpr unsigned kMessages = 40;  // many more than there are chunks
    for (unsigned i = 0; i < kMessages; ++i) {
        const std::string data = pattern(kDeposited, i);
        const bool expected = i % 2 != 0;
        Transfer* receive = expected ? &party.receive(1, 0, 5, kDeposited) : nullptr;
        const Transfer& send = party.send(0, 1, 5, data);
        party.settle();
        EXPECT_EQ(send.done, expected) << "complete before it has matched";
        if (!expected) receive = &party.receive(1, 0, 5, kDeposited);
        party.settle();
        ASSERT_TRUE(receive->done && send.done) << i;
        ASSERT_EQ(receive->text(), data) << i;
    }
    // The first one of lazy has to introduce itself.
    EXPECT_GE(counter(party.party[1], "staged_gets"), kMessages - (GetParam() == "lazy" ? 1 : 0));
}

TEST_P(MessengerTest, a_deposit_that_is_not_read_costs_nothing) {
    constexpr std::size_t kDeposited = 16'000;
    MessengerParty party(config());
    const std::string data = pattern(kDeposited, 1);
    for (int i = 0; i < 10; ++i) {
        party.send(0, 1, 1, data);
        const Transfer& cut = party.receive(1, 0, 1, 100);
        party.settle();
        EXPECT_EQ(cut.text(), data.substr(0, 100));
        party.send(0, 1, 2, data);
        const Transfer& unpacked = party.receive(1, 0, 2, kDeposited, true);
        party.settle();
        EXPECT_EQ(unpacked.parts, data);
        party.send(0, 1, 3, data);
        const Transfer& empty = party.receive(1, 0, 3, 0);
        party.settle();
        EXPECT_TRUE(empty.done);
    }
    const std::uint64_t before = counter(party.party[1], "staged_gets");
    for (int i = 0; i < 3; ++i) party.send(0, 1, 4, data);
    std::array<const Transfer*, 3> receives{};
    for (const Transfer*& receive : receives) receive = &party.receive(1, 0, 4, kDeposited);
    party.settle();
    for (const Transfer* receive : receives) EXPECT_EQ(receive->text(), data);
    EXPECT_EQ(counter(party.party[1], "staged_gets"), before + 3) << "all rings are there again";
}

TEST_P(MessengerTest, a_flood_fills_its_share_of_the_pool_and_no_more_and_nothing_is_lost) {
    constexpr unsigned kMessages = 2000;
    constexpr velo_messenger_config kSmall{8192, 64 * 1024, 64 * 1024, 4, false};
    MessengerParty party(config(3), kSmall);
    std::vector<Transfer*> sends;
    for (unsigned i = 0; i < kMessages; ++i) {
        sends.push_back(&party.send(0, 1, 1, pattern(1000, i)));
        party.send(2, 1, 1, pattern(i % 300, i));
        if (i % 10 == 0) party.settle();
    }
    party.settle();
    EXPECT_LE(party.state(1).pool_most_bytes, 2 * kSmall.unexpected_pool / kSmall.sharers);
    EXPECT_GT(party.state(0).degraded, kMessages / 2);
    EXPECT_TRUE(sends.front()->done);
    EXPECT_FALSE(sends.back()->done);

    // What matches gets through, both ways.
    const Transfer& reply = party.receive(0, 1, 9);
    const Transfer& matched = party.receive(1, 0, 2);
    party.send(0, 1, 2, "matched");
    party.send(1, 0, 9, "reply");
    party.settle();
    EXPECT_EQ(matched.text(), "matched");
    EXPECT_EQ(reply.text(), "reply");

    for (unsigned i = 0; i < kMessages; ++i) {
        const Transfer& one = party.receive(1, 0, 1);
        const Transfer& other = party.receive(1, 2, VELO_ANY_TAG);
        if (i % 10 == 0) party.settle();
        if (!one.done || !other.done) party.settle();
        ASSERT_EQ(one.text(), pattern(1000, i)) << i;
        ASSERT_EQ(other.text(), pattern(i % 300, i)) << i;
    }
    party.settle();
    EXPECT_TRUE(std::all_of(sends.begin(), sends.end(), [](const Transfer* send) { return send->done; }));
    EXPECT_EQ(party.state(1).pool_used_bytes, 0U);

    // The share is the sender's again.
    const std::uint64_t before = party.state(0).degraded;
    for (unsigned i = 0; i < 100; ++i) {
        party.send(0, 1, 1, pattern(1000, i));
        EXPECT_EQ((party.settle(), party.receive(1, 0, 1)).text(), pattern(1000, i));
        party.settle();
    }
    EXPECT_LE(party.state(0).degraded, before + 20);

    // And no more than it was.
    for (unsigned i = 0; i < kMessages; ++i) party.send(0, 1, 1, pattern(1000, i));
    party.settle();
    EXPECT_LE(party.state(1).pool_most_bytes, 2 * kSmall.unexpected_pool / kSmall.sharers);
}

TEST_P(MessengerTest, a_pool_of_nothing_makes_every_message_a_rendezvous) {
    MessengerParty party(config(), {8192, 0, 4, 1 << 20, false});
    const Transfer& send = party.send(0, 1, 1, "text");
    const Transfer& self = party.send(0, 0, 1, "self");
    party.settle();
    EXPECT_FALSE(send.done);
    EXPECT_FALSE(self.done);
    EXPECT_EQ(party.receive(0, 0, 1).text(), "self");
    const Transfer& receive = party.receive(1, 0, 1);
    party.settle();
    EXPECT_EQ(receive.text(), "text");
    EXPECT_TRUE(send.done && self.done);
    EXPECT_EQ(party.state(1).pool_most_bytes, 0U);
}

TEST_P(MessengerTest, a_message_that_is_too_long_is_cut_and_its_length_is_told) {
    MessengerParty party(config());
    for (std::size_t bytes : {200, 5000, 100'000}) {
        for (int variant = 0; variant < 4; ++variant) {
            Transfer* receive = variant & 1 ? &party.receive(1, 0, 1, 150, variant & 2) : nullptr;
            const Transfer& send = party.send(0, 1, 1, pattern(bytes, 1));
            party.settle();
            if (receive == nullptr) receive = &party.receive(1, 0, 1, 150, variant & 2);
            party.settle();
            EXPECT_TRUE(receive->done && send.done);
            EXPECT_EQ(receive->receive.bytes, bytes);
            EXPECT_EQ(variant & 2 ? receive->parts : receive->text(), pattern(bytes, 1).substr(0, 150));
        }
    }
}

TEST_P(MessengerTest, a_process_sends_to_itself) {
    MessengerParty party(config());
    unsigned seed = 0;
    for (std::size_t bytes : kSizes) {
        for (auto mode : {VELO_SEND_STANDARD, VELO_SEND_SYNCHRONOUS}) {
            const Transfer& first = party.receive(0, VELO_ANY_SOURCE, 1, 700'000);
            EXPECT_TRUE(party.send(0, 0, 1, pattern(bytes, ++seed), mode).done);
            EXPECT_EQ(first.text(), pattern(bytes, seed));
            const Transfer& send = party.send(0, 0, 1, pattern(bytes, ++seed), mode);
            EXPECT_EQ(send.done, mode == VELO_SEND_STANDARD && bytes <= 8192);
            EXPECT_EQ(party.receive(0, 0, 1, 700'000, true).parts, pattern(bytes, seed));
            EXPECT_TRUE(send.done);
        }
    }
    EXPECT_EQ(party.state(0).pool_used_bytes, 0U);
}

TEST_P(MessengerTest, a_cancelled_receive_matches_nothing_and_a_matched_one_is_not_cancelled) {
    MessengerParty party(config());
    Transfer& cancelled = party.receive(1, 0, 1);
    Transfer& kept = party.receive(1, 0, 1);
    EXPECT_TRUE(velo_message_cancel(party.at(1), &cancelled.receive));
    EXPECT_FALSE(velo_message_cancel(party.at(1), &cancelled.receive));
    party.send(0, 1, 1, "text");
    party.settle();
    EXPECT_FALSE(cancelled.done);
    EXPECT_EQ(kept.text(), "text");
    EXPECT_FALSE(velo_message_cancel(party.at(1), &kept.receive));
}

TEST_P(MessengerTest, a_probe_leaves_the_message_and_take_keeps_it_from_others) {
    MessengerParty party(config());
    velo_key key{};
    std::size_t bytes = 0;
    EXPECT_FALSE(velo_message_probe(party.at(1), {0, VELO_ANY_SOURCE, VELO_ANY_TAG}, &key, &bytes));
    for (std::size_t size : {10, 100'000}) {
        party.send(0, 1, -4, "internal");
        party.send(0, 1, 7, pattern(size, 1));
        party.send(0, 1, 7, pattern(size, 2));
        party.settle();
        EXPECT_TRUE(velo_message_probe(party.at(1), {0, VELO_ANY_SOURCE, VELO_ANY_TAG}, &key, &bytes));
        EXPECT_EQ(key.source, 0);
        EXPECT_EQ(key.tag, 7);
        EXPECT_EQ(bytes, size);
        velo_message* taken = velo_message_take(party.at(1), {0, 0, VELO_ANY_TAG}, &key, &bytes);
        ASSERT_NE(taken, nullptr);
        const Transfer& second = party.receive(1, 0, 7, 1 << 20);
        party.settle();
        EXPECT_EQ(second.text(), pattern(size, 2));
        Transfer& first = party.prepare(1 << 20);
        velo_message_receive_taken(party.at(1), taken, &first.receive);
        party.settle();
        EXPECT_EQ(first.text(), pattern(size, 1));
        EXPECT_EQ(party.receive(1, 0, -4).text(), "internal");
    }
}

TEST_P(MessengerTest, forgetting_a_context_drops_its_messages_and_no_others) {
    MessengerParty party(config());
    const Transfer& large = party.send(0, 1, 1, pattern(100'000, 1), VELO_SEND_STANDARD, 4);
    party.send(0, 1, -1, "small", VELO_SEND_STANDARD, 4);
    party.send(0, 1, 1, "other", VELO_SEND_STANDARD, 5);
    party.settle();
    velo_message_forget(party.at(1), 4);
    party.settle();
    EXPECT_TRUE(large.done) << "its sender may go on";
    velo_key key{};
    std::size_t bytes = 0;
    EXPECT_FALSE(velo_message_probe(party.at(1), {4, VELO_ANY_SOURCE, VELO_ANY_TAG}, &key, &bytes));
    EXPECT_FALSE(velo_message_probe(party.at(1), {4, 0, -1}, &key, &bytes));
    EXPECT_EQ(party.receive(1, 0, 1, 100, false, 5).text(), "other");
    EXPECT_EQ(party.state(1).pool_used_bytes, 0U);
}

// Programs of random sends and receives: each receive gets the oldest message of its source and tag.
TEST_P(MessengerTest, random_programs_match_as_mpi_says) {
    for (unsigned seed = 0; seed < 6; ++seed) {
        std::mt19937 random(seed);
        auto number = [&random](unsigned most) { return random() % most; };
        constexpr velo_messenger_config kTiny{2000, 16 * 1024, 0, 4, false};
        MessengerParty party(config(4, 8 + 8 * (seed % 3)), seed % 2 ? kTiny : MessengerParty::kRoomy);
        struct Expected {
            const Transfer* transfer;
            unsigned number;
        };
        // By receiver, source and tag: what was sent, and the receives, in order.
        std::map<std::array<unsigned, 3>, std::pair<std::vector<unsigned>, std::vector<const Transfer*>>>
            flows;
        std::vector<const Transfer*> sends;
        std::vector<std::size_t> sizes;
        for (unsigned step = 0; step < 1500; ++step) {
            const unsigned to = number(4), from = number(4), tag = number(3);
            auto& [sent, received] = flows[{to, from, tag}];
            if (number(2) == 0 || received.size() > sent.size() + 5) {
                sizes.push_back(kSizes[number(std::size(kSizes) - 1)]);
                sent.push_back(static_cast<unsigned>(sizes.size() - 1));
                auto mode = number(5) == 0 ? VELO_SEND_SYNCHRONOUS : VELO_SEND_STANDARD;
                sends.push_back(&party.send(from, to, static_cast<std::int32_t>(tag),
                                            pattern(sizes.back(), sent.back()), mode));
            } else {
                received.push_back(&party.receive(to, static_cast<std::int32_t>(from),
                                                  static_cast<std::int32_t>(tag), 1 << 16, number(3) == 0));
            }
            if (number(4) == 0) velo_progress(party.party[number(4)].engine);
        }
        for (auto& [flow, both] : flows) {
            auto& [sent, received] = both;
            while (received.size() < sent.size())
                received.push_back(&party.receive(flow[0], static_cast<std::int32_t>(flow[1]),
                                                  static_cast<std::int32_t>(flow[2])));
        }
        party.settle();
        for (const auto& [flow, both] : flows) {
            const auto& [sent, received] = both;
            for (std::size_t i = 0; i < sent.size(); ++i) {
                const Transfer& receive = *received[i];
                ASSERT_TRUE(receive.done);
                ASSERT_EQ(receive.receive.unpack ? receive.parts : receive.text(),
                          pattern(sizes[sent[i]], sent[i]))
                    << "seed " << seed << " message " << i << " of tag " << flow[2];
            }
            for (std::size_t i = sent.size(); i < received.size(); ++i) EXPECT_FALSE(received[i]->done);
        }
        EXPECT_TRUE(std::all_of(sends.begin(), sends.end(), [](const Transfer* send) { return send->done; }));
    }
}

// Liu and Panda's schemes; under the others it waits in its queue, and is over when it has left.
TEST_P(MessengerTest, a_short_message_without_a_credit_goes_by_rendezvous_under_the_schemes_that_say_so) {
    PartyConfig packets = config();
    packets.by_reference = "never";
    MessengerParty party(packets);
    constexpr unsigned kMessages = 100;
    std::vector<Transfer*> sends;
    for (unsigned i = 0; i < kMessages; ++i) sends.push_back(&party.send(0, 1, 1, pattern(8, i)));
    const bool by_rendezvous = GetParam().starts_with("mvapich");
    EXPECT_EQ(party.state(0).rendezvous > kMessages / 2, by_rendezvous);
    EXPECT_EQ(party.state(0).rendezvous == 0, !by_rendezvous);
    EXPECT_EQ(party.state(0).eager + party.state(0).rendezvous, kMessages);
    party.settle();
    EXPECT_EQ(sends.back()->done, !by_rendezvous);
    for (unsigned i = 0; i < kMessages; ++i) {
        const Transfer& receive = party.receive(1, 0, 1);
        party.settle();
        ASSERT_EQ(receive.text(), pattern(8, i)) << i;
    }
    EXPECT_TRUE(std::ranges::all_of(sends, [](const Transfer* send) { return send->done; }));
    EXPECT_EQ(party.state(1).pool_used_bytes + party.state(1).headers, 0U);
}

// Senders may have four rendezvous under way; the rest is held back.
constexpr velo_messenger_config kFewHeaders{8192, 0, 0, 4, false};
constexpr std::uint64_t kHeaders = 4;

TEST_P(MessengerTest, headers_of_unmatched_messages_stay_within_the_share_of_each_sender) {
    MessengerParty party(config(4), kFewHeaders);
    std::vector<Transfer*> sends;
    for (unsigned i = 0; i < 1000; ++i) {
        for (std::size_t from : {0, 2, 3}) sends.push_back(&party.send(from, 1, 1, pattern(100, i)));
        if (i % 50 == 0) party.settle();
    }
    party.settle();
    EXPECT_EQ(party.state(1).headers_most, 3 * kHeaders);
    EXPECT_EQ(party.state(0).held, 1000 - kHeaders);
    for (unsigned i = 0; i < 1000; ++i) {
        for (std::int32_t from : {0, 2, 3}) {
            const Transfer& receive = party.receive(1, from, 1);
            if (!receive.done) party.settle();
            ASSERT_EQ(receive.text(), pattern(100, i));
        }
    }
    party.settle();
    EXPECT_TRUE(std::all_of(sends.begin(), sends.end(), [](const Transfer* send) { return send->done; }));
    EXPECT_EQ(party.state(1).headers_most, 3 * kHeaders);
    EXPECT_EQ(party.state(0).held, 0U);
}

TEST_P(MessengerTest, a_receive_gets_a_message_that_is_held_back_behind_others) {
    constexpr unsigned kMessages = 500;
    for (bool posted_first : {false, true}) {
        MessengerParty party(config(), kFewHeaders);
        std::vector<const Transfer*> receives(kMessages);
        auto receive = [&](unsigned i) { receives[i] = &party.receive(1, 0, static_cast<std::int32_t>(i)); };
        if (posted_first)
            for (unsigned i = kMessages; i-- > kHeaders;) receive(i);
        for (unsigned i = 0; i < kMessages; ++i)
            party.send(0, 1, static_cast<std::int32_t>(i), pattern(i * 37 % 9000, i));
        party.settle();
        for (unsigned i = kMessages; i-- > 0;) {
            if (receives[i] == nullptr) receive(i);
            party.settle();
            ASSERT_EQ(receives[i]->text(), pattern(i * 37 % 9000, i)) << i;
        }
        EXPECT_EQ(party.state(1).headers, 0U);
    }
}

TEST_P(MessengerTest, a_cancelled_receive_leaves_its_turn_to_the_next_one) {
    MessengerParty party(config(), {8192, 0, 4, 0, false});
    for (int i = 0; i < 5; ++i) party.send(1, 0, 9, "fills the headers");
    party.settle();
    ASSERT_GT(party.state(1).held, 0U);
    Transfer& first = party.receive(0, 1, 5);
    const Transfer& next = party.receive(0, 1, 5);
    party.settle();
    ASSERT_TRUE(velo_message_cancel(party.at(0), &first.receive));
    party.send(1, 0, 5, "for the next one");
    party.settle();
    EXPECT_TRUE(next.done);
    EXPECT_EQ(next.text(), "for the next one");
}

// The receive that has asked gets a message of its own process: the next one has to ask.
TEST_P(MessengerTest, a_message_to_oneself_makes_the_next_receive_ask_for_what_is_held_back) {
    for (bool third : {false, true}) {
        MessengerParty party(config(), kFewHeaders);
        for (unsigned i = 0; i < kHeaders + 1; ++i)
            party.send(1, 0, 1, pattern(9, i), VELO_SEND_STANDARD, 1);  // the last one is held back
        party.settle();
        const Transfer& first = party.receive(0, VELO_ANY_SOURCE, 5);
        const Transfer& second = party.receive(0, VELO_ANY_SOURCE, 5);
        const Transfer* from_1 = third ? &party.receive(0, 1, 5) : nullptr;
        party.settle();
        party.send(0, 0, 5, "mine");
        EXPECT_EQ(first.text(), "mine");
        party.send(1, 0, 5, "held back");
        if (third) party.send(1, 0, 5, "behind it");
        for (int i = 0; i < 100; ++i) party.step();  // does not settle if offers are refused for ever
        ASSERT_TRUE(second.done);
        EXPECT_EQ(second.text(), "held back");
        if (!third) continue;
        ASSERT_TRUE(from_1->done);
        EXPECT_EQ(from_1->text(), "behind it");
    }
}

TEST_P(MessengerTest, a_probe_finds_what_is_held_back_and_take_gets_it) {
    MessengerParty party(config(), kFewHeaders);
    for (unsigned i = 0; i < 20; ++i) party.send(0, 1, static_cast<std::int32_t>(i % 10), pattern(50 + i, i));
    party.settle();
    velo_key key{};
    std::size_t bytes = 0;
    EXPECT_FALSE(velo_message_probe(party.at(1), {0, 0, 99}, &key, &bytes));
    EXPECT_FALSE(velo_message_probe(party.at(1), {0, VELO_ANY_SOURCE, 7}, &key, &bytes)) << "asks";
    party.settle();
    ASSERT_TRUE(velo_message_probe(party.at(1), {0, VELO_ANY_SOURCE, 7}, &key, &bytes));
    EXPECT_EQ(key.tag, 7);
    EXPECT_EQ(bytes, 57U);
    EXPECT_EQ((party.receive(1, 0, 7), party.settle(), party.receive(1, 0, 7)).text(), "");
    party.settle();
    EXPECT_FALSE(velo_message_probe(party.at(1), {0, VELO_ANY_SOURCE, 7}, &key, &bytes)) << "all are gone";
    party.settle();
    EXPECT_FALSE(velo_message_probe(party.at(1), {0, VELO_ANY_SOURCE, 7}, &key, &bytes));
    EXPECT_FALSE(velo_message_probe(party.at(1), {0, 0, 8}, &key, &bytes));
    party.settle();
    EXPECT_TRUE(velo_message_probe(party.at(1), {0, 0, 8}, &key, &bytes));
}

TEST_P(MessengerTest, a_probe_leaves_to_a_receive_what_it_will_get) {
    MessengerParty party(config(), kFewHeaders);
    for (unsigned i = 0; i < kHeaders; ++i)
        party.send(0, 1, 1, pattern(9, i), VELO_SEND_STANDARD, 1);  // their headers stay
    for (std::int32_t i = 0; i < 3; ++i) party.send(0, 1, 5 + i, pattern(50 + i, i));
    velo_key key{};
    std::size_t bytes = 0;
    auto probe = [&](std::int32_t tag) {
        velo_message_probe(party.at(1), {0, 0, tag}, &key, &bytes);
        party.settle();
        return velo_message_probe(party.at(1), {0, 0, tag}, &key, &bytes);
    };
    party.settle();
    ASSERT_TRUE(probe(6));
    // The second receive has not asked for anything yet: the first one has the same pattern.
    const Transfer& first = party.receive(1, 0, VELO_ANY_TAG);
    const Transfer& second = party.receive(1, 0, VELO_ANY_TAG);
    EXPECT_FALSE(velo_message_probe(party.at(1), {0, 0, 6}, &key, &bytes));
    EXPECT_EQ(velo_message_take(party.at(1), {0, 0, 6}, &key, &bytes), nullptr);
    party.settle();
    EXPECT_EQ(first.text(), pattern(50, 0));
    EXPECT_EQ(second.text(), pattern(51, 1));
    EXPECT_FALSE(probe(6));
    ASSERT_TRUE(probe(VELO_ANY_TAG));
    EXPECT_EQ(bytes, 52U);
}

TEST_P(MessengerTest, probes_for_more_patterns_than_are_remembered_find_all) {
    MessengerParty party(config(), kFewHeaders);
    constexpr std::int32_t kPatterns = 200;
    for (unsigned i = 0; i < kHeaders; ++i) party.send(0, 1, 1, pattern(9, i), VELO_SEND_STANDARD, 1);
    for (std::int32_t tag = 0; tag < kPatterns; ++tag) party.send(0, 1, tag, pattern(30, tag));
    party.settle();
    std::int32_t got = 0;
    for (int turn = 0; turn < 100 && got < kPatterns; ++turn) {
        for (std::int32_t tag = 0; tag < kPatterns; ++tag) {
            velo_key key{};
            std::size_t bytes = 0;
            if (velo_message_probe(party.at(1), {0, 0, tag}, &key, &bytes)) {
                const Transfer& receive = party.receive(1, 0, tag);
                party.settle();
                ASSERT_EQ(receive.text(), pattern(30, tag));
                ++got;
            }
            party.step();
        }
    }
    EXPECT_EQ(got, kPatterns);
}

// Whatever has been matched with what: as MPI's rules on order allow.
class Order {
 public:
    struct Sent {
        std::size_t from;
        std::int32_t tag;
        std::string data;
        bool matched = false;
    };
    struct Receive {
        velo_key pattern;
        const Transfer* transfer;
    };
    std::vector<Sent> sent;
    std::vector<Receive> receives;  // of one process

    void check(unsigned seed) {
        std::vector<std::size_t> got(receives.size(), kNone);
        for (std::size_t r = 0; r < receives.size(); ++r) {
            const Receive& receive = receives[r];
            const std::size_t m = receive.transfer->done ? message_of(*receive.transfer) : kNone;
            for (std::size_t earlier = 0; earlier < sent.size(); ++earlier) {
                const Sent& other = sent[earlier];
                if (m == kNone) {
                    ASSERT_TRUE(taken(earlier) || !matches(receive, other))
                        << "seed " << seed << " receive " << r << " has missed message " << earlier;
                } else if (earlier < m && other.from == sent[m].from) {
                    ASSERT_TRUE(other.matched || !matches(receive, other))
                        << "seed " << seed << " message " << m << " has overtaken " << earlier;
                }
            }
            if (m == kNone) continue;
            ASSERT_TRUE(matches(receive, sent[m]) && !sent[m].matched) << "seed " << seed;
            for (std::size_t older = 0; older < r; ++older) {
                if (!matches(receives[older], sent[m])) continue;
                ASSERT_TRUE(got[older] != kNone && (sent[got[older]].from != sent[m].from || got[older] < m))
                    << "seed " << seed << " receive " << r << " has overtaken " << older;
            }
            got[r] = m;
            sent[m].matched = true;
        }
    }

 private:
    static constexpr std::size_t kNone = SIZE_MAX;

    static bool matches(const Receive& receive, const Sent& message) {
        return (receive.pattern.source == VELO_ANY_SOURCE ||
                receive.pattern.source == static_cast<std::int32_t>(message.from)) &&
               (receive.pattern.tag == VELO_ANY_TAG || receive.pattern.tag == message.tag);
    }
    bool taken(std::size_t message) const {
        return std::any_of(receives.begin(), receives.end(), [&](const Receive& receive) {
            return receive.transfer->done && receive.transfer->text() == sent[message].data;
        });
    }
    std::size_t message_of(const Transfer& transfer) const {
        for (std::size_t i = 0; i < sent.size(); ++i)
            if (!sent[i].matched && sent[i].data == transfer.text()) return i;
        ADD_FAILURE() << "a message that was not sent, or twice";
        return kNone;
    }
};

TEST_P(MessengerTest, random_wildcards_keep_mpis_order_over_messages_that_are_held_back) {
    for (unsigned seed = 0; seed < 12; ++seed) {
        std::mt19937 random(seed);
        auto number = [&random](unsigned most) { return random() % most; };
        // Every message goes by rendezvous, or those that find room in the pool do not.
        MessengerParty party(config(4, 8), {8192, seed % 2 * 8192, 4, 0, false});
        Order order;
        std::vector<Transfer*> waiting;
        for (unsigned step = 0; step < 400; ++step) {
            const std::int32_t tag = static_cast<std::int32_t>(number(4));
            // Phases in which more is sent than received, and the other way round.
            if (number(10) < (step / 100 % 2 ? 3U : 8U)) {
                const std::size_t from = 1 + number(3);
                std::string data = pattern(20 + number(3) * 300, step) + std::to_string(step);
                order.sent.push_back({from, tag, data});
                party.send(from, 0, tag, data);
            } else {
                const velo_key wanted{0,
                                      number(2) ? VELO_ANY_SOURCE : 1 + static_cast<std::int32_t>(number(3)),
                                      number(2) ? VELO_ANY_TAG : tag};
                Transfer& receive = party.receive(0, wanted.source, wanted.tag);
                if (number(8) == 0 && velo_message_cancel(party.at(0), &receive.receive)) continue;
                order.receives.push_back({wanted, &receive});
            }
            for (unsigned polls = number(3); polls-- > 0;) velo_progress(party.party[number(4)].engine);
        }
        party.settle();
        order.check(seed);
        if (HasFatalFailure()) return;
    }
}

TEST(MessengerErrors, an_eager_limit_beyond_the_engines_messages_names_the_parameter) {
    Party party(PartyConfig{});
    velo_messenger_config config{64 * 1024, 1 << 20, 1 << 20, 4, false};
    velo_messenger* messenger = nullptr;
    char error[512] = "";
    EXPECT_EQ(velo_messenger_open(party[0].engine, &config, &messenger, error, sizeof error),
              VELO_ERR_PARAMETER);
    EXPECT_EQ(messenger, nullptr);
    EXPECT_NE(std::string(error).find("btl_velo_eager_limit"), std::string::npos) << error;
}

}  // namespace
}  // namespace velo::test
