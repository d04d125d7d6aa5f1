#include <gtest/gtest.h>

#include <vector>

#include "flow_testing.h"

namespace velo::flow {
namespace {

using SentList = std::vector<Sent>;

TEST(StaticPolicy, ReturnsALotEachTimeTheThresholdIsReached) {
    // Figure 5.2 of the thesis: quota 20, two credit slots, threshold 7.
    const auto policy = open_policy("static", config_of(1, 20, 2), 20);
    Recorder out;

    retrieve_data(*policy, 0, 6, out);
    EXPECT_EQ(out.take(), SentList{});
    retrieve_data(*policy, 0, 1, out);
    EXPECT_EQ(out.take(), SentList{credit(0, 7)});
    retrieve_data(*policy, 0, 7, out);
    EXPECT_EQ(out.take(), SentList{credit(0, 7)});
    // What is left of the first 20 packets does not reach the threshold a third time.
    retrieve_data(*policy, 0, 6, out);
    EXPECT_EQ(out.take(), SentList{});
}

TEST(StaticPolicy, PutsAllRetrievedSlotsIntoADataPacket) {
    const auto policy = open_policy("static", config_of(2, 40, 2), 20);
    Recorder out;
    retrieve_data(*policy, 1, 5, out);

    EXPECT_EQ(policy->piggyback(1, out), 5U);

    EXPECT_EQ(policy->piggyback(1, out), 0U);
    EXPECT_EQ(policy->peer(1).current, 20U);
    EXPECT_EQ(policy->violation(), "");
}

TEST(StaticPolicy, NeverPiggybacksWhenThatIsOff) {
    PolicyConfig config = config_of(1, 20, 2);
    config.piggyback = false;
    const auto policy = open_policy("static", config, 20);
    Recorder out;
    retrieve_data(*policy, 0, 5, out);

    EXPECT_EQ(policy->piggyback(0, out), 0U);
    EXPECT_EQ(policy->peer(0).retrieved, 5U);
}

TEST(StaticPolicy, TakesAndGivesBackWindowCredits) {
    const auto policy = open_policy("static", config_of(1, 20, 2), 20);

    policy->take(0, 15);
    EXPECT_EQ(policy->credits(0), 5U);
    policy->credit_received(0, 7);
    EXPECT_EQ(policy->credits(0), 12U);
}

TEST(StaticPolicy, PiggybacksALargestQuotaWithin16Bits) {
    const auto policy = open_policy("static", config_of(1, 65535, 1), 65535);
    Recorder out;
    for (std::uint32_t i = 0; i < 32767; ++i) policy->data_retrieved(0, out);

    EXPECT_EQ(out.take(), SentList{});
    EXPECT_EQ(policy->piggyback(0, out), 32767U);
    EXPECT_EQ(policy->violation(), "");
}

TEST(StaticPolicy, ReportsASenderThatOverranItsWindow) {
    const auto policy = open_policy("static", config_of(1, 2, 1), 2);
    Recorder out;
    policy->data_retrieved(0, out);
    EXPECT_EQ(policy->violation(), "");

    policy->open_window(0, 0);
    policy->take(0, 1);

    EXPECT_NE(policy->violation().find("I1"), std::string::npos);
}

}  // namespace
}  // namespace velo::flow
