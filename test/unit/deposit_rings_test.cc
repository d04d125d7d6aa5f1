// Where deposits are stored (flow/deposit_rings.h), and what is cut in turn (flow/in_turn.h).
#include "flow/deposit_rings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace velo::flow {
namespace {

using Cut = InTurn::Cut;

constexpr std::uint32_t kInTurn = 1U << 20;

// So that no line is stored into again before all others have been.
TEST(InTurnTest, each_cut_follows_the_one_before_through_all_of_the_memory) {
    InTurn in_turn(kInTurn);
    std::uint32_t end = 0, laps = 0;
    for (int i = 0; i < 1000; ++i) {
        const Cut cut = in_turn.take(9000);
        ASSERT_EQ(cut.bytes, 9024U);
        if (cut.place != end) {
            EXPECT_EQ(cut.place, 0U);
            EXPECT_GT(end + cut.bytes, kInTurn) << "there was room";
            ++laps;
        }
        end = cut.place + cut.bytes;
        in_turn.give_back(cut.index);
    }
    EXPECT_EQ(laps, (1000 - 1) / (kInTurn / 9024));
}

TEST(InTurnTest, what_is_longer_than_the_memory_has_all_of_it) {
    InTurn in_turn(kInTurn);
    const Cut all = in_turn.take(10 * kInTurn);
    EXPECT_EQ(all.bytes, kInTurn);
    EXPECT_TRUE(in_turn.take(1).none());
    in_turn.give_back(all.index);
    EXPECT_FALSE(in_turn.take(1).none());
    EXPECT_TRUE(InTurn(0).take(1).none());
}

TEST(InTurnTest, what_is_short_goes_round_in_a_part) {
    InTurn in_turn(65'536, 8192);
    EXPECT_EQ(in_turn.lap(), 8192U);
    const Cut first = in_turn.take_short(4096), second = in_turn.take_short(4096);
    EXPECT_EQ(first.place, 0U);
    EXPECT_EQ(second.place, 4096U);
    EXPECT_TRUE(in_turn.take_short(64).none()) << "not behind the part";
    const Cut other = in_turn.take(40'000);
    ASSERT_FALSE(other.none());
    EXPECT_EQ(other.place, 8192U);
    in_turn.give_back(first.index);
    EXPECT_EQ(in_turn.take_short(64).place, 0U) << "from behind it to its beginning";
    EXPECT_EQ(in_turn.take_short(1'000'000).bytes, 0U);
    in_turn.give_back(second.index);
    in_turn.give_back(other.index);
    EXPECT_EQ(in_turn.take(60'000).place, 64U);
}

TEST(InTurnTest, what_is_streamed_goes_round_in_a_part_that_grows_when_something_is_in_the_way) {
    InTurn in_turn(4 * InTurn::kFirstReach);
    constexpr std::uint32_t kBytes = InTurn::kFirstReach / 4;
    for (std::uint32_t i = 0; i < 100; ++i) {
        const Cut cut = in_turn.take_streamed(kBytes);
        ASSERT_EQ(cut.place, i % 4 * kBytes) << "each is read before the next is stored";
        in_turn.give_back(cut.index);
    }
    std::vector<Cut> unread;
    for (Cut cut; !(cut = in_turn.take_streamed(kBytes)).none(); unread.push_back(cut))
        for (const Cut& other : unread) ASSERT_NE(cut.place, other.place);
    EXPECT_EQ(unread.size(), 16U) << "all that there is";
    for (const Cut& cut : unread) in_turn.give_back(cut.index);
    EXPECT_EQ(in_turn.take_streamed(10 * in_turn.bytes()).bytes, in_turn.bytes());
}

TEST(InTurnTest, where_pages_are_slow_all_goes_round_in_a_part_that_grows_after_many_rounds) {
    constexpr std::uint32_t kBytes = InTurn::kFirstReach / 4;
    InTurn in_turn(4 * InTurn::kFirstReach, 2 * InTurn::kFirstReach, true);
    std::uint32_t reached = 0;
    const auto round = [&] {
        for (std::uint32_t i = 0; i < 4; ++i) {
            const Cut cut = in_turn.take(kBytes);
            reached = std::max(reached, cut.place + cut.bytes);
            in_turn.give_back(cut.index);
        }
    };
    for (std::uint32_t i = 0; i < InTurn::kRounds; ++i) round();
    EXPECT_EQ(reached, InTurn::kFirstReach);
    for (int i = 0; i < 4; ++i) round();
    EXPECT_EQ(reached, 2 * InTurn::kFirstReach);
    std::size_t shorts = 0;
    while (!in_turn.take_short(kBytes).none()) ++shorts;
    EXPECT_EQ(shorts, 8U) << "their own part and no more";
}

TEST(InTurnTest, one_that_nobody_reads_is_passed_by) {
    InTurn in_turn(kInTurn);
    const Cut stays = in_turn.take(20'000);
    for (int i = 0; i < 2000; ++i) {
        const Cut cut = in_turn.take(30'000);
        ASSERT_FALSE(cut.none()) << i;
        ASSERT_NE(cut.index, stays.index);
        in_turn.give_back(cut.index);
    }
    EXPECT_TRUE(in_turn.is_lent(stays.index));
}

TEST(InTurnTest, many_that_nobody_reads_are_passed_by_after_some_looks) {
    InTurn in_turn(kInTurn);
    std::vector<Cut> stay;
    for (int i = 0; i < 20; ++i) stay.push_back(in_turn.take(20'000));
    int taken = 0;
    for (int i = 0; i < 2000; ++i) {
        const Cut cut = in_turn.take(30'000);
        if (cut.none()) continue;
        ++taken;
        in_turn.give_back(cut.index);
    }
    EXPECT_GT(taken, 1000);
    for (const Cut& cut : stay) EXPECT_TRUE(in_turn.is_lent(cut.index));
}

TEST(InTurnTest, there_are_so_many_cuts_at_a_time) {
    InTurn in_turn(kInTurn);
    std::vector<Cut> cuts;
    for (std::uint32_t i = 0; i < InTurn::kCuts; ++i) {
        cuts.push_back(in_turn.take(1));
        ASSERT_FALSE(cuts.back().none()) << i;
    }
    EXPECT_TRUE(in_turn.take(1).none());
    in_turn.give_back(cuts[100].index);
    EXPECT_EQ(in_turn.take(1).index, cuts[100].index);
}

TEST(InTurnTest, those_that_are_lent_never_meet_whatever_comes_back_when) {
    std::mt19937 random(1);
    for (const std::uint32_t bytes : {65'536U, kInTurn}) {
        InTurn in_turn(bytes);
        std::vector<Cut> lent;
        unsigned taken = 0, refused = 0;
        for (int step = 0; step < 20'000; ++step) {
            if (random() % 2 == 0 && !lent.empty()) {
                const std::size_t which = random() % lent.size();
                in_turn.give_back(lent[which].index);
                lent.erase(lent.begin() + static_cast<std::ptrdiff_t>(which));
                continue;
            }
            const std::size_t most = random() % 4 == 0 ? bytes / 2 : 2'000;
            const Cut cut = in_turn.take(1 + random() % most);
            ++(cut.none() ? refused : taken);
            if (cut.none()) continue;
            ASSERT_LE(cut.place + cut.bytes, bytes);
            ASSERT_EQ(cut.place % InTurn::kLine, 0U);
            for (const Cut& other : lent) {
                ASSERT_NE(other.index, cut.index);
                ASSERT_TRUE(other.place + other.bytes <= cut.place || cut.place + cut.bytes <= other.place);
            }
            lent.push_back(cut);
        }
        EXPECT_GT(taken, 1000U);
        EXPECT_GT(refused, 100U);
    }
}

TEST(DepositPlanTest, each_number_stands_for_one_ring) {
    for (std::uint32_t ring = 0; ring < DepositPlan::kRings; ++ring)
        EXPECT_EQ(DepositPlan::ring_of(DepositPlan::number_of(ring)), ring);
    for (const std::uint32_t number : {0U, 65U, 255U, 256U, ~0U})
        EXPECT_EQ(DepositPlan::ring_of(number), DepositPlan::kRings) << number;
}

TEST(DepositPlanTest, holds_what_lies_within) {
    const DepositPlan plan(kInTurn);
    EXPECT_TRUE(plan.holds(0, plan.bytes()));
    EXPECT_TRUE(plan.holds(plan.bytes() - 1, 1));
    EXPECT_FALSE(plan.holds(0, 0));
    EXPECT_FALSE(plan.holds(1, plan.bytes()));
    EXPECT_FALSE(plan.holds(plan.bytes(), 1));
    EXPECT_FALSE(plan.holds(~0U, ~0U));
    EXPECT_FALSE(DepositPlan().holds(0, 1));
}

TEST(DepositRingsTest, without_memory_there_are_none) {
    InTurn in_turn(0);
    EXPECT_EQ(DepositRings(DepositPlan(0), in_turn).reserve(), DepositPlan::kRings);
}

TEST(DepositRingsTest, one_may_wait_for_its_room_and_leave_without_it) {
    InTurn in_turn(kInTurn);
    DepositRings rings(DepositPlan(kInTurn), in_turn);
    const std::uint32_t first = rings.reserve(), second = rings.reserve();
    ASSERT_TRUE(rings.cut(first, kInTurn));
    EXPECT_FALSE(rings.cut(second, 4096));
    rings.give_back(second);
    EXPECT_FALSE(rings.cut(rings.reserve(), 4096)) << "what had no room gives none back";
    rings.give_back(first);
    EXPECT_TRUE(rings.cut(rings.reserve(), 4096));
}

// Each has a number of its own; what others cut is left alone.
TEST(DepositRingsTest, are_cut_beside_what_others_cut) {
    InTurn in_turn(kInTurn);
    const DepositPlan plan(kInTurn);
    DepositRings rings(plan, in_turn);
    std::uint32_t end = 0;
    for (std::uint32_t i = 0; i < DepositPlan::kRings; ++i) {
        ASSERT_EQ(rings.reserve(), i);
        EXPECT_TRUE(rings.ring(i).none());
        ASSERT_TRUE(rings.cut(i, 9000));
        const DepositRings::Ring ring = rings.ring(i);
        EXPECT_EQ(ring.index, i);
        EXPECT_EQ(ring.bytes, 12'288U);
        EXPECT_EQ(ring.place, end);
        EXPECT_TRUE(plan.holds(ring.place, ring.bytes));
        const Cut other = in_turn.take(64);
        ASSERT_FALSE(other.none());
        end = ring.place + ring.bytes + other.bytes;
    }
    EXPECT_EQ(rings.reserve(), DepositPlan::kRings) << "there are no more numbers";
    rings.give_back(40);
    EXPECT_EQ(rings.reserve(), 40U);
}

}  // namespace
}  // namespace velo::flow
