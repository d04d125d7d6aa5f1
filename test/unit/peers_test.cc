// What becomes of a peer from its address to the end of its place, with a mailbox and without an engine.
#include "engine/peers/peers.h"

#include <gtest/gtest.h>

#include <memory>

#include "platform/failure.h"
#include "unit/node_process.h"

namespace velo::engine {
namespace {

using test::NodeProcess;

TEST(PeersTest, an_expected_peer_is_connected_to_once_and_the_units_hear_of_it) {
    NodeProcess one(10, "static"), two(11, "static");
    const flow::PeerIndex index = one.peers().expect(two.address());
    EXPECT_EQ(one.take(), "introduced attaching attached ");
    Peer& peer = *one.peers().get(index);
    EXPECT_TRUE(peer.link && peer.name == 11 && !peer.stranger);
    EXPECT_GT(peer.ledger().credits(peer), 0U);
    EXPECT_EQ(one.peers().expect(two.address()), index);
    EXPECT_EQ(one.take(), "");
}

TEST(PeersTest, on_demand_it_is_connected_to_when_it_is_reached_by_the_address_that_it_left) {
    NodeProcess one(10, "lazy"), two(11, "lazy");
    const flow::PeerIndex index = one.peers().expect(two.address());
    EXPECT_EQ(one.peers().find(index), nullptr);
    Peer& peer = *one.peers().get(index);
    EXPECT_EQ(one.take(), "introduced ");
    EXPECT_FALSE(peer.link);
    one.peers().reach(peer);
    EXPECT_EQ(one.take(), "introduced attaching attached ");
    EXPECT_TRUE(peer.link);

    NodeProcess three(10, "lazy", true);
    (void)three.peers().expect(two.address());
    EXPECT_EQ(three.take(), "introduced attaching attached ") << "what may fail fails now";
}

TEST(PeersTest, a_unit_may_refuse_a_peer) {
    NodeProcess one(10, "static"), two(11, "static");
    one.may_attach = false;
    EXPECT_THROW(one.peers().expect(two.address()), Failure);
    EXPECT_FALSE(one.peers().find(0) != nullptr && one.peers().find(0)->link);
    EXPECT_FALSE(two.mailbox().senders().is_introduced(0)) << "nothing of it is at the peer";
}

TEST(PeersTest, a_peer_that_has_closed_is_seen_to_have_ended_and_its_place_is_taken_by_the_next) {
    NodeProcess one(10, "static");
    auto stranger = std::make_unique<NodeProcess>(30, "static");
    Peer& peer = *one.peers().get(one.peers().expect(stranger->address()));
    EXPECT_TRUE(peer.stranger);
    EXPECT_EQ(one.peers().met().back(), &peer);
    EXPECT_FALSE(one.peers().has_closed(peer) || one.peers().has_vanished(peer));
    stranger->mailbox().header().statistics_final = 1;
    EXPECT_TRUE(one.peers().has_closed(peer));
    stranger.reset();
    EXPECT_TRUE(one.peers().has_vanished(peer));

    one.units().departed(peer);
    EXPECT_FALSE(peer.link);
    EXPECT_TRUE(one.peers().release_slot(peer));
    one.units().vacated(peer);
    EXPECT_EQ(peer.name, 0U);
    NodeProcess next(31, "static");
    EXPECT_EQ(one.peers().get(one.peers().expect(next.address())), &peer);
    EXPECT_EQ(peer.name, 31U);
    EXPECT_EQ(one.looks, 0) << "it had to wait for nobody";
}

TEST(PeersTest, the_segments_for_the_report_are_those_of_the_node_in_order) {
    NodeProcess one(11, "static"), two(10, "static");
    (void)one.peers().expect(two.address());
    const auto segments = one.peers().segments();
    ASSERT_EQ(segments.size(), 2U);
    EXPECT_EQ(segments[0]->owner, 10U);
    EXPECT_EQ(segments[1]->owner, 11U);
    EXPECT_FALSE(one.peers().is_first_on_node());
    EXPECT_TRUE(two.peers().is_first_on_node());
}

}  // namespace
}  // namespace velo::engine
