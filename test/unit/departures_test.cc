// When units hear of the end of a peer, and what has to be over before.
#include "engine/peers/departures.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "unit/lone_domain.h"

namespace velo::engine {
namespace {

struct FakePeers final : DeparturesHost {
    const std::vector<Peer*>& met() const override { return peers; }
    bool has_closed(const Peer& peer) override { return closed.contains(peer.index); }
    bool has_vanished(Peer& peer) override { return vanished.contains(peer.index); }
    bool release_slot(Peer&) override { return releases; }
    std::vector<Peer*> peers;
    std::set<flow::PeerIndex> closed, vanished;
    bool releases = true;
};

struct FakeUnit final : PeerEvents {
    void ended(Peer& peer) override { note('e', peer); }
    bool may_depart(const Peer&) override { return permits; }
    void departed(Peer& peer) override { note('d', peer); }
    void vacated(Peer& peer) override { note('v', peer); }
    void gone(Peer& peer) override { note('g', peer); }
    void note(char what, const Peer& peer) { heard += what + std::to_string(peer.index) + " "; }
    std::string take() { return std::exchange(heard, ""); }
    std::string heard;
    bool permits = true;
};

class DeparturesTest : public testing::Test {
 protected:
    static constexpr flow::PeerIndex kStranger = test::LoneDomain::kPeers;

    DeparturesTest() {
        for (flow::PeerIndex index = 0; index <= kStranger; ++index) host_.peers.push_back(&domain_[index]);
    }

    test::LoneDomain domain_{"none", 1};
    platform::OptionalMutex mutex_{false};
    FakePeers host_;
    FakeUnit unit_;
    Departures departures_{host_, mutex_, unit_};
};

TEST_F(DeparturesTest, a_peer_that_has_closed_or_vanished_departs_once) {
    host_.closed = {1};
    host_.vanished = {2};
    departures_.look_at_all();
    EXPECT_EQ(unit_.take(), "e1 e2 d1 g1 d2 g2 ");
    EXPECT_TRUE(domain_[1].departed && domain_[2].departed && !domain_[0].departed);
    departures_.look_at_all();
    EXPECT_EQ(unit_.take(), "");
}

TEST_F(DeparturesTest, it_looks_now_and_then_at_one_peer_for_a_system_call) {
    host_.vanished = {1};
    departures_.look(10'000'000);
    EXPECT_EQ(unit_.take(), "");
    departures_.look(10'000'001);
    EXPECT_EQ(unit_.take(), "") << "the next look is not due yet";
    departures_.look(20'000'000);
    EXPECT_EQ(unit_.take(), "e1 d1 g1 ");
}

TEST_F(DeparturesTest, what_it_sent_is_retrieved_first) {
    (void)domain_.writer().reserve(2);
    departures_.mark_ended(domain_[0]);
    departures_.look_at_all();
    EXPECT_EQ(unit_.take(), "e0 ");
    domain_.domain().reader.advance(2);
    departures_.look_at_all();
    EXPECT_EQ(unit_.take(), "d0 g0 ");
}

TEST_F(DeparturesTest, it_waits_for_a_unit_that_needs_the_peer) {
    unit_.permits = false;
    departures_.mark_ended(domain_[0]);
    departures_.look_at_all();
    EXPECT_EQ(unit_.take(), "e0 ");
    unit_.permits = true;
    departures_.look_at_all();
    EXPECT_EQ(unit_.take(), "d0 g0 ");
}

TEST_F(DeparturesTest, each_that_was_killed_is_told_once_while_the_launcher_lets_the_others_live) {
    constexpr std::uint64_t kSecond = 1'000'000'000;
    const std::uint64_t before = platform::now_ns();
    for (flow::PeerIndex index = 0; index < kStranger; ++index)
        domain_[index].link.open(domain_.writer(), index);
    host_.vanished = {0, 2};
    host_.closed = {1};
    departures_.look_at_all();
    EXPECT_EQ(departures_.killed(before), nullptr) << "it may have called MPI_Abort";
    EXPECT_EQ(departures_.killed(platform::now_ns() + kSecond / 2), &domain_[0]);
    EXPECT_EQ(departures_.killed(platform::now_ns() + kSecond / 2), &domain_[2]);
    EXPECT_EQ(departures_.killed(before + 100 * kSecond), nullptr);
}

TEST_F(DeparturesTest, the_place_of_a_stranger_is_free_when_nobody_looks_for_one) {
    host_.closed = {kStranger};
    host_.releases = false;
    departures_.look_at_all();
    EXPECT_EQ(unit_.take(), "e3 d3 g3 ");
    host_.closed = {};
    host_.releases = true;
    departures_.look_at_all();
    EXPECT_EQ(unit_.take(), "v3 ");
    EXPECT_FALSE(domain_[kStranger].ending || domain_[kStranger].departed);
}

TEST_F(DeparturesTest, what_is_sent_to_the_null_peer_is_lost) {
    departures_.open_null_peer(domain_, domain_.domain().reader, 7);
    Peer& peer = departures_.null_peer();
    EXPECT_TRUE(peer.departed && !peer.is_local() && !peer.is_remote());
    EXPECT_TRUE(peer.link.carry_packet({{nullptr, nullptr}, {0, 0}}, 1, 0, true, true));
}

}  // namespace
}  // namespace velo::engine
