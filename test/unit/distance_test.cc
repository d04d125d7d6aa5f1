// How far a peer is, from looks that take long or not.
#include "endpoint/distance.h"

#include <gtest/gtest.h>

namespace velo::test {
namespace {

using endpoint::Distance;

constexpr std::uint64_t kShort = Distance::kNearNs - 1, kLong = Distance::kFarNs;

class DistanceTest : public ::testing::Test {
 protected:
    // One judgement, of which one look takes `shortest` and the others are long. Whether it changed the
    // answer.
    bool judge(std::uint64_t shortest) {
        bool changed = false;
        for (std::uint32_t look = 0; look < Distance::kLooks; ++look)
            changed |= distance.looked(++written, look == 1 ? shortest : 10 * kLong);
        return changed;
    }

    Distance distance;
    std::uint64_t written = 0;
};

TEST_F(DistanceTest, a_peer_is_near_until_looked_at_and_the_first_judgement_counts) {
    EXPECT_FALSE(distance.far());
    EXPECT_TRUE(judge(kLong));
    EXPECT_TRUE(distance.far());
}

TEST_F(DistanceTest, one_short_look_of_each_judgement_means_near) {
    for (int i = 0; i < 10; ++i) EXPECT_FALSE(judge(kShort));
    EXPECT_FALSE(distance.far());
}

TEST_F(DistanceTest, a_change_must_show_in_judgements_that_follow_each_other) {
    judge(kShort);
    for (int i = 0; i < 5; ++i) {
        EXPECT_FALSE(judge(kLong));
        EXPECT_FALSE(judge(kShort));
    }
    EXPECT_FALSE(judge(kLong));
    EXPECT_TRUE(judge(kLong));
    EXPECT_TRUE(distance.far());
    EXPECT_FALSE(judge(kShort));
    EXPECT_TRUE(judge(kShort));
    EXPECT_FALSE(distance.far());
}

TEST_F(DistanceTest, what_takes_no_longer_than_far_and_no_less_than_near_changes_nothing) {
    for (const bool far : {false, true}) {
        const std::uint64_t sure = far ? kLong : kShort;
        judge(sure);
        judge(sure);
        for (const std::uint64_t between : {Distance::kNearNs, Distance::kFarNs - 1}) {
            EXPECT_FALSE(judge(between));
            EXPECT_FALSE(judge(between));
            EXPECT_EQ(distance.far(), far);
        }
    }
    judge(kShort);
    EXPECT_TRUE(judge(kShort));
}

TEST_F(DistanceTest, a_line_that_is_as_it_was_says_nothing) {
    distance.looked(++written, kLong);
    for (int i = 0; i < 100; ++i) EXPECT_FALSE(distance.looked(written, kShort));
    for (std::uint32_t look = 1; look < Distance::kLooks; ++look) distance.looked(++written, kLong);
    EXPECT_TRUE(distance.far());
}

TEST_F(DistanceTest, looks_are_due_at_each_message_until_the_first_judgement_and_rarely_after_it) {
    for (int i = 0; i < 20; ++i) EXPECT_TRUE(distance.due());
    judge(kShort);
    distance.due();
    std::uint32_t due = 0;
    for (std::uint32_t i = 0; i < 10 * Distance::kMessagesPerLook; ++i) due += distance.due();
    EXPECT_EQ(due, 10U);
}

TEST_F(DistanceTest, a_message_passes_unless_a_look_is_due_and_counts_if_it_does) {
    EXPECT_FALSE(distance.passes());
    EXPECT_TRUE(distance.due());
    judge(kShort);
    EXPECT_TRUE(distance.due());
    for (std::uint32_t i = 1; i < Distance::kMessagesPerLook; ++i) EXPECT_TRUE(distance.passes());
    EXPECT_FALSE(distance.passes());
    EXPECT_TRUE(distance.due());
    EXPECT_TRUE(distance.passes());
}

}  // namespace
}  // namespace velo::test
