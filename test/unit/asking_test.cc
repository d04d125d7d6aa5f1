// What a receiver asks of those who hold messages back, over a channel that notes what is said.
#include "messaging/asking.h"

#include <gtest/gtest.h>

#include "unit/fake_channel.h"
#include "unit/lone_domain.h"

namespace velo::messaging {
namespace {

class AskingTest : public testing::Test {
 protected:
    static constexpr matching::Key kKey{1, 1, 5};
    static constexpr matching::Key kAnything{1, matching::kAnySource, matching::kAnyTag};

    void post(matching::Posted& receive, const matching::Key& pattern) {
        posted_.push(&receive, pattern);
        asking_.posted(receive);
    }
    static OfferHeader offer(const matching::Key& key, std::uint64_t ticket, std::uint8_t open = 0) {
        return {{{key, 0, Kind::kOffer, open}, 9, 0, 8}, ticket};
    }
    void see(const matching::Key& pattern, std::uint64_t id) {
        asking_.seen_arrived(holder_, {{pattern, 0, Kind::kSeen, 0}, kKey.source, kKey.tag, id, 30, 0});
    }
    bool probe(const matching::Key& pattern) { return asking_.probe(pattern, &key_, &bytes_); }

    test::LoneDomain node_{"static"};
    engine::Peer& holder_ = node_[1];
    test::FakeChannel channel_;
    matching::PostedQueue posted_;
    velo_messenger_state counts_{};
    Unmatched unmatched_{counts_};
    Asking asking_{channel_, posted_, unmatched_};
    matching::Posted first_{}, second_{}, other_{};
    matching::Key key_;
    std::size_t bytes_ = 0;
};

TEST_F(AskingTest, the_first_receive_of_each_pattern_has_asked) {
    post(first_, kKey);
    post(second_, kKey);
    EXPECT_TRUE(channel_.said.empty()) << "nobody holds anything";
    asking_.holding_arrived(holder_, true);
    EXPECT_EQ(channel_.take(Kind::kAsk).as<AskHeader>().ticket, first_.sequence);
    post(other_, kAnything);
    EXPECT_EQ(channel_.take(Kind::kAsk).as<AskHeader>().ticket, other_.sequence);
    EXPECT_EQ(posted_.match(kKey), &first_);
    asking_.ask_for_next(kKey);
    EXPECT_EQ(channel_.take(Kind::kAsk).as<AskHeader>().ticket, second_.sequence);
    EXPECT_TRUE(channel_.said.empty());
    asking_.holding_arrived(holder_, false);
    EXPECT_FALSE(asking_.any());
}

TEST_F(AskingTest, an_offer_is_accepted_by_the_oldest_receive_that_matches) {
    post(first_, kKey);
    post(other_, kAnything);
    EXPECT_EQ(asking_.answer_to(offer(kKey, first_.sequence)), Answer::kAccepted);
    EXPECT_EQ(asking_.answer_to(offer(kKey, other_.sequence, kOpenSource | kOpenTag)), Answer::kLater);
    EXPECT_EQ(asking_.answer_to(offer(kKey, 77)), Answer::kGone);
    asking_.answer(holder_, offer(kKey, first_.sequence), Answer::kAccepted);
    const auto answer = channel_.take(Kind::kAnswer).as<AnswerHeader>();
    EXPECT_EQ(answer.id, 9U);
    EXPECT_EQ(answer.verdict, Answer::kAccepted);
}

TEST_F(AskingTest, a_probe_asks_once_and_is_told_until_the_message_leaves) {
    asking_.holding_arrived(holder_, true);
    channel_.crowded = true;
    EXPECT_FALSE(probe(kAnything));
    EXPECT_TRUE(channel_.said.empty()) << "a later probe asks";
    channel_.crowded = false;
    EXPECT_FALSE(probe(kAnything));
    EXPECT_FALSE(probe(kAnything));
    EXPECT_EQ(channel_.take(Kind::kPeek).as<ProbeHeader>().header.key, kAnything);
    EXPECT_TRUE(channel_.said.empty());
    see(kAnything, 4);
    EXPECT_TRUE(probe(kAnything));
    EXPECT_EQ(key_, kKey);
    EXPECT_EQ(bytes_, 30U);
    asking_.forget(holder_, 4);
    EXPECT_FALSE(probe(kAnything));
}

TEST_F(AskingTest, what_a_probe_has_seen_is_taken_out_at_its_holder) {
    asking_.holding_arrived(holder_, true);
    EXPECT_EQ(asking_.begin_take(kKey), nullptr) << "not seen yet";
    see(kKey, 4);
    channel_.take(Kind::kPeek);
    ASSERT_EQ(asking_.begin_take(kKey), &holder_);
    EXPECT_EQ(channel_.take(Kind::kTake).as<ProbeHeader>().id, 4U);
    Parked* taken = nullptr;
    EXPECT_FALSE(asking_.end_take(holder_, kKey, &taken));
    asking_.taken_arrived(holder_, {{kKey, 0, Kind::kTaken, 0}, 1, 5, 4, 30, 0x1000});
    ASSERT_TRUE(asking_.end_take(holder_, kKey, &taken));
    ASSERT_NE(taken, nullptr);
    EXPECT_EQ(taken->bytes, 30U);
    EXPECT_EQ(taken->address, 0x1000U);
    EXPECT_EQ(counts_.headers, 1U);
    (void)unmatched_.release(taken);
}

TEST_F(AskingTest, a_holder_that_departs_ends_what_is_being_taken_from_it) {
    asking_.holding_arrived(holder_, true);
    EXPECT_FALSE(probe(kKey));
    see(kKey, 4);
    ASSERT_EQ(asking_.begin_take(kKey), &holder_);
    asking_.departed(holder_);
    EXPECT_FALSE(asking_.any());
    Parked* taken = nullptr;
    EXPECT_TRUE(asking_.end_take(holder_, kKey, &taken));
    EXPECT_EQ(taken, nullptr);
}

}  // namespace
}  // namespace velo::messaging
