#include <gtest/gtest.h>

#include <string>

#include "flow_testing.h"

namespace velo::flow {
namespace {

PolicyConfig config_with(std::uint32_t buffers, std::uint64_t timer_ns) {
    PolicyConfig config = config_of(3, 0, 2);
    config.preposted_buffers = buffers;
    config.rnr_timer_ns = timer_ns;
    return config;
}

TEST(RnrPolicy, CountsNoCreditsAndHasTheMailboxRefuse) {
    // Liu & Panda, 4.1: "there is no need to keep track of flow control information".
    for (std::uint32_t buffers : {100U, 10U, 1U}) {
        const auto policy = open_policy("rnr", config_with(buffers, 10), 0);

        EXPECT_FALSE(policy->limited());
        EXPECT_EQ(policy->refusal_limit(), buffers);
        EXPECT_EQ(policy->quiet_packets(0), UINT32_MAX);
        EXPECT_EQ(mailbox_plan("rnr", policy->config()).total(), 3 * buffers);
    }
    for (const char* other : {"none", "static", "dynamic"})
        EXPECT_EQ(open_policy(other, config_of(3, 12, 2), 0)->refusal_limit(), UINT32_MAX);
}

TEST(RnrPolicy, HoldsARefusedPacketForTheTimer) {
    const auto policy = open_policy("rnr", config_with(10, 640'000), 0);

    EXPECT_EQ(policy->retry_at_ns(1), 0U);
    policy->refused(1, 5'000'000);

    EXPECT_EQ(policy->retry_at_ns(1), 5'640'000U);
    EXPECT_EQ(policy->retry_at_ns(0), 0U) << "another pair is not held";
}

TEST(RnrPolicy, RetriesWithoutLimit) {
    const auto policy = open_policy("rnr", config_with(1, 10), 0);
    std::uint64_t now = 0;

    for (int attempt = 0; attempt < 1000; ++attempt) {
        ASSERT_GE(now, policy->retry_at_ns(2));
        policy->refused(2, now);
        now = policy->retry_at_ns(2);
    }

    EXPECT_EQ(now, 10'000U);
    EXPECT_EQ(policy->counters().refusals, 1000U);
}

TEST(RnrPolicy, NamesTheParameterThatIsWrong) {
    std::string error;
    EXPECT_EQ(make_policy("rnr", config_with(10, 0), &error), nullptr);
    EXPECT_NE(error.find("btl_velo_rnr_timer_ns is 0"), std::string::npos) << error;
    EXPECT_EQ(make_policy("rnr", config_with(0, 10), &error), nullptr);
    EXPECT_NE(error.find("btl_velo_preposted_buffers is 0"), std::string::npos) << error;
}

}  // namespace
}  // namespace velo::flow
