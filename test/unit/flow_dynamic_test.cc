#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "flow_testing.h"

namespace velo::flow {
namespace {

using SentList = std::vector<Sent>;
using Level = DynamicPolicy::Level;

// Retrieves from `from`, as far as its credits go, until `done`. False if that takes more than `patience`
// packets.
template <class Done>
bool retrieve_until(DynamicPolicy& policy, PeerIndex from, Emitter& out, Done done, int patience = 10000) {
    for (; patience > 0 && !done(); --patience) {
        if (policy.peer(from).current == 0) return false;
        policy.data_retrieved(from, out);
        EXPECT_EQ(policy.violation(), "");
    }
    return done();
}

// Two peers with 20 slots each, n = 1. Peer 0 is idle but has been given `idle_credits`; peer 1 is active
// enough for the policy to block peer 0.
class Blocked : public ::testing::Test {
 protected:
    void SetUp() override { policy_.open_window(1, 100); }

    // Makes peer 0 a victim whose credits are above the floor.
    void block_peer_0() {
        retrieve_data(policy_, 0, 1, out_);  // a lot of 11 is granted
        ASSERT_GT(policy_.peer(0).current, 1U);
        out_.take();
        ASSERT_TRUE(retrieve_until(policy_, 1, out_, [&] { return policy_.blocked(0); }));
    }
    bool requested() const { return std::count(out_.sent.begin(), out_.sent.end(), request(0)) == 1; }

