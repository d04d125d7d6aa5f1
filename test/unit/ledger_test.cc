// The accounts of a process: what leaves when, what is delayed, what joins, and what is counted.
#include "flow/ledger.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "flow_testing.h"

namespace velo::flow {
namespace {

using wire::PacketKind;

// Two peers with 21 slots each: with n = 2 credits are due from 8 retrieved packets on.
class LedgerTest : public ::testing::Test, protected Carrier {
 protected:
    explicit LedgerTest(const char* name = "static", bool delays = true)
        : policy_(open_policy(name, config_of(2, 42, 2), 21)), ledger_(*policy_, *this, delays) {
        for (PeerIndex peer : {0U, 1U}) accounts_[peer] = ledger_.account_of(peer);
    }

    void retrieve(PeerIndex from, std::uint32_t packets, std::uint32_t credits = 0) {
        ledger_.look();
        ASSERT_TRUE(ledger_.data_retrieved(accounts_[from], packets, false, credits));
    }
    // A DATA packet with room for credits.
    std::uint32_t send(PeerIndex to) {
        const std::uint32_t credits = ledger_.attach(accounts_[to]);
        ledger_.sent(accounts_[to], 1);
        return credits;
    }
    std::vector<std::string> take() { return std::exchange(events_, {}); }
    const Counters& counters() const { return policy_->counters(); }

    Account& account(PeerIndex peer) override { return accounts_[peer]; }
    void carry(Account& to, PacketKind kind, std::uint32_t value) override {
        note(kind == PacketKind::kCredit    ? "CREDIT"
             : kind == PacketKind::kRequest ? "REQ"
                                            : "RESP",
             to, value);
    }
    void entered(Account& from, PacketKind, std::uint32_t value) override { note("entered", from, value); }
    bool send_queued(Account& to) override {
        note("queue", to, ledger_.credits(to));
        return false;
    }

    using List = std::vector<std::string>;
    std::unique_ptr<Policy> policy_;
    Ledger ledger_;
    Account accounts_[2];

