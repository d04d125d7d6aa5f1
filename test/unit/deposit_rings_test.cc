// Where deposits are stored (flow/deposit_rings.h), and what is cut from rotating memory
// (flow/rotating_memory.h).
#include "flow/deposit_rings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace velo::flow {
namespace {

using Cut = RotatingMemory::Cut;

constexpr std::uint32_t kBytes = 1U << 20;

// So that no line is stored into again before all others have been.
TEST(RotatingMemoryTest, each_cut_follows_the_one_before_through_all_of_the_memory) {
    RotatingMemory rotating(kBytes);
    std::uint32_t end = 0, laps = 0;
    for (int i = 0; i < 1000; ++i) {
        const Cut cut = rotating.take(9000);
        ASSERT_EQ(cut.bytes, 9024U);
        if (cut.place != end) {
            EXPECT_EQ(cut.place, 0U);
            EXPECT_GT(end + cut.bytes, kBytes) << "there was room";
            ++laps;
        }
        end = cut.place + cut.bytes;
        rotating.give_back(cut.index);
    }
    EXPECT_EQ(laps, (1000 - 1) / (kBytes / 9024));
}

TEST(RotatingMemoryTest, what_is_longer_than_the_memory_has_all_of_it) {
    RotatingMemory rotating(kBytes);
    const Cut all = rotating.take(10 * kBytes);
    EXPECT_EQ(all.bytes, kBytes);
    EXPECT_TRUE(rotating.take(1).none());
    rotating.give_back(all.index);
    EXPECT_FALSE(rotating.take(1).none());
    EXPECT_TRUE(RotatingMemory(0).take(1).none());
}

TEST(RotatingMemoryTest, what_is_short_goes_round_in_a_part) {
    RotatingMemory rotating(65'536, 8192);
    EXPECT_EQ(rotating.lap(), 8192U);
    const Cut first = rotating.take_short(4096), second = rotating.take_short(4096);
    EXPECT_EQ(first.place, 0U);
    EXPECT_EQ(second.place, 4096U);
    EXPECT_TRUE(rotating.take_short(64).none()) << "not behind the part";
    const Cut other = rotating.take(40'000);
    ASSERT_FALSE(other.none());
    EXPECT_EQ(other.place, 8192U);
    rotating.give_back(first.index);
    EXPECT_EQ(rotating.take_short(64).place, 0U) << "from behind it to its beginning";
    EXPECT_EQ(rotating.take_short(1'000'000).bytes, 0U);
    rotating.give_back(second.index);
    rotating.give_back(other.index);
    EXPECT_EQ(rotating.take(60'000).place, 64U);
}

TEST(RotatingMemoryTest, what_is_streamed_goes_round_in_a_part_that_grows_when_something_is_in_the_way) {
    RotatingMemory rotating(4 * RotatingMemory::kFirstReach);
    constexpr std::uint32_t kBytes = RotatingMemory::kFirstReach / 4;
    for (std::uint32_t i = 0; i < 100; ++i) {
        const Cut cut = rotating.take_streamed(kBytes);
        ASSERT_EQ(cut.place, i % 4 * kBytes) << "each is read before the next is stored";
        rotating.give_back(cut.index);
    }
    std::vector<Cut> unread;
    for (Cut cut; !(cut = rotating.take_streamed(kBytes)).none(); unread.push_back(cut))
        for (const Cut& other : unread) ASSERT_NE(cut.place, other.place);
    EXPECT_EQ(unread.size(), 16U) << "all that there is";
    for (const Cut& cut : unread) rotating.give_back(cut.index);
    EXPECT_EQ(rotating.take_streamed(10 * rotating.bytes()).bytes, rotating.bytes());
}

TEST(RotatingMemoryTest, where_pages_are_slow_all_goes_round_in_a_part_that_grows_after_many_rounds) {
    constexpr std::uint32_t kBytes = RotatingMemory::kFirstReach / 4;
    RotatingMemory rotating(4 * RotatingMemory::kFirstReach, 2 * RotatingMemory::kFirstReach, true);
    std::uint32_t reached = 0;
    const auto round = [&] {
        for (std::uint32_t i = 0; i < 4; ++i) {
            const Cut cut = rotating.take(kBytes);
            reached = std::max(reached, cut.place + cut.bytes);
            rotating.give_back(cut.index);
        }
    };
    for (std::uint32_t i = 0; i < RotatingMemory::kRounds; ++i) round();
    EXPECT_EQ(reached, RotatingMemory::kFirstReach);
    for (int i = 0; i < 4; ++i) round();
    EXPECT_EQ(reached, 2 * RotatingMemory::kFirstReach);
    std::size_t shorts = 0;
    while (!rotating.take_short(kBytes).none()) ++shorts;
    EXPECT_EQ(shorts, 8U) << "their own part and no more";
}

TEST(RotatingMemoryTest, one_that_nobody_reads_is_passed_by) {
    RotatingMemory rotating(kBytes);
    const Cut stays = rotating.take(20'000);
    for (int i = 0; i < 2000; ++i) {
        const Cut cut = rotating.take(30'000);
        ASSERT_FALSE(cut.none()) << i;
        ASSERT_NE(cut.index, stays.index);
        rotating.give_back(cut.index);
    }
    EXPECT_TRUE(rotating.is_allocated(stays.index));
}

TEST(RotatingMemoryTest, many_that_nobody_reads_are_passed_by_after_some_looks) {
    RotatingMemory rotating(kBytes);
    std::vector<Cut> stay;
    for (int i = 0; i < 20; ++i) stay.push_back(rotating.take(20'000));
    int taken = 0;
    for (int i = 0; i < 2000; ++i) {
        const Cut cut = rotating.take(30'000);
        if (cut.none()) continue;
        ++taken;
        rotating.give_back(cut.index);
    }
    EXPECT_GT(taken, 1000);
    for (const Cut& cut : stay) EXPECT_TRUE(rotating.is_allocated(cut.index));
}

TEST(RotatingMemoryTest, there_are_so_many_cuts_at_a_time) {
    RotatingMemory rotating(kBytes);
    std::vector<Cut> cuts;
    for (std::uint32_t i = 0; i < RotatingMemory::kCuts; ++i) {
        cuts.push_back(rotating.take(1));
        ASSERT_FALSE(cuts.back().none()) << i;
    }
    EXPECT_TRUE(rotating.take(1).none());
    rotating.give_back(cuts[100].index);
    EXPECT_EQ(rotating.take(1).index, cuts[100].index);
}

TEST(RotatingMemoryTest, those_that_are_lent_never_meet_whatever_comes_back_when) {
    std::mt19937 random(1);
    for (const std::uint32_t bytes : {65'536U, kBytes}) {
        RotatingMemory rotating(bytes);
        std::vector<Cut> allocated;
        unsigned taken = 0, refused = 0;
        for (int step = 0; step < 20'000; ++step) {
            if (random() % 2 == 0 && !allocated.empty()) {
                const std::size_t which = random() % allocated.size();
                rotating.give_back(allocated[which].index);
                allocated.erase(allocated.begin() + static_cast<std::ptrdiff_t>(which));
                continue;
            }
            const std::size_t most = random() % 4 == 0 ? bytes / 2 : 2'000;
            const Cut cut = rotating.take(1 + random() % most);
            ++(cut.none() ? refused : taken);
            if (cut.none()) continue;
            ASSERT_LE(cut.place + cut.bytes, bytes);
            ASSERT_EQ(cut.place % RotatingMemory::kLine, 0U);
            for (const Cut& other : allocated) {
                ASSERT_NE(other.index, cut.index);
                ASSERT_TRUE(other.place + other.bytes <= cut.place || cut.place + cut.bytes <= other.place);
            }
            allocated.push_back(cut);
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
    const DepositPlan plan(kBytes);
    EXPECT_TRUE(plan.holds(0, plan.bytes()));
    EXPECT_TRUE(plan.holds(plan.bytes() - 1, 1));
    EXPECT_FALSE(plan.holds(0, 0));
    EXPECT_FALSE(plan.holds(1, plan.bytes()));
    EXPECT_FALSE(plan.holds(plan.bytes(), 1));
    EXPECT_FALSE(plan.holds(~0U, ~0U));
    EXPECT_FALSE(DepositPlan().holds(0, 1));
}

TEST(DepositRingsTest, without_memory_there_are_none) {
    RotatingMemory rotating(0);
    EXPECT_EQ(DepositRings(DepositPlan(0), rotating).reserve(), DepositPlan::kRings);
}

TEST(DepositRingsTest, one_may_wait_for_its_room_and_leave_without_it) {
    RotatingMemory rotating(kBytes);
    DepositRings rings(DepositPlan(kBytes), rotating);
    const std::uint32_t first = rings.reserve(), second = rings.reserve();
    ASSERT_TRUE(rings.cut(first, kBytes));
    EXPECT_FALSE(rings.cut(second, 4096));
    rings.give_back(second);
    EXPECT_FALSE(rings.cut(rings.reserve(), 4096)) << "what had no room gives none back";
    rings.give_back(first);
    EXPECT_TRUE(rings.cut(rings.reserve(), 4096));
}

// Each has a number of its own; what others cut is left alone.
TEST(DepositRingsTest, are_cut_beside_what_others_cut) {
    RotatingMemory rotating(kBytes);
    const DepositPlan plan(kBytes);
    DepositRings rings(plan, rotating);
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
        const Cut other = rotating.take(64);
        ASSERT_FALSE(other.none());
        end = ring.place + ring.bytes + other.bytes;
    }
    EXPECT_EQ(rings.reserve(), DepositPlan::kRings) << "there are no more numbers";
    rings.give_back(40);
    EXPECT_EQ(rings.reserve(), 40U);
}

}  // namespace
}  // namespace velo::flow