    DynamicPolicy policy_{config_of(2, 40, 1)};
    Recorder out_;
};

TEST(DynamicPolicy, StartsWithTheFloorAndKeepsTheRestAvailable) {
    const DynamicPolicy policy(config_of(3, 30, 2));

    EXPECT_EQ(policy.available(), 24U);
    for (PeerIndex q = 0; q < 3; ++q) {
        EXPECT_EQ(policy.peer(q).current, 2U);
        EXPECT_EQ(policy.intended(q), 10U);
        EXPECT_EQ(policy.level(q), Level::kLow);
        for (std::uint32_t i = 0; i <= 2; ++i) EXPECT_EQ(policy.threshold(q, i), 1U);
    }
}

// Quotas of which n + 1 lots of T(I) are more than I + 1, and one that they divide.
TEST(DynamicPolicy, LetsEachOfManyBusySendersHoldItsQuotaAndNoMore) {
    for (const std::uint32_t quota : {6U, 48U, 49U, 50U}) {
        DynamicPolicy policy(config_of(20, 20 * quota, 2));
        Recorder out;
        // As often as it takes to use up what has been granted below the quota.
        for (int round = 0; round < 40; ++round)
            for (PeerIndex q = 0; q < 20; ++q) retrieve_data(policy, q, policy.peer(q).current, out);
        for (PeerIndex q = 0; q < 20; ++q) {
            EXPECT_EQ(policy.peer(q).current + policy.peer(q).retrieved, quota) << "peer " << q;
            EXPECT_EQ(policy.intended(q), quota) << "peer " << q;
        }
        EXPECT_EQ(policy.counters().steals, 0U) << quota;
    }
}

TEST(DynamicPolicy, RaisesTheLevelOfASenderAtEachMonitoringPoint) {
    DynamicPolicy policy(config_of(2, 40, 1));
    Recorder out;
    retrieve_data(policy, 0, 1, out);
    EXPECT_EQ(policy.level(0), Level::kLow);  // one crossing, a monitoring point takes n + 1

    retrieve_data(policy, 0, 1, out);

    EXPECT_EQ(policy.level(0), Level::kMedium);
    EXPECT_TRUE(retrieve_until(
        policy, 0, out, [&] { return policy.level(0) == Level::kHigh; }, 100));
}

TEST(DynamicPolicy, StealsFromTheLeastRecentlyActiveSenderOfTheLowestLevel) {
    DynamicPolicy policy(config_of(3, 60, 2));
    Recorder out;

    ASSERT_TRUE(retrieve_until(policy, 0, out, [&] { return policy.counters().steals > 0; }));

    EXPECT_EQ(policy.intended(0), 23U);  // Eq 6.1 with equal quotas: n + 1
    EXPECT_EQ(policy.intended(2), 17U);
    EXPECT_EQ(policy.intended(1), 20U);
    EXPECT_EQ(policy.level(2), Level::kMedium);
}

TEST(DynamicPolicy, NeverIntendsMoreThanTheMaximum) {
    PolicyConfig config = config_of(3, 60, 2);
    config.intended_max = 25;
    DynamicPolicy policy(config);
    Recorder out;

    ASSERT_TRUE(retrieve_until(policy, 0, out, [&] { return policy.intended(0) == 25; }));
    EXPECT_FALSE(retrieve_until(
        policy, 0, out, [&] { return policy.intended(0) != 25; }, 2000));

    EXPECT_EQ(policy.intended(0) + policy.intended(1) + policy.intended(2), 60U);
}

TEST(DynamicPolicy, LeavesEveryIdleSenderItsFloor) {
    DynamicPolicy policy(config_of(4, 80, 3));
    Recorder out;
    for (PeerIndex q = 0; q < 4; ++q) policy.open_window(q, 3);

    ASSERT_TRUE(retrieve_until(policy, 0, out, [&] { return policy.intended(0) == 80 - 3 * 3; }));

    for (PeerIndex q = 1; q < 4; ++q) {
        EXPECT_EQ(policy.intended(q), 3U);
        EXPECT_EQ(policy.level(q), Level::kNull);
        EXPECT_FALSE(policy.blocked(q));  // it never held more than the floor: nothing to ask for
    }
}

TEST(DynamicPolicy, GivesANullSenderItsQuotaBackAfterAPhaseChange) {
    DynamicPolicy policy(config_of(2, 40, 2));
    Recorder out;
    policy.open_window(0, 10);
    ASSERT_TRUE(retrieve_until(policy, 0, out, [&] { return policy.level(1) == Level::kNull; }));
    ASSERT_EQ(policy.intended(1), 2U);

    // The phase changes: peer 0 is silent but for its answer to a request, peer 1 sends.
    const bool recovered = retrieve_until(policy, 1, out, [&] {
        if (policy.blocked(0)) {
            const std::uint32_t excess = policy.peer(0).current - 2;
            policy.response_retrieved(0, excess, out);
        }
        return policy.intended(1) == 38;
    });

    EXPECT_TRUE(recovered);
    EXPECT_EQ(policy.intended(0), 2U);
    EXPECT_EQ(policy.level(0), Level::kNull);
    EXPECT_TRUE(retrieve_until(policy, 1, out, [&] { return policy.peer(1).current >= 20; }));
}

TEST(DynamicPolicy, GivesASparePeerMoreThanItsFloorOnceItIsActive) {
    PolicyConfig config = config_of(2, 40, 2);
    config.spare_peers = 1;
    DynamicPolicy policy(config);
    Recorder out;
    ASSERT_EQ(policy.level(2), Level::kNull);

    EXPECT_TRUE(retrieve_until(policy, 2, out, [&] { return policy.intended(2) > 20; }));
}

TEST(DynamicPolicy, PutsNoMoreCreditsIntoADataPacketThanAreAvailable) {
    DynamicPolicy policy(config_of(2, 12, 1));
    Recorder out;
    // Peer 1 and peer 0 take all that is available; peer 0's next slots come free one by one.
    ASSERT_TRUE(retrieve_until(
                    policy, 1, out, [&] { return policy.available() == 0; }, 100) ||
                retrieve_until(
                    policy, 0, out, [&] { return policy.available() == 0; }, 100));

    const std::uint32_t available = policy.available();
    const std::uint32_t credits = policy.piggyback(0, out);

    EXPECT_LE(credits, available);
    EXPECT_EQ(policy.violation(), "");
}

TEST(DynamicPolicy, CountsEarlyCreditsTowardsTheNextThreshold) {
    DynamicPolicy policy(config_of(1, 20, 1));
    Recorder out;
    retrieve_data(policy, 0, 2, out);  // uses up the two initial thresholds of 1
    const std::uint32_t threshold = policy.threshold(0, 0);
    ASSERT_GT(threshold, 3U);
    out.take();

    retrieve_data(policy, 0, 2, out);
    EXPECT_EQ(policy.piggyback(0, out), 2U);
    EXPECT_EQ(policy.piggybacked(0), 2U);
    retrieve_data(policy, 0, threshold - 2, out);
    policy.piggyback(0, out);

    EXPECT_EQ(policy.piggybacked(0), 0U);  // the threshold was crossed
    EXPECT_EQ(policy.violation(), "");
}

TEST(DynamicPolicy, KeepsEveryCountWithin16BitsAtTheLargestQuota) {
    DynamicPolicy policy(config_of(1, 65533, 2));
    Recorder out;
    for (int i = 0; i < 300000; ++i) {
        policy.data_retrieved(0, out);
        if (i % 7 == 0) {
            const std::uint32_t credits = policy.piggyback(0, out);
            ASSERT_LE(credits, kMaxQuota);
        }
        if (i % 1000 == 0) {
            ASSERT_EQ(policy.violation(), "");
        }
    }
    for (const Sent& sent : out.take()) ASSERT_LE(sent.value, kMaxQuota);
}

TEST_F(Blocked, SenderIsAskedAtOnceIfThereIsACreditForTheRequest) {
    policy_.open_window(0, 2);

    block_peer_0();

    EXPECT_TRUE(requested());
    EXPECT_EQ(policy_.credits(0), 1U);
    EXPECT_FALSE(policy_.control_waiting(0));
}

TEST_F(Blocked, SenderWithoutACreditForTheRequestIsAskedLater) {
    policy_.open_window(0, 0);

    block_peer_0();
    EXPECT_FALSE(requested());
    EXPECT_TRUE(policy_.control_waiting(0));
    policy_.send_waiting_control(0, out_);
    EXPECT_FALSE(requested());

    policy_.credit_received(0, 1);
    policy_.send_waiting_control(0, out_);

    EXPECT_TRUE(requested());
    EXPECT_EQ(policy_.credits(0), 0U);
    EXPECT_FALSE(policy_.control_waiting(0));
}

TEST_F(Blocked, SenderGetsARequestBeforeAResponseIfThereIsOneCreditForBoth) {
    policy_.open_window(0, 0);
    block_peer_0();
    out_.take();
    policy_.request_retrieved(0, out_);  // peer 0 asks for our excess in turn
    out_.take();
    ASSERT_TRUE(policy_.request_waiting(0));
    ASSERT_TRUE(policy_.response_waiting(0));

    policy_.credit_received(0, 1);
    policy_.send_waiting_control(0, out_);
    EXPECT_EQ(out_.take(), SentList{request(0)});
    EXPECT_TRUE(policy_.control_waiting(0));

    policy_.credit_received(0, 1);
    policy_.send_waiting_control(0, out_);
    EXPECT_EQ(out_.take(), SentList{response(0, 0)});
    EXPECT_FALSE(policy_.control_waiting(0));
    EXPECT_EQ(policy_.violation(), "");
}

TEST_F(Blocked, SenderIsGivenNothingWithDataWhileItIsBlocked) {
    policy_.open_window(0, 2);
    block_peer_0();
    retrieve_data(policy_, 0, 1, out_);

    EXPECT_EQ(policy_.piggyback(0, out_), 0U);
    EXPECT_EQ(policy_.peer(0).retrieved, 1U);
}

TEST_F(Blocked, SenderKeepsItsFloorAndItsProgressIsNotForgotten) {
    policy_.open_window(0, 2);
    block_peer_0();
    out_.take();

    // It uses up all it has. At the floor of one credit it gets no more than one back for one.
    while (policy_.peer(0).current > 1) retrieve_data(policy_, 0, 1, out_);
    EXPECT_TRUE(std::none_of(out_.sent.begin(), out_.sent.end(), [](const Sent& s) { return s.value > 1; }));

    policy_.response_retrieved(0, 0, out_);
    EXPECT_EQ(policy_.violation(), "");
    EXPECT_FALSE(policy_.blocked(0));
    EXPECT_GE(policy_.peer(0).current, 1U);
}

TEST_F(Blocked, SenderThatAnswersGivesItsExcessToTheOthers) {
    policy_.open_window(0, 2);
    block_peer_0();
    const std::uint32_t available = policy_.available();
    const std::uint32_t excess = policy_.peer(0).current - 1;

    policy_.response_retrieved(0, excess, out_);

    // The excess and the slot of the RESP itself, less the one credit that goes back for it.
    EXPECT_EQ(policy_.available(), available + excess);
    EXPECT_EQ(policy_.peer(0).current, 1U);
    EXPECT_EQ(policy_.intended(0), 1U);
    EXPECT_EQ(policy_.violation(), "");
}

TEST(CompulsoryReturn, GivesBackAllButTheFloorAndPaysForItself) {
    DynamicPolicy policy(config_of(2, 40, 2));
    Recorder out;
    policy.open_window(0, 9);

    policy.request_retrieved(0, out);

    EXPECT_EQ(out.sent.back(), response(0, 7));
    EXPECT_EQ(policy.credits(0), 1U);  // S - 1
}

TEST(CompulsoryReturn, AnswersWithNothingIfThereIsNoExcess) {
    DynamicPolicy policy(config_of(2, 40, 2));
    Recorder out;
    policy.open_window(0, 2);

    policy.request_retrieved(0, out);

    EXPECT_EQ(out.sent.back(), response(0, 0));
    EXPECT_EQ(policy.credits(0), 1U);
}

TEST(CompulsoryReturn, ComputesTheExcessWhenTheResponseLeaves) {
    DynamicPolicy policy(config_of(2, 40, 2));
    Recorder out;
    policy.open_window(0, 0);
    policy.request_retrieved(0, out);
    out.take();
    ASSERT_TRUE(policy.response_waiting(0));

    policy.credit_received(0, 6);
    policy.send_waiting_control(0, out);

    EXPECT_EQ(out.take(), SentList{response(0, 4)});
    EXPECT_EQ(policy.credits(0), 1U);
}

TEST(CompulsoryReturn, CountsTheRequestAsARetrievedPacket) {
    DynamicPolicy policy(config_of(2, 40, 1));
    Recorder out;
    policy.open_window(0, 5);

    policy.request_retrieved(0, out);

    EXPECT_EQ(out.take(), (SentList{credit(0, 11), response(0, 4)}));
    EXPECT_EQ(policy.violation(), "");
}

}  // namespace
}  // namespace velo::flow
