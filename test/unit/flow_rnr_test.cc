#include <gtest/gtest.h>

#include <string>

#include "flow/refusal.h"
#include "flow_testing.h"

namespace velo::flow {
namespace {

PolicyConfig config_with(std::uint32_t buffers, std::uint64_t timer_ns) {
    PolicyConfig config = config_of(3, 0, 2);
    config.preposted_buffers = buffers;
    config.rnr_timer_ns = timer_ns;
    return config;
}

Refusal& refusal_of(Policy& policy) {
    return *policy.extensions().refusal;
}

TEST(RnrPolicy, CountsNoCreditsAndHasTheMailboxRefuse) {
    // Liu & Panda, 4.1: "there is no need to keep track of flow control information".
    for (std::uint32_t buffers : {100U, 10U, 1U}) {
        const auto policy = open_policy("rnr", config_with(buffers, 10), 0);

        EXPECT_FALSE(policy->limited());
        EXPECT_EQ(refusal_of(*policy).refusal_limit(), buffers);
        EXPECT_EQ(policy->quiet_packets(0), UINT32_MAX);
        EXPECT_EQ(mailbox_plan("rnr", policy->config()).total(), 3 * buffers);
    }
}

TEST(RnrPolicy, HoldsARefusedPacketForTheTimer) {
    const auto policy = open_policy("rnr", config_with(10, 640'000), 0);

    EXPECT_EQ(refusal_of(*policy).retry_at_ns(1), 0U);
    refusal_of(*policy).refused(1, 5'000'000);

    EXPECT_EQ(refusal_of(*policy).retry_at_ns(1), 5'640'000U);
    EXPECT_EQ(refusal_of(*policy).retry_at_ns(0), 0U) << "another pair is not held";
}

TEST(RnrPolicy, RetriesWithoutLimit) {
    const auto policy = open_policy("rnr", config_with(1, 10), 0);
    std::uint64_t now = 0;

    for (int attempt = 0; attempt < 1000; ++attempt) {
        ASSERT_GE(now, refusal_of(*policy).retry_at_ns(2));
        refusal_of(*policy).refused(2, now);
        now = refusal_of(*policy).retry_at_ns(2);
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
