// Messages that are held back at their sender, over a channel that notes what is said.
#include "messaging/holding.h"

#include <gtest/gtest.h>

#include "platform/failure.h"
#include "unit/fake_channel.h"
#include "unit/lone_domain.h"

namespace velo::messaging {
namespace {

class HoldingTest : public testing::Test {
 protected:
    static constexpr std::byte kData[8]{};
    static matching::Key key(std::int32_t tag) { return {1, 0, tag}; }
    Shares::Share& share() { return shares_.of(to_); }
    void hold(velo_message_send& send, std::int32_t tag) {
        ASSERT_EQ(holding_.hold(to_, key(tag), kData, sizeof kData, &send), VELO_QUEUED);
    }
    OfferHeader ask(const matching::Key& pattern, std::uint64_t ticket) {
        holding_.ask_arrived(to_, {{pattern, 0, Kind::kAsk, 0}, ticket});
        return channel_.take(Kind::kOffer).as<OfferHeader>();
    }
    void answer(const OfferHeader& offer, const matching::Key& pattern, Answer verdict) {
        holding_.answer_arrived(to_,
                                {{pattern, 0, Kind::kAnswer, 0}, offer.rendezvous.id, offer.ticket, verdict});
    }

    test::LoneDomain node_{"static"};
    engine::Peer& to_ = node_[1];
    test::FakeChannel channel_;
    Shares shares_{velo_messenger_config{4096, 1 << 20, 1 << 20, 4, false}};
    AwaitedSends awaited_;
    velo_messenger_state counts_{};
    Holding holding_{channel_, shares_, awaited_, counts_};
    velo_message_send first_{}, second_{};
};

TEST_F(HoldingTest, messages_leave_in_their_order_as_headers_are_free) {
    hold(first_, 1);
    hold(second_, 2);
    EXPECT_EQ(channel_.take(Kind::kHolding).as<Header>().key.tag, 1);
    EXPECT_TRUE(share().holds);
    share().headers = 1;
    holding_.drain(to_);
    EXPECT_EQ(channel_.headers, std::vector{&first_});
    EXPECT_TRUE(channel_.said.empty());
    share().headers = 5;
    holding_.drain(to_);
    EXPECT_EQ(channel_.headers, (std::vector{&first_, &second_}));
    EXPECT_EQ(share().headers, 4U);
    EXPECT_EQ(channel_.take(Kind::kHolding).as<Header>().key.tag, 0);
    EXPECT_FALSE(share().holds);
    EXPECT_EQ(counts_.held, 0U);
    EXPECT_EQ(counts_.held_most, 2U);
}

TEST_F(HoldingTest, what_a_receive_accepts_leaves_out_of_its_turn) {
    hold(first_, 1);
    hold(second_, 2);
    channel_.take(Kind::kHolding);
    const OfferHeader offer = ask(key(2), 7);
    EXPECT_EQ(offer.ticket, 7U);
    EXPECT_EQ(offer.rendezvous.bytes, sizeof kData);
    EXPECT_EQ(awaited_.remove(offer.rendezvous.id, to_.index), nullptr) << "the receiver may not end it yet";
    answer(offer, key(2), Answer::kAccepted);
    EXPECT_EQ(awaited_.remove(offer.rendezvous.id, to_.index), &second_);
    EXPECT_TRUE(channel_.headers.empty());
    EXPECT_TRUE(share().holds);
    EXPECT_THROW(answer(offer, key(2), Answer::kAccepted), Failure);
}

TEST_F(HoldingTest, nothing_overtakes_a_message_that_is_offered) {
    hold(first_, 1);
    hold(second_, 1);
    channel_.take(Kind::kHolding);
    const matching::Key anything{1, matching::kAnySource, matching::kAnyTag};
    const OfferHeader offer = ask(anything, 3);
    EXPECT_EQ(offer.rendezvous.header.unused, kOpenSource | kOpenTag);
    share().headers = 2;
    holding_.drain(to_);
    EXPECT_TRUE(channel_.headers.empty());
    answer(offer, anything, Answer::kGone);
    EXPECT_EQ(channel_.headers, (std::vector{&first_, &second_}));
}

TEST_F(HoldingTest, a_probe_sees_the_first_match_and_takes_it) {
    hold(first_, 1);
    channel_.take(Kind::kHolding);
    ProbeHeader probe{{key(1), 0, Kind::kPeek, 0}, 0, 0, 0, 0, 0};
    holding_.peek_arrived(to_, probe);
    const auto seen = channel_.take(Kind::kSeen).as<ProbeHeader>();
    EXPECT_EQ(seen.bytes, sizeof kData);
    EXPECT_EQ(seen.address, 0U);
    probe.id = seen.id + 1;
    holding_.take_arrived(to_, probe);
    EXPECT_EQ(channel_.take(Kind::kTaken).as<ProbeHeader>().id, 0U) << "another message";
    probe.id = seen.id;
    holding_.take_arrived(to_, probe);
    const auto taken = channel_.take(Kind::kTaken).as<ProbeHeader>();
    EXPECT_EQ(taken.id, seen.id);
    EXPECT_EQ(taken.address, reinterpret_cast<std::uint64_t>(kData));
    EXPECT_EQ(channel_.take(Kind::kHolding).as<Header>().key.tag, 0);
    holding_.peek_arrived(to_, probe);
    EXPECT_EQ(channel_.take(Kind::kSeen).as<ProbeHeader>().id, 0U);
}

TEST_F(HoldingTest, the_messages_of_a_receiver_that_departs_wait_for_nothing_but_that) {
    hold(first_, 1);
    channel_.take(Kind::kHolding);
    holding_.departed(to_);
    shares_.departed(to_);
    EXPECT_EQ(awaited_.remove_all(to_.index), std::vector{&first_});
    EXPECT_EQ(counts_.held, 0U);
    EXPECT_EQ(holding_.hold(to_, key(1), kData, 1, &second_), VELO_ERR_REMOTE);
    EXPECT_EQ(channel_.have_failed, std::vector{&to_});
    EXPECT_TRUE(channel_.said.empty());
}

}  // namespace
}  // namespace velo::messaging
