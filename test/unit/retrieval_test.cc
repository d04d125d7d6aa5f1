// What is in the mailbox of a process without an engine goes up: packets that the test stores there.
#include "engine/retrieval.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "platform/failure.h"
#include "unit/node_process.h"

namespace velo::engine {
namespace {

class RetrievalTest : public testing::Test, private RetrievalHost, private MessageSink {
 protected:
    static constexpr std::uint8_t kTag = 17, kWhole = wire::kFirst | wire::kLast;

    RetrievalTest() { retrieval_.hand_messages_to(heard); }
    Domain& domain() { return peer_.domain; }
    int drain() { return retrieval_.drain(domain()); }
    void store(const std::string& text, std::uint8_t flags = kWhole, std::uint8_t tag = kTag,
               wire::PacketKind kind = wire::PacketKind::kData, std::uint32_t from = 0) {
        mailbox::Writer<> writer = one_.mailbox().writer();
        const std::uint32_t packets = wire::packets_in_run(text.size());
        const mailbox::Cursor at = writer.reserve(packets);
        std::memcpy(writer.payload(at), text.data(), text.size());
        writer.publish(at, {kind, flags, tag, static_cast<std::uint16_t>(text.size()), 0, from});
    }
    void store_credit(std::uint32_t credits) {
        store(std::string(reinterpret_cast<const char*>(&credits), sizeof credits), 0, 0,
              wire::PacketKind::kCredit);
    }
    std::string take_heard() { return std::exchange(heard_, ""); }

    test::NodeProcess one_{10, "static"}, two_{11, "static"};
    Peer& peer_ = one_.expect(two_);
    platform::Gate gate_{false};
    std::string heard_;
    bool ends_batch_ = false;

 private:
    static velo_config config_of(test::NodeProcess& process, RetrievalTest* test) {
        velo_config config = process.config();
        config.context = test;
        return config;
    }
    static void heard(void* context, std::uint8_t tag, void* data, std::size_t bytes) {
        auto& test = *static_cast<RetrievalTest*>(context);
        EXPECT_EQ(test.retrieval_.arriving(), test.peer_.index);
        test.heard_ += std::to_string(tag) + ":" + std::string(static_cast<char*>(data), bytes) + " ";
        if (test.ends_batch_) test.retrieval_.end_batch();
    }
    void assert_invariants() override {}
    void arrived(Peer&, std::byte* data, std::size_t bytes) override {
        heard_ += "sink:" + std::string(reinterpret_cast<char*>(data), bytes) + " ";
    }
    void departed(Peer&) override { heard_ += "departed "; }

 protected:
    MessageSink* sink() { return this; }

