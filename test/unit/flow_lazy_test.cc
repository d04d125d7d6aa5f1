// The lazy policy, event by event: n = 2 unless a test says otherwise.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "flow/lazy.h"
#include "flow_testing.h"

namespace velo::flow {
namespace {

using SentList = std::vector<Sent>;
using wire::PacketKind;

Sent hello(PeerIndex to) {
    return {to, PacketKind::kHello, 0};
}
Sent bye(PeerIndex to, std::uint32_t count) {
    return {to, PacketKind::kBye, count};
}
Sent release(PeerIndex to) {
    return {to, PacketKind::kRelease, 0};
}
Sent leave(PeerIndex to) {
    return {to, PacketKind::kLeave, 0};
}

PolicyConfig lazy_config(std::uint32_t peers, std::uint32_t slots, std::uint32_t at_once) {
    PolicyConfig config = config_of(peers, 0, 2);
    config.lazy_slots = slots;
    config.lazy_peers = at_once;
    return config;
}

class LazyTest : public ::testing::Test {
 protected:
    void open(const PolicyConfig& config) { policy_ = std::make_unique<LazyPolicy>(config); }
    void control(PeerIndex from, PacketKind kind, std::uint32_t value = 0) {
        policy_->contact_retrieved(from, kind, value, out_);
        policy_->control_flushed(out_);
        ASSERT_EQ(policy_->violation(), "");
    }
    void credits(PeerIndex from, std::uint32_t count, std::uint32_t sent_at_once) {
        policy_->contact_retrieved(from, PacketKind::kCredit, count, out_);
        policy_->take(policy_->flow_of(from), sent_at_once);
        policy_->control_flushed(out_);
        ASSERT_EQ(policy_->violation(), "");
    }
    void want(PeerIndex to) {
        policy_->credit_wanted(to, out_);
        ASSERT_EQ(policy_->violation(), "");
    }
    void data(PeerIndex from, std::uint32_t count) {
        retrieve_data(*policy_, policy_->flow_of(from), count, out_);
    }
    std::uint32_t window(PeerIndex to) { return policy_->credits(policy_->flow_of(to)); }

