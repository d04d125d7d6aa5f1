// Which of two ways messages take, from how long blocks of them last.
#include "endpoint/contest.h"

#include <gtest/gtest.h>

#include <array>

namespace velo::test {
namespace {

using Contest = endpoint::Contest<512, 3, 16>;

class ContestTest : public ::testing::Test {
 protected:
    // So many messages of 600 bytes; one takes so long by the first way, and by the second. Returns how many
    // went the first way.
    int send(std::uint32_t count, std::uint64_t first, std::uint64_t second, std::size_t bytes = 600) {
        int firsts = 0;
        for (std::uint32_t i = 0; i < count; ++i) {
            const bool goes_first = contest.first(bytes);
            firsts += goes_first ? 1 : 0;
            now += goes_first ? first : second;
            contest.went(bytes, [&] {
                ++looks;
                return now;
            });
        }
        return firsts;
    }
    // Until the first decision, its own message included.
    void decide(std::uint64_t first, std::uint64_t second) { send(Contest::kTrial, first, second); }

    Contest contest{0};
    std::uint64_t now = 0;
    int looks = 0;
};

TEST_F(ContestTest, every_size_begins_with_the_first_way_and_tries_each_for_half_of_a_trial) {
    for (const std::size_t bytes : {512UL, 1024UL, 1UL << 30}) {
        EXPECT_TRUE(contest.first(bytes));
        EXPECT_EQ(send(Contest::kTrial, 10, 10, bytes), Contest::kTrial / 2);
    }
}

TEST_F(ContestTest, the_faster_way_is_taken_after_a_trial) {
    decide(10, 8);
    EXPECT_FALSE(contest.first(600));
    EXPECT_EQ(send(Contest::kShortestRun, 10, 8), 0);
    EXPECT_TRUE(contest.first(1500)) << "sizes of another class have a contest of their own";
}

TEST_F(ContestTest, what_is_hardly_faster_changes_nothing) {
    decide(1000, 960);
    EXPECT_TRUE(contest.first(600));
    EXPECT_EQ(send(4 * Contest::kShortestRun, 1000, 960), 4 * Contest::kShortestRun);
}

TEST_F(ContestTest, a_change_within_a_job_is_followed) {
    decide(10, 5);
    EXPECT_FALSE(contest.first(600));
    send(Contest::kShortestRun + Contest::kTrial, 5, 10);
    EXPECT_TRUE(contest.first(600));
}

TEST_F(ContestTest, runs_grow_as_long_as_the_outcome_stays_the_same) {
    decide(5, 10);
    std::uint32_t run = 0, longest = 0;
    for (std::uint32_t i = 0; i < 3 * Contest::kLongestRun; ++i) {
        run = send(1, 5, 10) == 1 ? run + 1 : 0;
        longest = std::max(longest, run);
    }
    EXPECT_GE(longest, Contest::kLongestRun);
    EXPECT_LT(longest, Contest::kLongestRun + Contest::kTrial);
    const int before = looks;
    send(Contest::kLongestRun / 2, 5, 10);
    EXPECT_LE(looks, before + 2 * static_cast<int>(Contest::kBlocks) + 1);
}

// What a program does between its messages makes blocks longer, of either way.
TEST_F(ContestTest, the_shortest_block_of_a_way_counts) {
    for (std::uint32_t i = 0; i < Contest::kTrial; ++i) {
        if (i / 18 % 2 == 1) now += 1000;  // of two blocks one
        send(1, 10, 8);
    }
    EXPECT_FALSE(contest.first(600));
}

TEST_F(ContestTest, longer_messages_of_a_class_are_no_slower_for_that) {
    // The second way happens to have the long ones.
    for (std::uint32_t i = 0; i < Contest::kTrial; ++i) {
        const bool first = contest.first(600);
        send(1, 600, 1000, first ? 600 : 1000);
    }
    EXPECT_TRUE(contest.first(600));
}

TEST(Contest, processes_try_in_orders_that_differ_and_begin_alike) {
    std::array<std::array<bool, Contest::kTrial>, 4> went{};
    for (std::uint32_t seed = 0; seed < 4; ++seed) {
        Contest contest(seed);
        for (bool& way : went[seed]) {
            way = contest.first(600);
            contest.went(600, [] { return std::uint64_t{0}; });
        }
        EXPECT_TRUE(went[seed][0]);
        for (std::uint32_t other = 0; other < seed; ++other) EXPECT_NE(went[seed], went[other]);
    }
}

}  // namespace
}  // namespace velo::test