 private:
    void note(const std::string& what, const Account& of, std::uint32_t value) {
        events_.push_back(what + " " + std::to_string(of.peer) + ": " + std::to_string(value));
    }
    std::vector<std::string> events_;
};

TEST_F(LedgerTest, a_credit_packet_waits_for_the_next_look) {
    retrieve(0, 8);
    EXPECT_EQ(take(), List{});
    EXPECT_TRUE(ledger_.owes());
    EXPECT_EQ(ledger_.delayed_credits(0), 8U);
    EXPECT_EQ(counters().credit_packets, 0U) << "it has not left";
    ledger_.look();
    EXPECT_EQ(take(), List{"CREDIT 0: 8"});
    EXPECT_EQ(counters().credit_packets, 1U);
    EXPECT_EQ(counters().credits_in_packets, 8U);
    ledger_.look();
    EXPECT_EQ(take(), List{});
}

TEST_F(LedgerTest, data_for_the_same_peer_takes_it_along) {
    retrieve(0, 8);
    EXPECT_EQ(send(0), 8U);
    ledger_.look();
    EXPECT_EQ(take(), List{});
    EXPECT_EQ(counters().credit_packets, 0U);
    EXPECT_EQ(counters().piggybacks, 1U);
    EXPECT_EQ(counters().piggybacked_credits, 8U);
}

TEST_F(LedgerTest, data_for_another_peer_lets_it_go) {
    retrieve(0, 8);
    EXPECT_EQ(send(1), 0U);
    EXPECT_EQ(take(), List{"CREDIT 0: 8"});
}

TEST_F(LedgerTest, credits_for_two_peers_do_not_wait_together) {
    ASSERT_TRUE(ledger_.data_retrieved(accounts_[0], 8, false, 0));
    ASSERT_TRUE(ledger_.data_retrieved(accounts_[1], 8, false, 0));
    EXPECT_EQ(take(), List{"CREDIT 0: 8"});
    EXPECT_EQ(ledger_.delayed_credits(1), 8U);
}

TEST_F(LedgerTest, several_for_one_peer_become_one_packet) {
    ASSERT_TRUE(ledger_.data_retrieved(accounts_[0], 16, false, 0));
    ledger_.look();
    EXPECT_EQ(take(), List{"CREDIT 0: 16"});
    EXPECT_EQ(counters().credit_packets, 1U);
}

TEST_F(LedgerTest, those_of_a_few_packets_wait_for_more) {
    for (std::uint32_t retrieved = 1; retrieved <= 7; ++retrieved) {
        retrieve(0, 1);
        // From three quarters of the threshold on.
        if (retrieved + retrieved / 4 + 1 < 8) {
            EXPECT_EQ(send(0), 0U) << retrieved;
        }
    }
    EXPECT_EQ(send(0), 7U);
}

TEST_F(LedgerTest, a_peer_that_has_ended_gets_nothing) {
    retrieve(0, 8);
    EXPECT_TRUE(ledger_.departed(accounts_[0]));
    ledger_.look();
    EXPECT_EQ(take(), List{});
    EXPECT_EQ(policy_->violation(), "");
}

TEST_F(LedgerTest, credits_are_entered_before_the_queue_goes_on) {
    ledger_.sent(accounts_[0], 21);
    ledger_.queued(accounts_[0]);
    retrieve(0, 1, 5);
    EXPECT_EQ(take(), (List{"entered 0: 5", "queue 0: 5"}));
    ASSERT_TRUE(ledger_.control_retrieved(accounts_[0], PacketKind::kCredit, 3));
    EXPECT_EQ(take(), (List{"entered 0: 3", "queue 0: 8"}));
    retrieve(0, 1, 2);
    EXPECT_EQ(take(), List{"entered 0: 2"}) << "nothing is left";
}

TEST_F(LedgerTest, a_packet_of_another_policy_is_an_offence) {
    for (PacketKind kind : {PacketKind::kHello, PacketKind::kBye, PacketKind::kRelease, PacketKind::kLeave,
                            PacketKind::kRequest, PacketKind::kResponse})
        EXPECT_FALSE(ledger_.control_retrieved(accounts_[1], kind, 0));
    EXPECT_EQ(take(), List{});
}

class LedgerOfTheThesis : public LedgerTest {
 protected:
    LedgerOfTheThesis() : LedgerTest("static", false) {}
};

TEST_F(LedgerOfTheThesis, nothing_waits) {
    retrieve(0, 8);
    EXPECT_EQ(take(), List{"CREDIT 0: 8"});
    retrieve(1, 1);
    EXPECT_EQ(send(1), 1U);
}

class LedgerOfLiuAndPanda : public LedgerTest {
 protected:
    LedgerOfLiuAndPanda() : LedgerTest("mvapich_static", true) {}
};

TEST_F(LedgerOfLiuAndPanda, nothing_waits_where_the_policy_says_so) {
    EXPECT_FALSE(ledger_.delays());
    retrieve(0, 5);
    EXPECT_EQ(take(), List{"CREDIT 0: 5"});
}

class LedgerOfRequests : public LedgerTest {
 protected:
    LedgerOfRequests() : LedgerTest("dynamic", false) {}
};

TEST_F(LedgerOfRequests, an_answer_waits_for_a_credit_and_leaves_before_data) {
    ledger_.sent(accounts_[0], 21);
    ASSERT_TRUE(ledger_.control_retrieved(accounts_[0], PacketKind::kRequest, 0));
    take();
    ASSERT_TRUE(ledger_.control_retrieved(accounts_[0], PacketKind::kCredit, 2));
    EXPECT_EQ(take(), (List{"entered 0: 2", "RESP 0: 0", "queue 0: 1"}));
    EXPECT_EQ(counters().responses, 1U);
}

}  // namespace
}  // namespace velo::flow