    std::unique_ptr<LazyPolicy> policy_;
    Recorder out_;
};

TEST_F(LazyTest, OwesEightBytesToAPeerThatItNeverHeardFrom) {
    const PolicyConfig few = lazy_config(64, 256, 16);
    const PolicyConfig many = lazy_config(262143, 256, 16);

    EXPECT_EQ(LazyPolicy(many).traits().bytes_per_peer, 8U);
    PolicyConfig few_without = few, many_without = many;
    few_without.lazy_ahead = many_without.lazy_ahead = 0;
    EXPECT_EQ(LazyPolicy(many_without).traits().bytes_shared, LazyPolicy(few_without).traits().bytes_shared);
    EXPECT_LT(LazyPolicy(many_without).traits().bytes_shared, 4096U);
    EXPECT_LE(LazyPolicy(many).traits().bytes_shared - LazyPolicy(many_without).traits().bytes_shared, 8192U);
    EXPECT_EQ(mailbox_plan("lazy", many).total() - mailbox_plan("lazy", few).total(), 262143U - 64);
    PolicyConfig doorbells = many;
    doorbells.lazy_doorbell = true;
    EXPECT_EQ(mailbox_plan("lazy", doorbells).total(), 256 + 16 * 5U);
}

TEST_F(LazyTest, OpensAWindowWithItsFirstPacket) {
    open(lazy_config(4, 30, 4));
    EXPECT_EQ(window(2), 0U);

    want(2);
    want(2);
    EXPECT_EQ(out_.take(), SentList{hello(2)});
    EXPECT_EQ(window(2), 0U);

    credits(2, 7, 3);
    EXPECT_EQ(window(2), 4U);
    EXPECT_EQ(window(1), 0U);
}

TEST_F(LazyTest, LeavesRoomForOneMoreThanThoseThatAreActive) {
    open(lazy_config(8, 30, 8));

    control(5, PacketKind::kHello);
    EXPECT_EQ(out_.take(), SentList{credit(5, 15)});
    control(1, PacketKind::kHello);
    EXPECT_EQ(out_.take(), SentList{credit(1, 10)});
    control(7, PacketKind::kHello);

    // 7 would be its share, and 5 are left.
    EXPECT_EQ(out_.take(), SentList{credit(7, 5)});
    EXPECT_EQ(policy_->available(), 0U);
    EXPECT_EQ(policy_->share(), 7U);
}

TEST_F(LazyTest, LowersWhatASenderHoldsWithTheLotsThatGoBack) {
    open(lazy_config(8, 30, 8));
    control(5, PacketKind::kHello);  // 15 credits in lots of 5, 5 and 6
    control(1, PacketKind::kHello);
    out_.take();

    // From now on a lot of 10 div 3 + 1 for each threshold.
    data(5, 5);
    EXPECT_EQ(out_.take(), SentList{credit(5, 4)});
    data(5, 5);
    EXPECT_EQ(out_.take(), SentList{credit(5, 4)});
    data(5, 6);
    EXPECT_EQ(out_.take(), SentList{credit(5, 4)});

    const PeerFlow& flow = policy_->peer(policy_->flow_of(5));
    EXPECT_EQ(flow.current + flow.retrieved, 11U);
}

TEST_F(LazyTest, RaisesASenderToItsShareWithADataPacket) {
    open(lazy_config(8, 30, 8));
    control(5, PacketKind::kHello);
    control(1, PacketKind::kHello);
    control(7, PacketKind::kHello);  // holds 5
    data(5, 5);                      // 2 of the 5 stay free: a lot is 7 div 3 + 1
    out_.take();
    data(7, 1);

    EXPECT_EQ(policy_->piggyback(policy_->flow_of(7), out_), 3U);

    const PeerFlow& flow = policy_->peer(policy_->flow_of(7));
    EXPECT_EQ(flow.current + flow.retrieved, 7U);
    EXPECT_EQ(policy_->violation(), "");
    EXPECT_EQ(out_.take(), SentList{});
}

TEST_F(LazyTest, ReleasesTheLeastRecentSenderForOneThatWaits) {
    open(lazy_config(8, 2, 8));
    control(5, PacketKind::kHello);
    EXPECT_EQ(out_.take(), SentList{credit(5, 2)});

    control(1, PacketKind::kHello);
    EXPECT_EQ(out_.take(), SentList{release(5)});
    EXPECT_EQ(policy_->in(1), LazyPolicy::In::kWaiting);

    data(5, 1);  // was under way
    EXPECT_EQ(out_.take(), SentList{});
    control(5, PacketKind::kBye, 1);
    EXPECT_EQ(out_.take(), SentList{credit(1, 2)});
    EXPECT_EQ(policy_->in(5), LazyPolicy::In::kCold);
}

TEST_F(LazyTest, HasNoMoreSendersWithCreditsThanItHasFlows) {
    open(lazy_config(8, 20, 2));
    control(5, PacketKind::kHello);
    control(1, PacketKind::kHello);
    out_.take();
    control(3, PacketKind::kHello);
    EXPECT_EQ(out_.take(), SentList{release(5)});
    EXPECT_EQ(policy_->in(3), LazyPolicy::In::kWaiting);
}

TEST_F(LazyTest, RemembersAHelloThatOvertakesItsBye) {
    open(lazy_config(8, 2, 8));
    control(5, PacketKind::kHello);
    control(1, PacketKind::kHello);
    out_.take();

    control(5, PacketKind::kHello);
    EXPECT_EQ(policy_->in(5), LazyPolicy::In::kReturning);
    control(5, PacketKind::kBye, 2);

    EXPECT_EQ(out_.take(), (SentList{credit(1, 2), release(1)}));
    EXPECT_EQ(policy_->in(5), LazyPolicy::In::kWaiting);
}

TEST_F(LazyTest, ReturnsEverythingWhenItIsAskedTo) {
    open(lazy_config(8, 30, 8));
    want(3);
    credits(3, 9, 4);
    out_.take();

    control(3, PacketKind::kRelease);

    EXPECT_EQ(out_.take(), SentList{bye(3, 5)});
    EXPECT_EQ(window(3), 0U);
    want(3);
    EXPECT_EQ(out_.take(), SentList{hello(3)});
}

TEST_F(LazyTest, ClosesAnIdleWindowForOneThatIsWanted) {
    open(lazy_config(8, 30, 2));
    want(3);
    credits(3, 9, 4);
    want(4);
    credits(4, 9, 4);
    out_.take();

    want(5);
    EXPECT_EQ(out_.take(), SentList{leave(3)});
    EXPECT_EQ(policy_->out(5), LazyPolicy::Out::kQueued);
    policy_->take(policy_->flow_of(3), 1);  // open until its RELEASE comes
    control(3, PacketKind::kRelease);

    EXPECT_EQ(out_.take(), (SentList{bye(3, 4), hello(5)}));
}

TEST_F(LazyTest, KeepsAWindowThatIsInUseRatherThanAnIdleOne) {
    open(lazy_config(8, 30, 3));
    for (PeerIndex to : {3U, 4U, 5U}) {
        want(to);
        credits(to, 9, 1);
    }
    want(6);
    control(3, PacketKind::kRelease);
    credits(6, 9, 1);
    out_.take();

    policy_->take(policy_->flow_of(4), 1);
    want(7);

    EXPECT_EQ(out_.take(), SentList{leave(5)});
}

TEST_F(LazyTest, AnswersALeaveWithARelease) {
    open(lazy_config(8, 30, 8));
    control(2, PacketKind::kHello);
    out_.take();

    control(2, PacketKind::kLeave);
    EXPECT_EQ(out_.take(), SentList{release(2)});
    control(2, PacketKind::kBye, 15);

    EXPECT_EQ(policy_->available(), 30U);
    EXPECT_EQ(policy_->in(2), LazyPolicy::In::kCold);
}

TEST_F(LazyTest, TakesTheSlotsOfAnIdleSenderForABusyOneThatIsShort) {
    for (bool stealing : {true, false}) {
        PolicyConfig config = lazy_config(8, 24, 8);
        config.lazy_stealing = stealing;
        open(config);
        for (PeerIndex q : {1U, 2U, 3U}) control(q, PacketKind::kHello);
        out_.take();
        ASSERT_EQ(policy_->available(), 0U);

        // 3 has less than its share and uses it again and again.
        bool asked = false;
        for (int i = 0; i < 100 && !asked; ++i) {
            data(3, 1);
            for (const Sent& sent : out_.take()) asked = asked || sent == release(1);
        }

        EXPECT_EQ(asked, stealing);
        EXPECT_EQ(policy_->counters().steals, stealing ? 1U : 0U);
    }
}

TEST_F(LazyTest, AsksAnotherSenderWhenTheFirstOneDoesNotAnswer) {
    open(lazy_config(8, 4, 8));
    control(1, PacketKind::kHello);
    control(2, PacketKind::kHello);
    control(3, PacketKind::kHello);
    EXPECT_EQ(out_.take(), (SentList{credit(1, 2), credit(2, 2), release(1)}));

    bool asked = false;
    for (int i = 0; i < 100 && !asked; ++i) {
        data(2, 1);
        for (const Sent& sent : out_.take()) asked = asked || sent == release(2);
    }

    EXPECT_TRUE(asked);
}

TEST_F(LazyTest, AsksAnotherOneWhenItsEngineHasWaitedLongEnough) {
    open(lazy_config(8, 4, 2));
    control(1, PacketKind::kHello);
    control(2, PacketKind::kHello);
    EXPECT_FALSE(policy_->contact_pending());
    control(3, PacketKind::kHello);
    EXPECT_TRUE(policy_->contact_pending());
    out_.take();

    policy_->contact_overdue(out_);
    EXPECT_EQ(out_.take(), SentList{release(2)});
    policy_->contact_overdue(out_);
    EXPECT_EQ(out_.take(), SentList{});

    control(2, PacketKind::kBye, 2);
    EXPECT_EQ(out_.take(), SentList{credit(3, 2)});
    EXPECT_FALSE(policy_->contact_pending());
}

TEST_F(LazyTest, ClosesAnotherWindowWhenItsEngineHasWaitedLongEnough) {
    open(lazy_config(8, 30, 2));
    for (PeerIndex to : {3U, 4U}) {
        want(to);
        credits(to, 9, 1);
    }
    want(5);
    EXPECT_TRUE(policy_->contact_pending());
    out_.take();

    policy_->contact_overdue(out_);
    EXPECT_EQ(out_.take(), SentList{leave(4)});
    control(4, PacketKind::kRelease);

    EXPECT_EQ(out_.take(), (SentList{bye(4, 8), hello(5)}));
}

TEST_F(LazyTest, HasOneFlowForBothDirectionsOfAPair) {
    open(lazy_config(8, 30, 1));
    want(6);
    control(6, PacketKind::kHello);
    credits(6, 5, 1);
    EXPECT_EQ(out_.take(), (SentList{hello(6), credit(6, 15)}));
    const FlowIndex flow = policy_->flow_of(6);

    control(6, PacketKind::kRelease);
    EXPECT_EQ(policy_->flow_of(6), flow);
    EXPECT_EQ(policy_->peer(flow).current, 15U);
    EXPECT_EQ(window(6), 0U);
}

TEST_F(LazyTest, IsNotMisledByPacketsThatNobodySends) {
    for (PacketKind kind : {PacketKind::kBye, PacketKind::kRelease, PacketKind::kLeave}) {
        open(lazy_config(8, 30, 2));
        policy_->contact_retrieved(3, kind, 5, out_);
        EXPECT_EQ(out_.take(), SentList{});
        EXPECT_EQ(policy_->available(), 30U);
        EXPECT_NE(policy_->violation(), "");
    }
    open(lazy_config(8, 30, 2));
    policy_->contact_retrieved(3, PacketKind::kCredit, 5, out_);
    EXPECT_EQ(window(3), 0U);
    EXPECT_NE(policy_->violation(), "");
}

TEST_F(LazyTest, NamesTheParameterThatIsWrong) {
    std::string error;
    EXPECT_EQ(make_policy("lazy", lazy_config(3, 0, 4), &error), nullptr);
    EXPECT_NE(error.find("btl_velo_lazy_slots is 0"), std::string::npos) << error;
    EXPECT_EQ(make_policy("lazy", lazy_config(3, 65536, 4), &error), nullptr);
    EXPECT_NE(error.find("btl_velo_lazy_slots is 65536"), std::string::npos) << error;
    EXPECT_EQ(make_policy("lazy", lazy_config(3, 10, 0), &error), nullptr);
    EXPECT_NE(error.find("btl_velo_lazy_peers is 0"), std::string::npos) << error;
}

// Fewer windows than peers.
class LazyAheadTest : public LazyTest {
 protected:
    // Sends a packet to the peer; returns whether its window was open already.
    bool speak(PeerIndex to) {
        if (window(to) > 0) {
            policy_->take(policy_->flow_of(to), 1);
            return true;
        }
        waits_for_ = to;
        want(to);
        answer();
        EXPECT_EQ(waits_for_, kNobody) << "no window for peer " << to;
        return false;
    }
    // Lets the peers answer what was sent to them, until nothing more is sent.
    void answer() {
        for (SentList sent = out_.take(); !sent.empty(); sent = out_.take())
            for (const Sent& packet : sent) {
                if (packet.kind == PacketKind::kLeave) control(packet.to, PacketKind::kRelease);
                if (packet.kind != PacketKind::kHello) continue;
                credits(packet.to, 5, packet.to == waits_for_ ? 1 : 0);
                if (packet.to == waits_for_) waits_for_ = kNobody;
                ++hellos_;
            }
    }
    static constexpr PeerIndex kNobody = UINT32_MAX;
    PeerIndex waits_for_ = kNobody;
    int hellos_ = 0;
};

TEST_F(LazyAheadTest, OpensWindowsInTheOrderThatItHasLearned) {
    for (std::uint32_t ahead : {0U, 1U, 2U}) {
        PolicyConfig config = lazy_config(8, 64, 3);
        config.lazy_ahead = ahead;
        open(config);
        out_.take();
        hellos_ = 0;
        int ready = 0;
        for (int turn = 0; turn < 40; ++turn) {
            ready += speak(static_cast<PeerIndex>(turn % 8));
            policy_->control_flushed(out_);
            answer();
        }
        if (ahead == 0) {
            EXPECT_EQ(ready, 0);
        } else {
            EXPECT_GE(ready, 24) << "of 40, of which 8 are new";
        }
        EXPECT_LE(hellos_, 40 + static_cast<int>(ahead)) << "a guess that was right costs no HELLO more";
    }
}

TEST_F(LazyAheadTest, GuessesLessWhereTheOrderChanges) {
    PolicyConfig config = lazy_config(64, 64, 8);
    open(config);
    std::uint32_t state = 1;
    constexpr int kTurns = 400;
    for (int turn = 0; turn < kTurns; ++turn) {
        state = state * 1664525 + 1013904223;
        speak(state >> 26);
        policy_->control_flushed(out_);
        answer();
    }
    EXPECT_LE(hellos_, kTurns * 11 / 10);
}

TEST(ContactOrderTest, KeepsABoundedNumberOfPeersAndForgetsThoseThatEnd) {
    ContactOrder order(1'000'000, 4);
    EXPECT_EQ(order.bytes(), 8192U);
    EXPECT_EQ(ContactOrder(1'000'000, 0).bytes(), 0U);
    for (int round = 0; round < 2; ++round)
        for (std::uint32_t peer : {999'999U, 5U, 70'000U}) order.met(peer);
    EXPECT_EQ(order.upcoming(), 999'999U);
    order.forget(999'999U);
    EXPECT_EQ(order.upcoming(), ContactOrder::kNobody);
}

TEST_F(LazyTest, NamesAWrongNumberOfWindowsAhead) {
    PolicyConfig config = lazy_config(8, 64, 3);
    config.lazy_ahead = 17;
    std::string error;
    EXPECT_EQ(make_policy("lazy", config, &error), nullptr);
    EXPECT_NE(error.find("btl_velo_lazy_ahead"), std::string::npos) << error;
}

}  // namespace
}  // namespace velo::flow
