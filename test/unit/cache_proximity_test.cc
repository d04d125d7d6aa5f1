// How far a peer is, from looks that take long or not.
#include "engine/peers/cache_proximity.h"

#include <gtest/gtest.h>

namespace velo::test {
namespace {

using engine::CacheProximity;

constexpr std::uint64_t kShort = CacheProximity::kNearNs - 1, kLong = CacheProximity::kFarNs;

class CacheProximityTest : public ::testing::Test {
 protected:
    // One judgement, of which one look takes `shortest` and the others are long. Whether it changed the
    // answer.
    bool judge(std::uint64_t shortest) {
        bool changed = false;
        for (std::uint32_t look = 0; look < CacheProximity::kLooks; ++look)
            changed |= proximity.record(++written, look == 1 ? shortest : 10 * kLong);
        return changed;
    }

    CacheProximity proximity;
    std::uint64_t written = 0;
};

TEST_F(CacheProximityTest, a_peer_is_near_until_looked_at_and_the_first_judgement_counts) {
    EXPECT_FALSE(proximity.far());
    EXPECT_TRUE(judge(kLong));
    EXPECT_TRUE(proximity.far());
}

TEST_F(CacheProximityTest, one_short_look_of_each_judgement_means_near) {
    for (int i = 0; i < 10; ++i) EXPECT_FALSE(judge(kShort));
    EXPECT_FALSE(proximity.far());
}

TEST_F(CacheProximityTest, a_change_must_show_in_judgements_that_follow_each_other) {
    judge(kShort);
    for (int i = 0; i < 5; ++i) {
        EXPECT_FALSE(judge(kLong));
        EXPECT_FALSE(judge(kShort));
    }
    EXPECT_FALSE(judge(kLong));
    EXPECT_TRUE(judge(kLong));
    EXPECT_TRUE(proximity.far());
    EXPECT_FALSE(judge(kShort));
    EXPECT_TRUE(judge(kShort));
    EXPECT_FALSE(proximity.far());
}

TEST_F(CacheProximityTest, what_takes_no_longer_than_far_and_no_less_than_near_changes_nothing) {
    for (const bool far : {false, true}) {
        const std::uint64_t sure = far ? kLong : kShort;
        judge(sure);
        judge(sure);
        for (const std::uint64_t between : {CacheProximity::kNearNs, CacheProximity::kFarNs - 1}) {
            EXPECT_FALSE(judge(between));
            EXPECT_FALSE(judge(between));
            EXPECT_EQ(proximity.far(), far);
        }
    }
    judge(kShort);
    EXPECT_TRUE(judge(kShort));
}

TEST_F(CacheProximityTest, a_line_that_is_as_it_was_says_nothing) {
    proximity.record(++written, kLong);
    for (int i = 0; i < 100; ++i) EXPECT_FALSE(proximity.record(written, kShort));
    for (std::uint32_t look = 1; look < CacheProximity::kLooks; ++look) proximity.record(++written, kLong);
    EXPECT_TRUE(proximity.far());
}

TEST_F(CacheProximityTest, looks_are_due_at_each_message_until_the_first_judgement_and_rarely_after_it) {
    for (int i = 0; i < 20; ++i) EXPECT_TRUE(proximity.count_message());
    judge(kShort);
    proximity.count_message();
    std::uint32_t due = 0;
    for (std::uint32_t i = 0; i < 10 * CacheProximity::kMessagesPerLook; ++i)
        due += proximity.count_message();
    EXPECT_EQ(due, 10U);
}

TEST_F(CacheProximityTest, a_message_passes_unless_a_look_is_due_and_counts_if_it_does) {
    EXPECT_FALSE(proximity.try_count_message());
    EXPECT_TRUE(proximity.count_message());
    judge(kShort);
    EXPECT_TRUE(proximity.count_message());
    for (std::uint32_t i = 1; i < CacheProximity::kMessagesPerLook; ++i)
        EXPECT_TRUE(proximity.try_count_message());
    EXPECT_FALSE(proximity.try_count_message());
    EXPECT_TRUE(proximity.count_message());
    EXPECT_TRUE(proximity.try_count_message());
}

}  // namespace
}  // namespace velo::test
