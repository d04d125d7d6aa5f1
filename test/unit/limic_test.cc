// The LiMIC-like path: messages of one virtual node take no credits, are bounded by a ring of their own, and
// mix with messages to other nodes.
#include <gtest/gtest.h>

#include "engine_party.h"

namespace velo::test {
namespace {

class LimicTest : public ::testing::TestWithParam<std::string> {
 protected:
    PartyConfig config(std::size_t size, std::size_t ranks_per_node) const {
        PartyConfig config;
        config.size = size;
        config.flow_control = GetParam().c_str();
        config.ranks_per_node = ranks_per_node;
        return config;
    }
};

INSTANTIATE_TEST_SUITE_P(Policies, LimicTest, ::testing::ValuesIn(policies()),
                         [](const auto& info) { return info.param; });

std::string dump_of(Member& member, std::size_t peer) {
    member.log.clear();
    velo_dump(member.engine, member.peers[peer], 0);
    return member.log.back();
}

TEST_P(LimicTest, local_messages_leave_the_credits_of_the_mailbox_alone) {
    Party party(config(4, 2));
    std::string before = dump_of(party[0], 2);
    for (unsigned i = 0; i < 40; ++i) party.send(0, 1, 1, pattern(20, i));
    EXPECT_EQ(party.queued(), 0U)
        << "40 packets fit into the ring of 64 slots, but not into 8 slots with credits";
    EXPECT_EQ(dump_of(party[0], 2), before);
    party.settle();
    ASSERT_EQ(party[1].received.size(), 40U);
    for (unsigned i = 0; i < 40; ++i) EXPECT_EQ(party[1].received[i].data, pattern(20, i));
}

TEST_P(LimicTest, a_flood_of_local_senders_is_bounded_by_the_ring_and_complete) {
    Party party(config(4, 4));
    for (unsigned i = 0; i < 200; ++i)
        for (std::size_t from = 1; from < 4; ++from) party.send(from, 0, 1, pattern(100 + from, i));
    EXPECT_GE(party.queued(), 3U * 200 - 64);
    party.settle();
    ASSERT_EQ(party[0].received.size(), 600U);
    unsigned next[4] = {};
    for (const Received& message : party[0].received) {
        std::size_t from = message.data.size() - 100;
        EXPECT_EQ(message.data, pattern(100 + from, next[from]++));
    }
    EXPECT_EQ(party.queued(), party.completed());
}

TEST_P(LimicTest, local_and_remote_messages_of_all_sizes_mix) {
    Party party(config(6, 3));
    unsigned seed = 5;
    std::size_t expected[6] = {};
    for (int round = 0; round < 600; ++round) {
        std::size_t from = seed % 6, to = (from + 1 + seed / 7 % 5) % 6;
        party.send(from, to, 1, pattern(seed % 9000, seed));
        ++expected[to];
        if (seed % 3 == 0) velo_progress(party[seed / 11 % 6].engine);
        seed = (seed * 1103515245 + 12345) & 0x7fffffff;
    }
    party.settle();
    for (std::size_t rank = 0; rank < 6; ++rank)
        EXPECT_EQ(party[rank].received.size(), expected[rank]) << rank;
    EXPECT_EQ(party.queued(), party.completed());
}

TEST(LimicSetupTest, virtual_nodes_of_different_sizes_are_refused_by_name) {
    PartyConfig two, three;
    two.size = three.size = 4;
    two.ranks_per_node = 2;
    three.ranks_per_node = 4;
    Party first(two, false), second(three, false);
    std::size_t bytes = 0;
    const void* address = velo_engine_address(second[1].engine, &bytes);
    char error[512] = "";
    EXPECT_EQ(velo_peer_connect(first[0].engine, address, bytes, &first[0].peers[1], error, sizeof error),
              VELO_ERR_MISMATCH);
    EXPECT_NE(std::string(error).find("btl_velo_ranks_per_node"), std::string::npos) << error;
}

}  // namespace
}  // namespace velo::test
