// The user-level schemes of Liu & Panda, event by event. Quotations name the section of their paper.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "flow/backlog.h"
#include "flow_testing.h"

namespace velo::flow {
namespace {

using SentList = std::vector<Sent>;

PolicyConfig buffers_of(std::uint32_t peers, std::uint32_t preposted) {
    PolicyConfig config = config_of(peers, 0, 2);
    config.preposted_buffers = preposted;
    return config;
}

TEST(MvapichStatic, StartsWithACreditForEachPrepostedBuffer) {
    // 4.2: "the number of credits for each sender is equal to the number of pre-posted buffers".
    for (std::uint32_t buffers : {100U, 10U, 1U}) {
        const PolicyConfig config = buffers_of(3, buffers);
        const auto policy = open_policy("mvapich_static", config, 0);

        EXPECT_EQ(initial_credit("mvapich_static", config, 2), buffers);
        EXPECT_EQ(policy->peer(2).current, buffers);
        EXPECT_EQ(policy->intended(2), buffers);
        EXPECT_EQ(policy->violation(), "");
    }
}

TEST(MvapichStatic, SendsAnExplicitCreditMessageForFiveFreedBuffers) {
    // 6.3.1: "Currently we use a relatively small threshold value of 5."
    const auto policy = open_policy("mvapich_static", buffers_of(1, 10), 10);
    Recorder out;

    retrieve_data(*policy, 0, 4, out);
    EXPECT_EQ(out.take(), SentList{});
    retrieve_data(*policy, 0, 1, out);
    EXPECT_EQ(out.take(), SentList{credit(0, 5)});
    retrieve_data(*policy, 0, 5, out);
    EXPECT_EQ(out.take(), SentList{credit(0, 5)});
}

TEST(MvapichStatic, SendsItWithoutACreditOfItsOwn) {
    // 4.2, optimistic: "explicit credit messages are not subject to user-level flow control".
    const auto policy = open_policy("mvapich_static", buffers_of(1, 5), 0);
    Recorder out;

    retrieve_data(*policy, 0, 5, out);

    EXPECT_EQ(out.take(), SentList{credit(0, 5)});
    EXPECT_EQ(policy->credits(0), 0U);
}

TEST(MvapichStatic, NeedsNoExplicitMessagesWhereTrafficIsSymmetric) {
    // Table 1: next to none for all programs but LU.
    const auto policy = open_policy("mvapich_static", buffers_of(1, 10), 10);
    Recorder out;

    for (int i = 0; i < 1000; ++i) {
        retrieve_data(*policy, 0, 1, out);
        EXPECT_EQ(policy->piggyback(0, out), 1U);
    }

    EXPECT_EQ(out.take(), SentList{});
}

TEST(MvapichStatic, LowersTheThresholdToTheNumberOfBuffers) {
    // With one buffer and a threshold of 5, one-way traffic would stop after the first packet.
    const auto policy = open_policy("mvapich_static", buffers_of(1, 1), 1);
    Recorder out;

    retrieve_data(*policy, 0, 1, out);
    retrieve_data(*policy, 0, 1, out);

    EXPECT_EQ(out.take(), (SentList{credit(0, 1), credit(0, 1)}));
}

TEST(MvapichStatic, TakesALargerThreshold) {
    // 6.3.1: "Performance can be improved by increasing this value for LU."
    PolicyConfig config = buffers_of(1, 100);
    config.credit_message_threshold = 40;
    const auto policy = open_policy("mvapich_static", config, 100);
    Recorder out;

    retrieve_data(*policy, 0, 80, out);

    EXPECT_EQ(out.take(), (SentList{credit(0, 40), credit(0, 40)}));
    EXPECT_EQ(mailbox_plan("mvapich_static", config).credit_packets, 2U);
}

TEST(MvapichStatic, SizesTheMailboxFromItsBuffersAndNotFromSlotsPerPeer) {
    PolicyConfig config = buffers_of(3, 100);
    config.spare_peers = 2;
    config.data_slots = 12345;

    const MailboxPlan plan = mailbox_plan("mvapich_static", config);

    EXPECT_EQ(plan.data_slots, 500U);
    EXPECT_EQ(plan.credit_packets, 20U);  // 100 div 5
    EXPECT_EQ(plan.control_slots, 100U);
    EXPECT_NE(open_policy("mvapich_static", config, 100), nullptr);
}

TEST(MvapichStatic, NamesTheParameterThatIsWrong) {
    for (std::uint32_t buffers : {0U, 65536U}) {
        std::string error;
        EXPECT_EQ(make_policy("mvapich_static", buffers_of(1, buffers), &error), nullptr);
        EXPECT_NE(error.find("btl_velo_preposted_buffers is " + std::to_string(buffers)), std::string::npos)
            << error;
    }
    PolicyConfig config = buffers_of(1, 10);
    config.credit_message_threshold = 0;
    std::string error;
    EXPECT_EQ(make_policy("mvapich_static", config, &error), nullptr);
    EXPECT_NE(error.find("btl_velo_credit_message_threshold is 0"), std::string::npos) << error;
    config.credit_message_threshold = 5;
    config.peers = 65535;
    config.preposted_buffers = 65535;
    EXPECT_EQ(make_policy("mvapich_static", config, &error), nullptr);
    EXPECT_NE(error.find("mvapich_static"), std::string::npos) << error;
}

// ---- section 4.3 ---

PolicyConfig growing(std::uint32_t peers, std::uint32_t slots, std::uint32_t initial, std::uint32_t growth) {
    PolicyConfig config = config_of(peers, slots, 2);
    config.initial_buffers = initial;
    config.growth_buffers = growth;
    return config;
}

void retrieve_backlogged(Policy& policy, PeerIndex from, Emitter& out) {
    ASSERT_GT(policy.peer(from).current, 0U);
    policy.extensions().backlog->backlogged_data_retrieved(from, out);
    ASSERT_EQ(policy.violation(), "");
}

TEST(MvapichDynamic, StartsSmallAndAsksToBeToldOfTheBacklog) {
    const PolicyConfig config = growing(3, 300, 1, 1);
    const auto policy = open_policy("mvapich_dynamic", config, 1);

    EXPECT_EQ(initial_credit("mvapich_dynamic", config, 0), 1U);
    EXPECT_EQ(policy->intended(0), 1U);
    EXPECT_NE(policy->extensions().backlog, nullptr);
}

TEST(MvapichDynamic, GrowsByAFixedNumberForEachBackloggedPacket) {
    // 4.3: "When a process receives a message that has gone through the backlog queue, it takes action".
    const auto policy = open_policy("mvapich_dynamic", growing(1, 100, 1, 3), 1);
    Recorder out;

    retrieve_backlogged(*policy, 0, out);
    EXPECT_EQ(out.take(), SentList{credit(0, 4)});
    retrieve_backlogged(*policy, 0, out);
    EXPECT_EQ(out.take(), SentList{});  // 4 of 7 are free, and 5 are worth a message

    EXPECT_EQ(policy->intended(0), 7U);
    EXPECT_EQ(policy->counters().growths, 2U);
    EXPECT_EQ(policy->counters().grown_buffers, 6U);
}

TEST(MvapichDynamic, DoublesItsBuffersWhenGrowthIsExponential) {
    const auto policy = open_policy("mvapich_dynamic", growing(1, 200, 1, 0), 1);
    Recorder out;

    for (std::uint32_t expected : {2U, 4U, 8U, 16U, 32U, 64U, 100U, 100U}) {
        retrieve_backlogged(*policy, 0, out);
        EXPECT_EQ(policy->intended(0), expected);
    }
}

TEST(MvapichDynamic, DoesNotGrowForPacketsThatLeftAtOnce) {
    const auto policy = open_policy("mvapich_dynamic", growing(1, 100, 4, 2), 4);
    Recorder out;

    retrieve_data(*policy, 0, 4, out);

    EXPECT_EQ(policy->intended(0), 4U);
    EXPECT_EQ(out.take(), SentList{credit(0, 4)});
}

TEST(MvapichDynamic, NeverShrinksAndNeverPassesItsCeilingOrThePool) {
    PolicyConfig config = growing(2, 12, 2, 3);
    config.preposted_buffers = 9;
    const auto policy = open_policy("mvapich_dynamic", config, 2);
    Recorder out;

    for (std::uint32_t expected : {5U, 8U, 9U, 9U}) {
        retrieve_backlogged(*policy, 0, out);
        EXPECT_EQ(policy->intended(0), expected);
    }
    // Of the 12 slots, 9 are taken and 2 belong to the other from the start.
    for (std::uint32_t expected : {3U, 3U}) {
        retrieve_backlogged(*policy, 1, out);
        EXPECT_EQ(policy->intended(1), expected);
    }
    retrieve_data(*policy, 0, 5, out);
    EXPECT_EQ(policy->intended(0), 9U);
}

TEST(MvapichDynamic, RaisesTheThresholdWithTheBuffersUpToFive) {
    // 6.3.1: "a relatively small threshold value of 5", which 1 buffer cannot reach, and 7 can.
    const PolicyConfig config = growing(1, 100, 1, 3);
    const auto policy = open_policy("mvapich_dynamic", config, 1);
    Recorder out;
    EXPECT_EQ(policy->peer(0).threshold, 1U);
    retrieve_backlogged(*policy, 0, out);
    EXPECT_EQ(policy->peer(0).threshold, 4U);
    EXPECT_EQ(out.take(), SentList{credit(0, 4)});
    retrieve_backlogged(*policy, 0, out);
    EXPECT_EQ(policy->peer(0).threshold, 5U);

    retrieve_data(*policy, 0, 1, out);
    EXPECT_EQ(out.take(), SentList{credit(0, 5)});
    retrieve_data(*policy, 0, 4, out);
    EXPECT_EQ(out.take(), SentList{});
    retrieve_data(*policy, 0, 1, out);
    EXPECT_EQ(out.take(), SentList{credit(0, 5)});
    EXPECT_EQ(mailbox_plan("mvapich_dynamic", config).credit_packets, 20U);  // 100 div 5
}

TEST(MvapichDynamic, LowersTheThresholdAgainForWhoeverComesAfterADepartedPeer) {
    const auto policy = open_policy("mvapich_dynamic", growing(1, 100, 1, 9), 1);
    Recorder out;
    retrieve_backlogged(*policy, 0, out);
    out.take();
    ASSERT_EQ(policy->peer(0).threshold, 5U);

    ASSERT_TRUE(policy->departed(0, out));

    ASSERT_EQ(policy->violation(), "");
    retrieve_data(*policy, 0, 1, out);  // its only credit
    EXPECT_EQ(out.take(), SentList{credit(0, 1)});
}

TEST(MvapichDynamic, NamesTheParametersThatDoNotFit) {
    std::string error;
    EXPECT_EQ(make_policy("mvapich_dynamic", growing(1, 100, 0, 1), &error), nullptr);
    EXPECT_NE(error.find("btl_velo_initial_buffers is 0"), std::string::npos) << error;
    EXPECT_EQ(make_policy("mvapich_dynamic", growing(1, 1000, 101, 1), &error), nullptr);
    EXPECT_NE(error.find("btl_velo_preposted_buffers=100"), std::string::npos) << error;
    EXPECT_EQ(make_policy("mvapich_dynamic", growing(4, 100, 26, 1), &error), nullptr);
    EXPECT_NE(error.find("btl_velo_initial_buffers to at most 25"), std::string::npos) << error;
    EXPECT_EQ(make_policy("mvapich_dynamic", growing(1, 100, 1, 70000), &error), nullptr);
    EXPECT_NE(error.find("btl_velo_growth_buffers is 70000"), std::string::npos) << error;
}

}  // namespace
}  // namespace velo::flow
