// By reference: a message that would take more packets than there are credits for takes one.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "engine/peers/peer.h"
#include "engine_party.h"

namespace velo::test {
namespace {

constexpr std::size_t kSmallest = 2304, kMedium = 8448;  // bytes of a chunk of that size

PartyConfig config_of(const char* policy, std::size_t outbox = std::size_t{1} << 18) {
    PartyConfig config;
    config.flow_control = policy;
    config.outbox = outbox;
    config.lazy_slots = 12;
    config.preposted_buffers = 6;
    return config;
}

// Under a policy on demand there are no credits before, and no connection back.
void meet_first(Party& party) {
    for (std::size_t from = 0; from < party.size(); ++from)
        for (std::size_t to = 0; to < party.size(); ++to)
            if (from != to) party.send(from, to, 1, "first contact");
    party.settle();
    for (std::size_t rank = 0; rank < party.size(); ++rank) party[rank].received.clear();
}

// Alone or in a batch.
std::uint64_t referred(Member& member) {
    return counter(member, "messages_by_reference") + counter(member, "batched_messages");
}

class ReferringTest : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(EveryPolicy, ReferringTest, ::testing::ValuesIn(policies()),
                         [](const auto& info) { return info.param; });

// Under none the mailbox has no room for all of them.
TEST_P(ReferringTest, a_long_message_takes_one_packet_where_it_has_no_credits_for_all) {
    Party party(config_of(GetParam().c_str()));
    meet_first(party);
    const std::uint64_t packets = counter(party[0], "data_packets");
    EXPECT_EQ(party.send(0, 1, 1, pattern(8000, 1)), VELO_OK);
    EXPECT_EQ(referred(party[0]), 1U);
    EXPECT_EQ(counter(party[0], "data_packets"), packets + 1);
    party.settle();
    ASSERT_EQ(party[1].received.size(), 1U);
    EXPECT_TRUE(party[1].received[0].data == pattern(8000, 1));
}

TEST_P(ReferringTest, never_and_always_are_obeyed) {
    for (const bool always : {false, true}) {
        PartyConfig config = config_of(GetParam().c_str());
        config.by_reference = always ? "always" : "never";
        config.slots_per_peer = 64;
        Party party(config);
        meet_first(party);
        for (const std::size_t bytes : {0, 40, 56, 57, 300, 20'000}) party.send(0, 1, 1, pattern(bytes, 1));
        party.settle();
        if (always)
            EXPECT_GE(referred(party[0]), 3U);
        else
            EXPECT_EQ(referred(party[0]), 0U);
        EXPECT_EQ(party[1].received.size(), 6U);
    }
}

// Chunks come back by the reader's stores alone.
TEST_P(ReferringTest, what_has_been_read_is_used_again) {
    PartyConfig config = config_of(GetParam().c_str());
    config.by_reference = "always";
    Party party(config);
    meet_first(party);
    for (unsigned i = 0; i < 1000; ++i) {
        party.send(0, 1, 1, pattern(100 + i * 31 % 30'000, i));
        party.settle();
    }
    EXPECT_EQ(referred(party[0]), 1000U);
    EXPECT_EQ(counter(party[0], "outbox_full"), 0U);
    EXPECT_LE(counter(party[0], "outbox_high_water"), std::uint64_t{1} << 18);
    ASSERT_EQ(party[1].received.size(), 1000U);
    for (unsigned i = 0; i < 1000; ++i)
        ASSERT_TRUE(party[1].received[i].data == pattern(100 + i * 31 % 30'000, i)) << i;
}

// 0, 1 and 2 chunks: nobody waits for one.
// The counts of what was sent by reference and what was read of it are compared, and nothing else.
TEST_P(ReferringTest, behind_the_last_number_the_counts_begin_again) {
    PartyConfig config = config_of(GetParam().c_str());
    config.by_reference = "always";
    Party party(config);
    meet_first(party);
    for (unsigned i = 0; i < 8; ++i) party.send(i % 2, 1 - i % 2, 1, pattern(8000, i));
    party.settle();
    constexpr std::uint32_t kEnd = 0U - 20;
    for (const std::size_t me : {0, 1}) {
        velo_peer& peer = *party[me].peers[1 - me];
        peer.sent_references.sent += kEnd;
        peer.sent_references.read += kEnd;
        peer.sent_references.tell(kEnd + static_cast<std::uint32_t>(peer.sent_references.read - kEnd));
        peer.references_read += kEnd;
        segment_of(party[me].engine).references_read(peer.index) += kEnd;
    }
    const std::size_t before = party[0].received.size();
    for (unsigned i = 0; i < 200; ++i) {
        party.send(i % 2, 1 - i % 2, 1, pattern(8000, i));
        if (i % 5 == 4) party.settle();
    }
    party.settle();
    EXPECT_GT(party[0].peers[1]->sent_references.sent, UINT32_MAX) << "the end was not reached";
    for (const std::size_t me : {0, 1}) {
        ASSERT_EQ(party[me].received.size(), before + 100);
        for (unsigned i = 0; i < 100; ++i)
            EXPECT_TRUE(party[me].received[before + i].data == pattern(8000, 2 * i + 1 - me)) << i;
    }
}

// It sends nothing by reference itself.
TEST_P(ReferringTest, who_tells_nothing_has_not_read_all_after_as_many_as_can_be_counted) {
    PartyConfig config = config_of(GetParam().c_str());
    config.by_reference = "always";
    Party party(config);
    party.send(0, 1, 1, pattern(2000, 1));
    party.settle();
    const std::size_t before = party[1].received.size();
    party[0].peers[1]->sent_references.sent = party[0].peers[1]->sent_references.read = UINT32_MAX;
    party[1].peers[0]->references_read = UINT32_MAX;
    segment_of(party[1].engine).references_read(0) = UINT32_MAX;
    for (unsigned i = 0; i < 2; ++i) party.send(0, 1, 1, pattern(2000, i));
    party.settle();
    ASSERT_EQ(party[1].received.size(), before + 2);
    for (unsigned i = 0; i < 2; ++i) EXPECT_TRUE(party[1].received[before + i].data == pattern(2000, i)) << i;
}

TEST_P(ReferringTest, a_full_outbox_and_none_at_all_only_change_the_way) {
    for (const std::size_t chunks : {0, 1, 2}) {
        for (const char* way : {"auto", "always"}) {
            PartyConfig config = config_of(GetParam().c_str(), chunks * kSmallest);
            config.size = 3;
            config.by_reference = way;
            Party party(config);
            const auto contents = [](std::size_t from, unsigned index) {
                return pattern(index * 371 % 9000, static_cast<unsigned>(1000 * from) + index);
            };
            for (unsigned index = 0; index < 50; ++index)
                for (std::size_t from : {0U, 1U, 2U})
                    for (std::size_t to : {0U, 1U, 2U})
                        if (from != to)
                            party.send(from, to, static_cast<std::uint8_t>(from), contents(from, index));
            party.settle();
            EXPECT_EQ(party.queued(), party.completed());
            for (std::size_t to = 0; to < 3; ++to) {
                ASSERT_EQ(party[to].received.size(), 100U);
                unsigned next[3] = {};
                for (const Received& message : party[to].received)
                    ASSERT_TRUE(message.data == contents(message.tag, next[message.tag]++));
                EXPECT_EQ(counter(party[to], "messages_by_reference") > 0, chunks > 0);
                EXPECT_LE(counter(party[to], "outbox_high_water"), chunks * kSmallest);
            }
        }
    }
}

// What is mapped already stays, and a little more may be: as under ulimit -v.
class AddressSpaceLimit {
 public:
    explicit AddressSpaceLimit(std::size_t further_bytes) {
        std::size_t pages = 0;
        std::ifstream("/proc/self/statm") >> pages;
        getrlimit(RLIMIT_AS, &before_);
        const rlimit limit{pages * static_cast<std::size_t>(getpagesize()) + further_bytes, before_.rlim_max};
        EXPECT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
    }
    AddressSpaceLimit(const AddressSpaceLimit&) = delete;
    ~AddressSpaceLimit() { setrlimit(RLIMIT_AS, &before_); }

 private:
    rlimit before_{};
};

TEST_P(ReferringTest, an_outbox_that_a_peer_cannot_map_is_not_used_towards_it) {
    PartyConfig config = config_of(GetParam().c_str(), std::size_t{16} << 20);
    config.size = 3;
    Party party(config, false);
    {
        const AddressSpaceLimit limit(std::size_t{8} << 20);
        for (std::size_t from : {0U, 1U, 2U})
            for (std::size_t to : {0U, 1U, 2U})
                if (from != to) party.connect(from, to);
        meet_first(party);
    }
    for (unsigned i = 0; i < 5; ++i) {
        party.send(0, 1, 1, pattern(8000, i));
        party.send(1, 0, 1, pattern(30'000, i));
    }
    party.settle();
    for (std::size_t to : {0U, 1U}) {
        EXPECT_EQ(counter(party[to], "messages_by_reference"), 0U);
        ASSERT_EQ(party[to].received.size(), 5U);
        for (unsigned i = 0; i < 5; ++i)
            ASSERT_TRUE(party[to].received[i].data == pattern(to == 0 ? 30'000 : 8000, i)) << i;
        EXPECT_EQ(std::count_if(party[to].log.begin(), party[to].log.end(),
                                [](const std::string& line) {
                                    return line.find("no address space for the outbox") != std::string::npos;
                                }),
                  1);
    }
}

// Small ones, for which alone no REF would be worth while.
TEST_P(ReferringTest, messages_that_have_waited_share_packets) {
    constexpr unsigned kMessages = 200;
    PartyConfig config = config_of(GetParam().c_str());
    for (const bool never : {true, false}) {
        config.by_reference = never ? "never" : "auto";
        Party party(config);
        meet_first(party);
        const std::uint64_t before = counter(party[0], "data_packets");
        for (unsigned i = 0; i < kMessages; ++i)
            party.send(0, 1, static_cast<std::uint8_t>(i), pattern(i % 50, i));
        party.settle();
        ASSERT_EQ(party[1].received.size(), kMessages);
        for (unsigned i = 0; i < kMessages; ++i) {
            EXPECT_EQ(party[1].received[i].tag, static_cast<std::uint8_t>(i));
            ASSERT_TRUE(party[1].received[i].data == pattern(i % 50, i)) << i;
        }
        EXPECT_EQ(party.queued(), party.completed());
        const std::uint64_t packets = counter(party[0], "data_packets") - before;
        if (never)
            EXPECT_GE(packets, kMessages);
        else
            EXPECT_LT(packets, kMessages / 2);
    }
}

// However often it asks: at once, when it is queued, at each look and each credit.
TEST_P(ReferringTest, a_message_that_finds_no_chunk_is_counted_once) {
    PartyConfig config = config_of(GetParam().c_str(), kSmallest);  // a chunk
    config.by_reference = "always";
    config.initial_buffers = 6;
    Party party(config);
    meet_first(party);
    const std::string text = pattern(2000, 1);
    party.send(0, 1, 1, text);
    for (std::uint64_t counted : {1U, 2U}) {
        EXPECT_EQ(velo_send_now(party[0].peers[1], 1, text.data(), 0, text.data(), text.size()),
                  VELO_WOULD_BLOCK);
        party.send(0, 1, 1, text);
        for (int look = 0; look < 200; ++look) velo_progress(party[0].engine);
        EXPECT_EQ(counter(party[0], "outbox_full"), counted);
        party.settle();
        EXPECT_EQ(counter(party[0], "outbox_full"), counted);
        if (counted == 1) party.send(0, 1, 1, text);
    }
    EXPECT_EQ(party[1].received.size(), 4U);
}

TEST(Referring, a_message_of_which_a_part_has_left_in_packets_goes_on_alone) {
    PartyConfig config = config_of("static", kSmallest);  // a chunk
    config.slots_per_peer = 8;
    Party party(config);
    const std::string messages[] = {pattern(2000, 1), pattern(1000, 2), pattern(50, 3), pattern(40, 4)};
    for (const std::string& message : messages) party.send(0, 1, 1, message);
    EXPECT_EQ(counter(party[0], "messages_by_reference"), 1U);
    EXPECT_EQ(counter(party[0], "data_packets"), 6U);  // a REF, and what the credits allow of the second
    party.settle();
    EXPECT_TRUE(party[1].fatal.empty());
    ASSERT_EQ(party[1].received.size(), 4U);
    for (std::size_t i = 0; i < 4; ++i) EXPECT_TRUE(party[1].received[i].data == messages[i]) << i;
}

TEST(Referring, one_that_reads_holds_eight_small_chunks_or_four_medium_at_most) {
    PartyConfig config = config_of("static");
    config.by_reference = "always";
    Party party(config);
    const auto high_water_after = [&party](std::size_t bytes) {
        party.send(0, 1, 1, pattern(bytes, 1));
        party.settle();
        return counter(party[0], "outbox_high_water");
    };
    for (std::size_t i = 0; i < 100; ++i) EXPECT_EQ(high_water_after(1000), std::min(i + 1, 8UL) * kSmallest);
    Party other(config);
    for (std::size_t i = 0; i < 100; ++i) {
        other.send(0, 1, 1, pattern(8000, 1));
        other.settle();
        EXPECT_EQ(counter(other[0], "outbox_high_water"), std::min(i + 1, 4UL) * kMedium);
    }
}

TEST(Referring, what_is_answered_stays_in_one_chunk) {
    PartyConfig config = config_of("static");
    config.slots_per_peer = 1000;
    Party party(config);
    for (int i = 0; i < 100; ++i)
        for (const std::size_t from : {0U, 1U}) {
            party.send(from, 1 - from, 1, pattern(1000, i));
            party.settle();
            EXPECT_TRUE(party[1 - from].received.back().data == pattern(1000, i)) << i;
        }
    for (const std::size_t rank : {0U, 1U}) {
        EXPECT_EQ(counter(party[rank], "messages_by_reference"), 100U);
        EXPECT_LE(counter(party[rank], "outbox_high_water"), 2 * kSmallest);  // two until the first is told
    }
}

TEST(Referring, who_does_not_read_leaves_half_of_the_outbox_to_the_others) {
    PartyConfig config = config_of("static");
    config.size = 3;
    config.slots_per_peer = 1000;  // so that a burst goes in no batch
    config.by_reference = "always";
    Party party(config);
    for (unsigned i = 0; i < 62; ++i) party.send(0, 1, 1, pattern(1000, i));  // rank 1 does not look
    const std::uint64_t held = counter(party[0], "outbox_high_water");
    EXPECT_LE(held, (std::uint64_t{1} << 17) + 33'024);
    EXPECT_GT(held, std::uint64_t{1} << 16);
    EXPECT_GT(counter(party[0], "outbox_full"), 0U);
    const std::uint64_t before = counter(party[0], "messages_by_reference");
    party.send(0, 2, 1, pattern(1000, 1));
    EXPECT_EQ(counter(party[0], "messages_by_reference"), before + 1);
    party.settle();
    EXPECT_EQ(party[1].received.size(), 62U);
    EXPECT_EQ(party[2].received.size(), 1U);
}

TEST(Referring, small_messages_and_those_with_credits_for_twice_as_much_go_in_packets) {
    PartyConfig config = config_of("static");
    config.slots_per_peer = 16;  // 14 for data
    Party party(config);
    party.send(0, 1, 1, pattern(7 * 64 - 8, 1));
    EXPECT_EQ(counter(party[0], "messages_by_reference"), 0U);
    party.send(0, 1, 1, pattern(7 * 64 - 8, 1));  // 7 are left
    EXPECT_EQ(referred(party[0]), 1U);
    party.settle();
}

TEST(Referring, long_messages_go_by_reference_from_a_size_on_that_the_table_says) {
    for (const std::size_t from : {std::size_t{57}, std::size_t{512}, std::size_t{4000}}) {
        PartyConfig config = config_of("static");
        config.slots_per_peer = 1000;
        const std::string routes = "reference " + std::to_string(from);
        config.routes = routes.c_str();
        Party party(config);
        for (const std::size_t bytes : {from - 1, from, from + 1}) party.send(0, 1, 1, pattern(bytes, 1));
        EXPECT_EQ(counter(party[0], "messages_by_reference"), 2U) << from;
        party.settle();
        EXPECT_EQ(party[1].received.size(), 3U);
    }
}

// The library's copy would hold its sender up. A short answer is one, too.
TEST(Referring, what_streams_is_handed_up_in_a_copy_until_something_is_sent_back) {
    PartyConfig config = config_of("static");
    config.slots_per_peer = 1000;
    Party party(config);
    std::vector<const void*> places;
    const auto send = [&](int count) {
        places.clear();
        for (int message = 0; message < count; ++message) {
            ASSERT_EQ(party.send(0, 1, 1, pattern(5000, message)), VELO_OK);
            party.settle();
            EXPECT_TRUE(party[1].received.back().data == pattern(5000, message)) << message;
            places.push_back(party[1].received.back().place);
        }
    };
    send(20);
    const void* const copy = places.back();
    EXPECT_EQ(std::count(places.begin(), places.begin() + 8, copy), 0);
    EXPECT_EQ(std::count(places.end() - 12, places.end(), copy), 12);
    for (const std::size_t bytes : {5000, 8}) {
        ASSERT_EQ(party.send(1, 0, 1, pattern(bytes, 1)), VELO_OK);
        party.settle();
        send(7);
        EXPECT_EQ(std::count(places.begin(), places.end(), copy), 0) << bytes;
    }
}

// Stored past the caches or not, and each kind of chunk behind others that have not been read.
TEST(Referring, whatever_the_distance_the_data_arrive) {
    for (const bool far : {false, true}) {
        PartyConfig config = config_of("static");
        config.slots_per_peer = 10'000;  // credits decide nothing
        config.routes = "near reference 9001 far reference 600";
        Party party(config);
        if (far) move_far(party[0], 1);
        unsigned sent = 0;
        for (const std::size_t bytes : {600, 3000, 8200, 9000}) {
            for (unsigned i = 0; i < 12; ++i) ASSERT_EQ(party.send(0, 1, 1, pattern(bytes, ++sent)), VELO_OK);
            party.settle();
            ASSERT_EQ(party[1].received.size(), 12U);
            for (unsigned i = 0; i < 12; ++i)
                ASSERT_TRUE(party[1].received[i].data == pattern(bytes, sent - 11 + i)) << bytes << far;
            party[1].received.clear();
        }
        EXPECT_EQ(counter(party[0], "messages_by_reference"), far ? sent : 0U);
    }
}

TEST(Referring, behind_eight_that_have_not_been_read_the_next_lies_in_memory_that_goes_round) {
    PartyConfig config = config_of("static");
    config.slots_per_peer = 1000;
    Party party(config);
    for (unsigned i = 0; i < 40; ++i) party.send(0, 1, 1, pattern(2048, i));
    EXPECT_EQ(counter(party[0], "messages_by_reference"), 40U);
    EXPECT_EQ(counter(party[0], "outbox_high_water"), 8 * kSmallest);
    party.send(0, 1, 1, pattern(2047, 40));
    EXPECT_EQ(counter(party[0], "outbox_high_water"), 9 * kSmallest) << "too short";
    party.settle();
    ASSERT_EQ(party[1].received.size(), 41U);
    for (unsigned i = 0; i < 41; ++i)
        ASSERT_TRUE(party[1].received[i].data == pattern(i < 40 ? 2048 : 2047, i)) << i;
}

// Each has read what came before the last one when the next leaves.
TEST(Referring, what_two_send_each_other_at_the_same_time_stays_in_a_few_chunks) {
    PartyConfig config = config_of("static");
    config.by_reference = "always";
    Party party(config);
    std::set<const void*> places;
    for (int round = 0; round < 200; ++round) {
        for (const std::size_t from : {0U, 1U}) party.send(from, 1 - from, 1, pattern(2048, round));
        party.settle();
        ASSERT_TRUE(party[1].received.back().data == pattern(2048, round)) << round;
        places.insert(party[1].received.back().place);
    }
    EXPECT_LE(places.size(), 8U);
}

// One is stored while the one before is read: a REF for each 4 KiB of what an upper layer would send by one.
TEST(Referring, the_data_of_a_transfer_leaves_in_pieces) {
    PartyConfig config = config_of("static");
    config.slots_per_peer = 1000;
    config.single_copy = "copy";
    Party party(config);
    const std::string data = pattern(20'000, 1);
    std::string there(data.size(), 'x');
    Outcome put;
    ASSERT_GE(velo_put(party[0].engine, party[0].peers[1], data.data(), address_of(there.data()), data.size(),
                       Outcome::done, &put),
              VELO_OK);
    party.settle();
    EXPECT_EQ(put.calls, 1);
    EXPECT_EQ(there, data);
    EXPECT_EQ(counter(party[0], "data_packets"), 5U);
    EXPECT_EQ(counter(party[0], "messages_by_reference"), 1U);
}

TEST(Referring, messages_of_the_path_without_credits_that_fill_its_ring_go_by_reference) {
    PartyConfig config = config_of("dynamic");
    config.ranks_per_node = 2;
    Party party(config);
    party.send(0, 1, 1, pattern(500, 1));
    EXPECT_EQ(counter(party[0], "messages_by_reference"), 0U);
    party.send(0, 1, 1, pattern(4000, 1));
    EXPECT_EQ(referred(party[0]), 1U);
    party.settle();
    ASSERT_EQ(party[1].received.size(), 2U);
    EXPECT_TRUE(party[1].received[1].data == pattern(4000, 1));
}

TEST(Referring, a_directory_without_room_costs_the_outbox_and_nothing_else) {
    PartyConfig config = config_of("static", std::size_t{1} << 30);
    config.slots_per_peer = 8;
    Party party(config);  // two outboxes of 1 GiB: more than /dev/shm has here, or not
    party.send(0, 1, 1, pattern(8000, 1));
    party.settle();
    ASSERT_EQ(party[1].received.size(), 1U);
}

}  // namespace
}  // namespace velo::test
