// What a performer keeps of runs that have failed, and what it hears from other threads.
#include "collectives/performing/failures.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <set>

#include "collectives/performing/inbox.h"
#include "unit/lone_domain.h"

namespace velo::performing {
namespace {

constexpr velo_goal_result kWhy{VELO_ERR_UNREACHABLE, 3, 1, 2};

Ending ending(std::uint64_t number, std::uint32_t lane = 0) {
    return {{number, 7, lane}, kWhy};
}
Spoiled spoiled_by(const RunId& run) {
    return {run, 7U << 16, 0, 0};
}

TEST(FailuresTest, a_run_that_another_member_has_given_up_ends_as_it_begins_once) {
    Failures failures;
    failures.heard(ending(5));
    EXPECT_FALSE(failures.begins({4, 7, 0}));
    EXPECT_FALSE(failures.begins({5, 8, 0})) << "another group";
    const auto why = failures.begins({5, 7, 0});
    ASSERT_TRUE(why);
    EXPECT_EQ(why->vertex, kWhy.vertex);
    EXPECT_FALSE(failures.begins({5, 7, 0}));
    EXPECT_FALSE(failures.any());
}

TEST(FailuresTest, a_lane_has_ended_with_its_first_run_that_failed_anywhere) {
    Failures failures;
    failures.heard(ending(9, 2));
    failures.heard(ending(6, 2));
    failures.heard(ending(8, 2));
    EXPECT_FALSE(failures.begins({5, 7, 2}));
    EXPECT_FALSE(failures.begins({6, 7, 3}));
    for (const std::uint64_t number : {6, 7, 6}) EXPECT_TRUE(failures.begins({number, 7, 2})) << number;
}

TEST(FailuresTest, what_is_heard_of_a_run_that_has_failed_here_is_no_news) {
    Failures failures;
    const Ending here = ending(5);
    EXPECT_EQ(failures.stopped(here, spoiled_by(here.run)).run.number, 5U);
    failures.heard(here);
    EXPECT_FALSE(failures.begins({5, 7, 0}));
    EXPECT_EQ(failures.spoiled().size(), 1U);
}

TEST(FailuresTest, only_the_messages_of_the_round_of_a_failed_run_are_dropped) {
    const std::uint32_t round = 5U << kRankBits;
    const Spoiled number{{1, 7, 0}, 0, round, 0}, lane{{1, 7, 2}, 0, round, 4 * kLaneTag};
    const auto key = [&](std::uint32_t of_round, std::uint32_t tag) {
        return matching::Key{0, static_cast<std::int32_t>(of_round | 3), static_cast<std::int32_t>(tag)};
    };
    EXPECT_TRUE(number.is_of(key(round, 12)));
    EXPECT_FALSE(number.is_of(key(6U << kRankBits, 12)));
    EXPECT_TRUE(lane.is_of(key(round, 4 * kLaneTag + 12)));
    EXPECT_FALSE(lane.is_of(key(round, 5 * kLaneTag + 12))) << "another lane in the same context";
}

TEST(FailuresTest, messages_are_dropped_until_none_can_come_any_more) {
    Failures failures;
    const Ending here = ending(5);
    failures.stopped(here, spoiled_by(here.run));
    const std::uint64_t half = (std::uint64_t{kWindow} << kTurnBits) / 2;
    (void)failures.begins({5 + half - 1, 7, 0});
    EXPECT_EQ(failures.spoiled().size(), 1U);
    (void)failures.begins({5 + half, 8, 0});
    EXPECT_EQ(failures.spoiled().size(), 1U) << "another group";
    (void)failures.begins({5 + half, 7, 0});
    EXPECT_TRUE(failures.spoiled().empty());
}

TEST(FailuresTest, a_group_that_is_closed_leaves_nothing_to_the_next_one_with_its_id) {
    Failures failures;
    Group group(7, 0, 2, nullptr, nullptr);
    group.name = group.id;  // it has none
    Ending of_group{{5, group.told_as(), 0}, kWhy};
    failures.stopped(of_group, spoiled_by(of_group.run));
    of_group.run.number = 6;
    failures.heard(of_group);
    failures.close(group);
    EXPECT_FALSE(failures.any());
}

TEST(InboxTest, what_is_heard_counts_when_it_has_been_taken) {
    test::LoneDomain node("static");
    Inbox inbox;
    std::vector<Ending> endings;
    inbox.noticed(std::bit_cast<messaging::Notice>(ending(5)));
    EXPECT_TRUE(inbox.has_some());
    EXPECT_FALSE(inbox.take(endings)) << "nobody has departed";
    ASSERT_EQ(endings.size(), 1U);
    EXPECT_EQ(endings[0].run.number, 5U);
    inbox.departed(node[1]);
    EXPECT_FALSE(inbox.has_departed(&node[1]));
    endings.clear();
    EXPECT_TRUE(inbox.take(endings));
    EXPECT_TRUE(endings.empty());
    EXPECT_TRUE(inbox.has_departed(&node[1]));
    EXPECT_FALSE(inbox.has_some());
}

TEST(GroupNamesTest, members_count_alike_and_no_name_comes_twice) {
    GroupNames here, there;
    std::set<std::uint64_t> names;
    for (std::uint32_t i = 0; i < 300; ++i) {
        const std::uint32_t id = i % 3;
        const std::uint64_t name = here.take(77, id);
        EXPECT_EQ(there.take(77, id), name);
        EXPECT_TRUE(names.insert(name).second) << i;
    }
    const std::uint64_t first = GroupNames().take(77, 5);
    GroupNames again;
    again.take(77, 5);
    const std::uint64_t mask = (1U << kTimeBits) - 1;
    EXPECT_EQ((again.take(77, 5) - first) & mask, 1U) << "the next round";
}

}  // namespace
}  // namespace velo::performing
