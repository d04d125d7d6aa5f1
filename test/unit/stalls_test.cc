// When a stall is counted, how long it lasts, and when there is a warning about it.
#include "engine/peers/stalls.h"

#include <gtest/gtest.h>

#include <utility>

namespace velo::engine {
namespace {

struct Owner {
    Stall stall;
};
using Warnings = std::vector<std::pair<Owner*, std::uint64_t>>;

constexpr std::uint64_t kWarning = 100;

struct StallsTest : testing::Test {
    int check(std::uint64_t now) {
        return stalls.check(now, [this](Owner& owner, std::uint64_t quiet) {
            warnings.push_back({&owner, quiet});
        });
    }

    Stalls<Owner> stalls{kWarning};
    Owner a, b, c;
    Warnings warnings;
};

TEST_F(StallsTest, a_stall_lasts_from_begin_to_end_and_the_next_one_adds_to_it) {
    stalls.begin(a, 1000);
    EXPECT_TRUE(stalls.any());
    EXPECT_EQ(a.stall.ns_until(1030), 30U);
    stalls.end(a, 1040);
    EXPECT_FALSE(stalls.any());
    EXPECT_EQ(a.stall.ns_until(5000), 40U);
    stalls.begin(a, 6000);
    stalls.end(a, 6002);
    EXPECT_EQ(a.stall.total_ns, 42U);
    EXPECT_EQ(a.stall.count, 2U);
    EXPECT_EQ(stalls.count(), 2U);
}

TEST_F(StallsTest, stalls_of_several_peers_end_in_any_order) {
    stalls.begin(a, 1);
    stalls.begin(b, 1);
    stalls.begin(c, 1);
    stalls.end(a, 10);
    stalls.end(c, 10);
    EXPECT_EQ(check(1 + kWarning), 1);
    EXPECT_EQ(warnings.front().first, &b);
    stalls.end(b, 200);
    EXPECT_FALSE(stalls.any());
}

TEST_F(StallsTest, a_warning_comes_at_the_limit_and_then_after_twice_four_times_and_so_on) {
    stalls.begin(a, 1000);
    Warnings expected;
    for (std::uint64_t quiet = 0; quiet <= 16 * kWarning; ++quiet) check(1000 + quiet);
    for (std::uint64_t times : {1, 2, 4, 8, 16}) expected.push_back({&a, times * kWarning});
    EXPECT_EQ(warnings, expected);
}

TEST_F(StallsTest, one_late_look_makes_one_warning) {
    stalls.begin(a, 1000);
    EXPECT_EQ(check(1000 + 50 * kWarning), 1);
    EXPECT_EQ(check(1000 + 50 * kWarning + 1), 0);
    EXPECT_EQ(check(1000 + 64 * kWarning), 1);
}

TEST_F(StallsTest, a_queue_that_moves_is_no_reason_to_warn) {
    stalls.begin(a, 1000);
    for (std::uint64_t now = 1000; now < 1000 + 20 * kWarning; now += kWarning / 2) {
        a.stall.moved = true;
        EXPECT_EQ(check(now), 0);
    }
    EXPECT_FALSE(stalls.warned(a));
}

TEST_F(StallsTest, a_move_starts_the_intervals_anew) {
    stalls.begin(a, 1000);
    check(1000 + 4 * kWarning);
    EXPECT_TRUE(stalls.warned(a));
    a.stall.moved = true;
    check(2000);
    EXPECT_TRUE(stalls.warned(a));
    EXPECT_EQ(check(2000 + kWarning), 1);
}

TEST(StallsWithoutWarning, never_warn) {
    Stalls<Owner> stalls(0);
    Owner owner;
    stalls.begin(owner, 1);
    EXPECT_EQ(stalls.check(std::uint64_t{1} << 62, [](Owner&, std::uint64_t) { FAIL(); }), 0);
    EXPECT_FALSE(stalls.warned(owner));
    stalls.end(owner, 5);
    EXPECT_EQ(owner.stall.total_ns, 4U);
}

}  // namespace
}  // namespace velo::engine
