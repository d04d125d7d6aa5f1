// Where deposits are stored (rma/deposit_rings.h).
#include "rma/deposit_rings.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace velo::rma {
namespace {

using Ring = DepositRings::Ring;
using Pick = DepositRings::Pick;

constexpr std::uint32_t kInTurn = 1U << 20;

TEST(DepositPlanTest, each_number_stands_for_one_ring_and_all_rings_have_several) {
    unsigned turns[DepositPlan::kRings]{};
    for (std::uint32_t number = 1; number < 255; ++number) {
        const std::uint32_t ring = DepositPlan::ring_of(number);
        ASSERT_LT(ring, DepositPlan::kRings);
        if (turns[ring]++ == 0) EXPECT_EQ(DepositPlan::first_number_of(ring), number);
    }
    for (std::uint32_t ring = 0; ring < DepositPlan::kRings; ++ring) EXPECT_GE(turns[ring], 2U) << ring;
    for (const std::uint32_t number : {0U, 255U, 256U, ~0U})
        EXPECT_EQ(DepositPlan::ring_of(number), DepositPlan::kRings) << number;
}

TEST(DepositPlanTest, holds_what_lies_within) {
    const DepositPlan plan(kInTurn);
    EXPECT_EQ(plan.bytes(), DepositPlan::kBytesAtHand + kInTurn);
    EXPECT_TRUE(plan.holds(0, plan.bytes()));
    EXPECT_TRUE(plan.holds(plan.bytes() - 1, 1));
    EXPECT_FALSE(plan.holds(0, 0));
    EXPECT_FALSE(plan.holds(1, plan.bytes()));
    EXPECT_FALSE(plan.holds(plan.bytes(), 1));
    EXPECT_FALSE(plan.holds(~0U, ~0U));
    EXPECT_FALSE(DepositPlan().holds(0, 1));
}

TEST(DepositRingsTest, without_memory_there_are_none) {
    DepositRings rings{DepositPlan(0)};
    EXPECT_TRUE(rings.take_at_hand(Pick::kFirst).none());
    EXPECT_TRUE(rings.take_in_turn(10'000).none());
}

TEST(DepositRingsTest, at_hand_is_the_first_that_is_free_or_the_next) {
    DepositRings rings{DepositPlan(kInTurn)};
    const auto give_back = [&](const Ring& ring) {
        rings.give_back(ring.index);
        return ring.index;
    };
    EXPECT_EQ(give_back(rings.take_at_hand(Pick::kFirst)), 0U);
    EXPECT_EQ(give_back(rings.take_at_hand(Pick::kFirst)), 0U);
    for (std::uint32_t i = 0; i < 6; ++i) EXPECT_EQ(give_back(rings.take_at_hand(Pick::kNext)), i % 3);
    const Ring first = rings.take_at_hand(Pick::kFirst);
    EXPECT_EQ(rings.take_at_hand(Pick::kNext).index, 1U) << "the first is lent";
    EXPECT_EQ(rings.take_at_hand(Pick::kNext).index, 2U);
    EXPECT_TRUE(rings.take_at_hand(Pick::kFirst).none());
    give_back(first);
    EXPECT_EQ(rings.take_at_hand(Pick::kNext).index, 0U);
}

// So that no line is stored into again before all others have been.
TEST(DepositRingsTest, in_turn_each_follows_the_one_before_through_all_of_the_region) {
    DepositRings rings{DepositPlan(kInTurn)};
    std::uint32_t end = DepositPlan::kBytesAtHand, laps = 0;
    for (int i = 0; i < 1000; ++i) {
        const Ring ring = rings.take_in_turn(9000);
        ASSERT_EQ(ring.bytes, 12'288U);
        if (ring.place != end) {
            EXPECT_EQ(ring.place, DepositPlan::kBytesAtHand);
            EXPECT_GT(end + ring.bytes, DepositPlan::kBytesAtHand + kInTurn) << "there was room";
            ++laps;
        }
        end = ring.place + ring.bytes;
        rings.give_back(ring.index);
    }
    EXPECT_EQ(laps, (1000 - 1) / (kInTurn / 12'288));
}

TEST(DepositRingsTest, what_is_longer_than_the_region_has_all_of_it) {
    DepositRings rings{DepositPlan(kInTurn)};
    const Ring all = rings.take_in_turn(10 * kInTurn);
    EXPECT_EQ(all.bytes, kInTurn);
    EXPECT_TRUE(rings.take_in_turn(1).none());
    rings.give_back(all.index);
    EXPECT_FALSE(rings.take_in_turn(1).none());
}

TEST(DepositRingsTest, one_that_nobody_reads_is_passed_by) {
    DepositRings rings{DepositPlan(kInTurn)};
    const Ring stays = rings.take_in_turn(20'000);
    for (int i = 0; i < 500; ++i) {
        const Ring ring = rings.take_in_turn(30'000);
        ASSERT_FALSE(ring.none()) << i;
        rings.give_back(ring.index);
    }
    EXPECT_TRUE(rings.is_lent(stays.index));
}

TEST(DepositRingsTest, those_that_are_lent_never_meet_whatever_comes_back_when) {
    std::mt19937 random(1);
    for (const std::uint32_t region : {65'536U, kInTurn}) {
        const DepositPlan plan(region);
        DepositRings rings{plan};
        std::vector<Ring> lent;
        unsigned taken = 0, refused = 0;
        for (int step = 0; step < 20'000; ++step) {
            if (random() % 2 == 0 && !lent.empty()) {
                const std::size_t which = random() % lent.size();
                rings.give_back(lent[which].index);
                lent.erase(lent.begin() + static_cast<std::ptrdiff_t>(which));
                continue;
            }
            const Ring ring = random() % 4 == 0 ? rings.take_at_hand(Pick::kNext)
                                                : rings.take_in_turn(8449 + random() % 100'000);
            ++(ring.none() ? refused : taken);
            if (ring.none()) continue;
            ASSERT_TRUE(plan.holds(ring.place, ring.bytes));
            for (const Ring& other : lent) {
                ASSERT_NE(other.index, ring.index);
                ASSERT_TRUE(other.place + other.bytes <= ring.place ||
                            ring.place + ring.bytes <= other.place);
            }
            lent.push_back(ring);
        }
        EXPECT_GT(taken, 1000U);
        EXPECT_GT(refused, 100U);
    }
}

}  // namespace
}  // namespace velo::rma
