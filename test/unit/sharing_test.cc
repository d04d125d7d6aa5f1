// Broadcasts by leaders over engines of this process, with multicast between them on the loopback interface.
#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "performer_party.h"
#include "platform/monotonic.h"

namespace velo::test {
namespace {

class SharingTest : public ::testing::Test {
 protected:
    static constexpr std::uint32_t kRanks = 4;

    SharingTest() {
        PerformerPartyConfig config;
        config.size = kRanks;
        party = std::make_unique<PerformerParty>(config);
    }

    // The first of each `on_node` ranks leads.
    void multicast(std::uint32_t on_node) {
        velo_multicast_config config{};
        ASSERT_TRUE(velo_multicast_new_key(config.key));
        std::vector<std::uint32_t> addresses, ranks;
        for (std::uint32_t rank = 0; rank < kRanks; rank += on_node) {
            addresses.push_back(htonl(0x7f000001 + rank));
            ranks.push_back(rank);
        }
        config.addresses = addresses.data();
        config.ranks = ranks.data();
        config.count = static_cast<std::uint32_t>(ranks.size());
        config.mtu = 1500;
        request.on_node = on_node;
        for (; config.me < config.count; ++config.me) {
            char error[512] = "";
            ASSERT_EQ(velo_performer_multicast(party->at(ranks[config.me]), &config, error, sizeof error),
                      VELO_OK)
                << error;
        }
    }
    velo_goal_run* begin(velo_goal_group* group, void* data, std::uint64_t bytes, std::uint32_t root) {
        request.bytes = bytes;
        request.root = root;
        velo_goal_schedule* schedule = nullptr;
        EXPECT_EQ(velo_goal_group_schedule(group, &request, &schedule), VELO_OK);
        void* const arguments[] = {nullptr, data};
        velo_goal_start start{};
        start.arguments = arguments;
        start.argument_count = 2;
        velo_goal_run* run = nullptr;
        EXPECT_EQ(velo_goal_run_start(group, schedule, &start, &run), VELO_OK);
        return run;
    }
    // With patience for the loopback interface.
    bool until(const std::function<bool()>& there) {
        const std::uint64_t end = platform::monotonic_ns() + 20'000'000'000;
        while (!there()) {
            if (platform::monotonic_ns() > end) return false;
            party->step();
        }
        return true;
    }
    // To all, and checked.
    void broadcast(std::uint64_t bytes, std::uint32_t root, unsigned seed) {
        std::vector<std::vector<std::uint8_t>> data(kRanks, std::vector<std::uint8_t>(bytes, 0xee));
        for (std::size_t i = 0; i < bytes; ++i) data[root][i] = static_cast<std::uint8_t>(i * 3 + seed);
        std::vector<velo_goal_run*> runs;
        for (std::uint32_t i = 0; i < kRanks; ++i) {
            const std::uint32_t rank = (i + seed) % kRanks;
            runs.push_back(begin((*party)[rank], data[rank].data(), bytes, root));
        }
        ASSERT_TRUE(until([&] { return std::ranges::all_of(runs, velo_goal_run_is_over); }));
        for (velo_goal_run* run : runs) EXPECT_EQ(velo_goal_run_end(run).status, VELO_OK);
        for (const auto& each : data) EXPECT_EQ(each, data[root]);
    }
    std::uint64_t sent(std::uint32_t rank) const { return party->state(rank).multicast.multicasts_sent; }
    // Until that leader multicasts. False: the loopback interface does not.
    bool opened(std::uint32_t leader) {
        const std::uint64_t before = sent(leader), end = platform::monotonic_ns() + 5'000'000'000;
        while (sent(leader) == before && platform::monotonic_ns() < end) broadcast(8, leader, leader);
        return sent(leader) > before;
    }

