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

    // The first of each `on_node` ranks leads; `late_after_us`: the others join when it is late.
    void multicast(std::uint32_t on_node, std::uint32_t late_after_us = 0) {
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
        config.attach_after_us = late_after_us;
        for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
            config.me = rank / on_node;
            config.led = rank % on_node != 0;
            char error[512] = "";
            ASSERT_EQ(velo_performer_multicast(party->at(rank), &config, error, sizeof error), VELO_OK)
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
    // Until 3 has joined.
    void make_late() {
        for (unsigned i = 0; i < 100 && party->state(3).multicast.multicast_joins == 0; ++i)
            broadcast(100, 0, i);
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

// More at once than a window holds: those behind wait for room, which comes.
TEST_F(SharingTest, broadcasts_that_find_no_room_wait_for_it_and_are_multicast_as_well) {
    constexpr std::uint64_t kBytes = 60'000, kRuns = 8;
    multicast(1);
    if (!opened(0)) GTEST_SKIP() << "no multicast on the loopback interface here";
    const velo_multicast_state before = party->state(0).multicast;
    std::vector<std::vector<std::uint8_t>> data(kRanks * kRuns, std::vector<std::uint8_t>(kBytes));
    std::vector<velo_goal_run*> runs;
    for (std::uint64_t i = 0; i < kRuns; ++i)
        for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
            if (rank == 0) data[kRanks * i].assign(kBytes, static_cast<std::uint8_t>(i + 1));
            runs.push_back(begin((*party)[rank], data[kRanks * i + rank].data(), kBytes, 0));
        }
    ASSERT_TRUE(until([&] { return std::ranges::all_of(runs, velo_goal_run_is_over); }));
    for (std::size_t i = 0; i < runs.size(); ++i) {
        EXPECT_EQ(velo_goal_run_end(runs[i]).status, VELO_OK);
        EXPECT_EQ(data[i], data[i / kRanks * kRanks]);
    }
    EXPECT_EQ(sent(0), before.multicasts_sent + kRuns);
    EXPECT_EQ(party->state(0).multicast.multicasts_refused, before.multicasts_refused);
}

// One that needs all of a window waits while anything is under way; what would fit goes behind it.
TEST_F(SharingTest, a_long_broadcast_that_waits_for_room_is_not_overtaken) {
    constexpr std::uint64_t kLong = 163'000;
    multicast(1);
    if (!opened(0)) GTEST_SKIP() << "no multicast on the loopback interface here";
    const std::uint64_t before = sent(0);
    std::vector<std::vector<std::uint8_t>> data(kRanks, std::vector<std::uint8_t>(kLong));
    std::vector<std::uint8_t> little(2 * kRanks);
    data[0].assign(kLong, 0x77);
    std::vector<velo_goal_run*> runs;
    const auto begin_all_at = [&](std::uint32_t rank) {
        velo_goal_group* const group = (*party)[rank];
        runs.push_back(begin(group, &little[rank], 1, 0));
        runs.push_back(begin(group, data[rank].data(), kLong, 0));
        runs.push_back(begin(group, &little[kRanks + rank], 1, 0));
    };
    little[0] = little[kRanks] = 9;
    begin_all_at(0);
    EXPECT_EQ(sent(0), before + 1) << "nobody has acknowledged the first one";
    for (std::uint32_t rank = 1; rank < kRanks; ++rank) begin_all_at(rank);
    ASSERT_TRUE(until([&] { return std::ranges::all_of(runs, velo_goal_run_is_over); }));
    for (velo_goal_run* run : runs) EXPECT_EQ(velo_goal_run_end(run).status, VELO_OK);
    EXPECT_EQ(data[3], data[0]);
    EXPECT_EQ(little, std::vector<std::uint8_t>(2 * kRanks, 9));
}

// 3 is led by 2. Every broadcast that it waits for is a late one.
TEST_F(SharingTest, who_is_led_by_a_late_one_joins_and_gets_the_next_ones_without) {
    multicast(2, 1);
    if (!opened(0)) GTEST_SKIP() << "no multicast on the loopback interface here";
    const auto joins = [&](std::uint32_t rank) { return party->state(rank).multicast.multicast_joins; };
    make_late();
    ASSERT_EQ(joins(3), 1U);
    EXPECT_TRUE(party->state(3).multicasts);
    EXPECT_EQ(joins(1), 0U) << "that one is on the root's node";
    EXPECT_EQ(joins(2), 0U) << "that one leads";
    for (const std::uint64_t bytes : {8, 20'000, 8}) {
        const std::uint64_t before = party->state(3).multicast.multicasts_overheard;
        std::vector<std::vector<std::uint8_t>> data(kRanks, std::vector<std::uint8_t>(bytes, 0xee));
        for (std::size_t i = 0; i < bytes; ++i) data[0][i] = static_cast<std::uint8_t>(i + bytes);
        velo_goal_run* runs[kRanks];
        for (const std::uint32_t rank : {0U, 1U, 3U})
            runs[rank] = begin((*party)[rank], data[rank].data(), bytes, 0);
        ASSERT_TRUE(until([&] { return velo_goal_run_is_over(runs[3]); })) << "2 has not begun";
        EXPECT_EQ(data[3], data[0]);
        EXPECT_EQ(party->state(3).multicast.multicasts_overheard, before + 1);
        // What 2 passes on in the end is for nobody.
        std::ranges::fill(data[3], std::uint8_t{0x11});
        runs[2] = begin((*party)[2], data[2].data(), bytes, 0);
        for (velo_goal_run* run : runs) {
            ASSERT_TRUE(until([&] { return velo_goal_run_is_over(run); }));
            EXPECT_EQ(velo_goal_run_end(run).status, VELO_OK);
        }
        party->settle();
        EXPECT_EQ(data[3], std::vector<std::uint8_t>(bytes, 0x11));
    }
    for (unsigned i = 0; i < 20; ++i) broadcast(1 + 700 * i, i % kRanks, i);
    EXPECT_EQ(joins(3), 1U);
}

// A window of broadcasts is as far as it may be ahead.
TEST_F(SharingTest, who_has_joined_waits_for_its_leader_when_it_is_too_far_ahead) {
    constexpr std::uint32_t kAhead = 8, kMore = 12;
    multicast(2, 1);
    if (!opened(0)) GTEST_SKIP() << "no multicast on the loopback interface here";
    make_late();
    party->settle();
    std::uint8_t data[kRanks][kMore] = {};
    std::vector<velo_goal_run*> led, others;
    for (unsigned i = 0; i < kMore; ++i) {
        data[0][i] = static_cast<std::uint8_t>(i + 1);
        for (const std::uint32_t rank : {0U, 1U, 3U})
            (rank == 3 ? led : others).push_back(begin((*party)[rank], &data[rank][i], 1, 0));
    }
    const auto over = [&] { return std::ranges::count_if(led, velo_goal_run_is_over); };
    ASSERT_TRUE(until([&] { return over() == kAhead; }));
    party->settle();
    EXPECT_EQ(over(), kAhead);
    for (unsigned i = 0; i < kMore; ++i) others.push_back(begin((*party)[2], &data[2][i], 1, 0));
    others.insert(others.end(), led.begin(), led.end());
    ASSERT_TRUE(until([&] { return std::ranges::all_of(others, velo_goal_run_is_over); }));
    for (velo_goal_run* run : others) EXPECT_EQ(velo_goal_run_end(run).status, VELO_OK);
    EXPECT_EQ(std::memcmp(data[3], data[0], kMore), 0);
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

// What comes late stays, and a group that comes later with that id has another name.
TEST_F(SharingTest, what_comes_for_a_leader_that_has_failed_is_not_taken_by_a_later_group_with_its_id) {
    multicast(1);
    if (!opened(0)) GTEST_SKIP() << "no multicast on the loopback interface here";
    constexpr std::uint64_t kBytes = 5000;  // more than was kept before
    std::vector<std::vector<std::uint32_t>> data(kRanks, std::vector<std::uint32_t>(kBytes / 4));
    std::vector<velo_goal_group*> groups(kRanks);
    const auto begin_all = [&](std::uint32_t ranks, std::uint32_t value) {
        std::vector<velo_goal_run*> runs;
        data[0].assign(kBytes / 4, value);
        for (std::uint32_t rank = 0; rank < ranks; ++rank)
            runs.push_back(begin(groups[rank], data[rank].data(), kBytes, 0));
        return runs;
    };
    const auto end_all = [&](const std::vector<velo_goal_run*>& runs) {
        ASSERT_TRUE(until([&] { return std::ranges::all_of(runs, velo_goal_run_is_over); }));
        for (velo_goal_run* run : runs) EXPECT_EQ(velo_goal_run_end(run).status, VELO_OK);
    };
    const auto open_all = [&] {
        for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
            std::uint64_t name = 0;
            EXPECT_EQ(velo_goal_new_name(party->at(rank), 1, 9, &name), VELO_OK);
            velo_goal_group_name(groups[rank] = party->group(rank, 9), name);
        }
    };
    open_all();
    const std::vector<velo_goal_run*> first = begin_all(kRanks - 1, 100);
    velo_goal_run* const failed = begin(groups[3], data[3].data(), 4, 0);
    end_all(first);
    ASSERT_TRUE(until([&] { return velo_goal_run_is_over(failed); }));
    EXPECT_EQ(velo_goal_run_end(failed).status, VELO_ERR_MISMATCH);
    velo_goal_group_close(groups[3]);
    party->settle();
    const std::uint64_t there = party->state(3).multicast.multicast_kept_bytes;
    end_all(begin_all(kRanks - 1, 101));
    ASSERT_TRUE(until([&] { return party->state(3).multicast.multicast_kept_bytes > there; }));
    for (std::uint32_t rank = 0; rank < kRanks - 1; ++rank) velo_goal_group_close(groups[rank]);
    open_all();
    for (const std::uint32_t value : {200U, 201U}) {
        end_all(begin_all(kRanks, value));
        EXPECT_EQ(data[3], data[0]);
    }
    for (velo_goal_group* group : groups) velo_goal_group_close(group);
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