    const velo_config config_ = config_of(one_, this);
    Pace pace_;
    fabric::Interceptor faults_;
    Retrieval retrieval_{{*this, one_.mutex(), gate_, one_.idle(), pace_, one_.peers(), one_.large(),
                          batches_, remote_, one_.mailbox(), faults_},
                         config_};
    Batches batches_{retrieval_, one_.mutex(), one_.idle(), pace_};
    Remote remote_{{retrieval_, one_.mutex(), one_.idle(), one_.units(), one_.peers(), one_.large(),
                    one_.departures(), one_.observer(), config_, one_.mailbox()}};
};

TEST_F(RetrievalTest, messages_go_up_in_the_order_in_which_they_lie_there) {
    EXPECT_EQ(drain(), 0);
    store("a");
    store(std::string(100, 'b'));
    EXPECT_EQ(drain(), 3);
    EXPECT_EQ(take_heard(), "17:a 17:" + std::string(100, 'b') + " ");
    EXPECT_EQ(drain(), 0);
}

// Whoever waits for it acts on it before what comes behind.
TEST_F(RetrievalTest, an_awaited_message_ends_the_poll) {
    peer_.awaits_answer = true;
    store("answer");
    store("next");
    store("last");
    EXPECT_EQ(drain(), 1);
    EXPECT_EQ(take_heard(), "17:answer ");
    EXPECT_EQ(drain(), 2);
    EXPECT_EQ(take_heard(), "17:next 17:last ");
}

TEST_F(RetrievalTest, a_message_of_several_runs_goes_up_when_the_last_one_is_there) {
    store("be", wire::kFirst);
    store("gin", 0);
    EXPECT_EQ(drain(), 2);
    EXPECT_EQ(take_heard(), "");
    store("ning", wire::kLast);
    store("next");
    EXPECT_EQ(drain(), 2);
    EXPECT_EQ(take_heard(), "17:beginning 17:next ");
}

TEST_F(RetrievalTest, what_a_peer_has_begun_ends_with_it_and_its_buffer_serves_the_next) {
    store("be", wire::kFirst);
    EXPECT_EQ(drain(), 1);
    EXPECT_EQ(retrieval_.buffer_bytes(), 0U) << "it is in use";
    static_cast<PeerEvents&>(retrieval_).departed(peer_);
    EXPECT_EQ(peer_.arriving, Incoming::State::kIdle);
    const std::size_t bytes = retrieval_.buffer_bytes();
    EXPECT_GT(bytes, 0U);
    store("other ", wire::kFirst);
    store("message", wire::kLast);
    EXPECT_EQ(drain(), 2);
    EXPECT_EQ(take_heard(), "17:other message ");
    EXPECT_EQ(retrieval_.buffer_bytes(), bytes);
}

TEST_F(RetrievalTest, a_sink_has_the_messages_of_its_tag_and_hears_who_is_gone) {
    retrieval_.deliver_to(sink());
    store("m", kWhole, kSinkTag);
    store("b");
    EXPECT_EQ(drain(), 2);
    EXPECT_EQ(take_heard(), "sink:m 17:b ");
    retrieval_.gone(peer_);
    EXPECT_EQ(take_heard(), "departed ");
    retrieval_.deliver_to(nullptr);
    retrieval_.gone(peer_);
    EXPECT_EQ(take_heard(), "");
}

TEST_F(RetrievalTest, a_callback_may_leave_what_lies_behind_to_the_next_poll) {
    ends_batch_ = true;
    store("a");
    store("b");
    EXPECT_EQ(drain(), 1);
    EXPECT_EQ(take_heard(), "17:a ");
    EXPECT_EQ(drain(), 1);
    EXPECT_EQ(take_heard(), "17:b ");
}

TEST_F(RetrievalTest, who_has_stopped_retrieves_nothing) {
    store("a");
    retrieval_.stop();
    EXPECT_TRUE(retrieval_.is_stopped());
    EXPECT_EQ(drain(), 0);
    EXPECT_EQ(take_heard(), "");
}

TEST_F(RetrievalTest, a_packet_of_nobody_is_refused) {
    store("a", kWhole, kTag, wire::PacketKind::kData, 999);
    EXPECT_THROW(drain(), Failure);
    EXPECT_EQ(take_heard(), "");
}

TEST_F(RetrievalTest, a_run_without_the_begin_of_its_message_is_refused) {
    store("end", wire::kLast);
    EXPECT_THROW(drain(), Failure);
}

TEST_F(RetrievalTest, a_message_that_is_longer_than_agreed_is_refused) {
    const std::string half(600, 'h');
    store(half, wire::kFirst);
    store(half, wire::kLast);
    EXPECT_THROW(drain(), Failure) << "1024 bytes are";
    EXPECT_EQ(take_heard(), "");
}

TEST_F(RetrievalTest, credits_at_the_head_of_the_mailbox_are_taken_without_a_poll) {
    const std::uint32_t credits = peer_.ledger().credits(peer_);
    peer_.ledger().take(peer_, 2);
    store_credit(2);
    store("a");
    ASSERT_TRUE(gate_.try_enter());
    retrieval_.take_credits(domain());
    EXPECT_EQ(peer_.ledger().credits(peer_), credits - 2) << "somebody polls";
    gate_.leave();
    retrieval_.take_credits(domain());
    EXPECT_EQ(peer_.ledger().credits(peer_), credits);
    EXPECT_EQ(take_heard(), "") << "nobody is called back";
    EXPECT_EQ(drain(), 1);
    EXPECT_EQ(take_heard(), "17:a ");
}

TEST_F(RetrievalTest, a_packet_that_was_never_in_the_mailbox_goes_up_alike) {
    std::string text = "from afar";
    auto* data = reinterpret_cast<std::byte*>(text.data());
    fabric::Delivery delivery{};
    delivery.kind = wire::PacketKind::kData;
    delivery.flags = kWhole;
    delivery.tag = kTag;
    delivery.packets = 1;
    delivery.data = data;
    delivery.bytes = text.size();
    EXPECT_TRUE(static_cast<RemoteHost&>(retrieval_).arrived(peer_, delivery));
    EXPECT_EQ(take_heard(), "17:from afar ");
    delivery.flags = wire::kLast;
    EXPECT_FALSE(static_cast<RemoteHost&>(retrieval_).arrived(peer_, delivery)) << "it fits nothing";
}

}  // namespace
}  // namespace velo::engine
