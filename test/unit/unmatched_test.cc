// What a messenger counts of the pool, of its peers' and of its own.
#include "messaging/unmatched.h"

#include <gtest/gtest.h>

#include <string>

#include "messaging/shares.h"
#include "platform/failure.h"
#include "unit/lone_domain.h"

namespace velo::messaging {
namespace {

TEST(UnmatchedTest, payload_takes_cells_and_a_rendezvous_a_header) {
    velo_messenger_state counts{};
    Unmatched unmatched(counts);
    const std::string data(1000, 'd');
    const matching::Key key{1, 0, 5};
    unmatched.park(parked_like(nullptr, key, Kind::kEager, data.size(), 0),
                   reinterpret_cast<const std::byte*>(data.data()), data.size());
    unmatched.park(parked_like(nullptr, key, Kind::kRendezvous, 50'000, 3, 0x1000, 2), nullptr, 0);
    EXPECT_EQ(counts.unexpected, 2U);
    EXPECT_EQ(counts.headers, 1U);
    EXPECT_EQ(counts.pool_used_bytes, cells_for(data.size()) * kCellBytes);
    Parked* const eager = unmatched.take(key);
    EXPECT_EQ(eager->bytes, data.size());
    EXPECT_EQ(unmatched.release(eager), cells_for(data.size()));
    Parked* const rendezvous = unmatched.take_any_of(1);
    EXPECT_EQ(rendezvous->deposit, 2U);
    EXPECT_EQ(unmatched.release(rendezvous), 0U) << "a header is of no share";
    EXPECT_TRUE(unmatched.empty());
    EXPECT_EQ(counts.headers, 0U);
    EXPECT_EQ(counts.pool_used_bytes, 0U);
    EXPECT_EQ(counts.headers_most, 1U);
}

TEST(UnmatchedTest, only_messages_that_fit_are_taken_out_of_a_context) {
    velo_messenger_state counts{};
    Unmatched unmatched(counts);
    for (std::int32_t tag = 0; tag < 3; ++tag)
        unmatched.park(parked_like(nullptr, {1, 0, tag}, Kind::kEager, 0, 0), nullptr, 0);
    const auto fits = [](const matching::Key& key) { return key.tag == 1; };
    EXPECT_EQ(unmatched.take_of(2, fits), nullptr);
    Parked* const message = unmatched.take_of(1, fits);
    EXPECT_EQ(message->key.tag, 1);
    EXPECT_EQ(unmatched.release(message), 1U);
    EXPECT_EQ(unmatched.take_of(1, fits), nullptr);
}

TEST(SharesTest, cells_are_worth_a_message_when_half_of_the_share_is_owed) {
    test::LoneDomain node("static");
    Shares shares(velo_messenger_config{4096, 40 * kCellBytes, 1 << 20, 4, false});
    EXPECT_EQ(shares.address().share, 10U);
    EXPECT_FALSE(shares.give_back(&node[1], 4));
    EXPECT_TRUE(shares.give_back(&node[1], 1));
    EXPECT_EQ(Shares::take_owed(shares.of(node[1])), 5U);
    EXPECT_FALSE(shares.is_due(shares.of(node[1])));
    EXPECT_FALSE(shares.give_back(nullptr, 30));
    EXPECT_EQ(shares.own().there, 40U);
}

TEST(SharesTest, a_header_tells_no_more_cells_than_it_has_bits_for) {
    Shares::Share share;
    share.owed = 70'000;
    EXPECT_EQ(Shares::take_owed(share), 65'535U);
    EXPECT_EQ(share.owed, 70'000U - 65'535U);
}

TEST(SharesTest, a_share_is_added_once_and_lost_with_its_peer) {
    test::LoneDomain node("static");
    Shares shares(velo_messenger_config{4096, 1 << 20, 0, 4, false});
    EXPECT_EQ(shares.address().headers, 4U) << "always some";
    shares.of(node[1]).there = 2;  // told before the address was
    shares.connect(node[1], {Address::kMagic, 10, 5});
    shares.connect(node[1], {Address::kMagic, 10, 5});
    EXPECT_EQ(shares.of(node[1]).there, 12U);
    EXPECT_EQ(shares.of(node[1]).headers, 5U);
    EXPECT_THROW(shares.connect(node[2], {Address::kMagic, 1U << 31, 5}), Failure);
    shares.departed(node[1]);
    EXPECT_TRUE(shares.of(node[1]).is_gone);
    EXPECT_EQ(shares.of(node[1]).there, 0U);
    EXPECT_EQ(shares.of(node[2]).headers, 0U);
}

}  // namespace
}  // namespace velo::messaging