    std::unique_ptr<PerformerParty> party;
    velo_goal_request request = [] {
        velo_goal_request leaders{};
        leaders.operation = "bcast";
        leaders.algorithm = "leaders";
        leaders.multicast = true;
        return leaders;
    }();
};

TEST_F(SharingTest, a_broadcast_goes_point_to_point_until_all_hear_its_source_and_at_once_from_then_on) {
    multicast(2);
    broadcast(100, 0, 1);
    EXPECT_EQ(party->state(0).multicast.multicasts_refused, 1U);
    if (!opened(0) || !opened(2)) GTEST_SKIP() << "no multicast on the loopback interface here";
    const std::uint64_t before = sent(0) + sent(2);
    std::uint64_t count = 0;
    for (const std::uint64_t bytes : {1, 300, 5000, 60'000})
        for (std::uint32_t root = 0; root < kRanks; ++root) {
            broadcast(bytes, root, static_cast<unsigned>(++count));
            // Whatever the root, the leader of its node sends.
            EXPECT_EQ(sent(0) + sent(2), before + count);
        }
    EXPECT_EQ(party->state(0).multicast.multicasts_taken, sent(2));
    EXPECT_EQ(party->state(2).multicast.multicasts_taken, sent(0));
    EXPECT_FALSE(party->state(1).multicasts);
    EXPECT_EQ(velo_performer_counter(party->at(0), "multicasts_sent"), sent(0));
    EXPECT_EQ(velo_performer_counter(party->at(0), "no_such"), 0U);
}

TEST_F(SharingTest, another_length_than_the_source_sends_is_an_error) {
    multicast(1);
    if (!opened(0)) GTEST_SKIP() << "no multicast on the loopback interface here";
    std::uint8_t data[kRanks][200] = {};
    std::vector<velo_goal_run*> runs;
    for (std::uint32_t rank = 0; rank < kRanks; ++rank)
        runs.push_back(begin((*party)[rank], data[rank], rank == 3 ? 100 : 200, 0));
    ASSERT_TRUE(until([&] { return std::ranges::all_of(runs, velo_goal_run_is_over); }));
    for (std::uint32_t rank = 0; rank < kRanks; ++rank)
        EXPECT_EQ(velo_goal_run_end(runs[rank]).status, rank == 3 ? VELO_ERR_MISMATCH : VELO_OK);
}

// A group that comes later with that id counts its runs from the beginning.
TEST_F(SharingTest, what_a_group_has_not_taken_ends_with_it) {
    multicast(1);
    if (!opened(0)) GTEST_SKIP() << "no multicast on the loopback interface here";
    constexpr std::uint64_t kBytes = 5000;  // more than was kept before
    std::vector<std::vector<std::uint32_t>> data(kRanks, std::vector<std::uint32_t>(kBytes / 4));
    const auto run_all = [&](std::vector<velo_goal_group*>& groups, std::uint32_t value, bool also_last) {
        std::vector<velo_goal_run*> runs;
        data[0].assign(kBytes / 4, value);
        for (std::uint32_t rank = 0; rank < kRanks - !also_last; ++rank)
            runs.push_back(begin(groups[rank], data[rank].data(), kBytes, 0));
        ASSERT_TRUE(until([&] { return std::ranges::all_of(runs, velo_goal_run_is_over); }));
        for (velo_goal_run* run : runs) EXPECT_EQ(velo_goal_run_end(run).status, VELO_OK);
    };
    for (const std::uint32_t value : {100U, 200U}) {
        std::vector<velo_goal_group*> groups;
        for (std::uint32_t rank = 0; rank < kRanks; ++rank) groups.push_back(party->group(rank, 9));
        run_all(groups, value, true);
        EXPECT_EQ(data[3], data[0]);
        const std::uint64_t there = party->state(3).multicast.multicast_kept_bytes;
        if (value == 100) {
            // The last one leaves before it takes this one, which has come.
            run_all(groups, 101, false);
            ASSERT_TRUE(until([&] { return party->state(3).multicast.multicast_kept_bytes > there; }));
        } else {
            run_all(groups, 201, true);
            EXPECT_EQ(data[3], data[0]);
        }
        for (velo_goal_group* group : groups) velo_goal_group_close(group);
        for (int i = 0; i < 200; ++i) party->step();
    }
}

TEST(MulticastTest, a_group_of_one_and_an_address_that_is_not_here_are_refused) {
    PerformerPartyConfig one;
    PerformerParty party(one);
    velo_multicast_config config{};
    const std::uint32_t addresses[] = {htonl(0x08080808), htonl(0x7f000001)}, ranks[] = {0, 1};
    config.addresses = addresses;
    config.ranks = ranks;
    config.mtu = 1500;
    char error[512] = "";
    config.count = 1;
    EXPECT_EQ(velo_performer_multicast(party.at(0), &config, error, sizeof error), VELO_ERR_PARAMETER);
    config.count = 2;
    EXPECT_EQ(velo_performer_multicast(party.at(0), &config, error, sizeof error), VELO_ERR_RESOURCE);
    EXPECT_NE(std::strstr(error, "bind"), nullptr) << error;
}

}  // namespace
}  // namespace velo::test
