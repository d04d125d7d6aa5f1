// Peers on other nodes, on a network that only notes what it is asked.
#include "engine/remote.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "unit/node_process.h"

namespace velo::engine {
namespace {

using test::NodeProcess;

struct FakeLink final : fabric::Link {
    explicit FakeLink(const bool& holds) : holds_(holds) {}
    fabric::Carried carry(const fabric::Burst&) override { return {0, 0}; }
    bool carry_packet(const fabric::MessageView&, std::uint8_t, std::uint32_t, bool, bool) override {
        return true;
    }
    void prepare(std::uint32_t) override {}
    void carry_control(wire::PacketKind, std::uint32_t) override {}
    bool holds_some() const override { return holds_; }

 private:
    const bool& holds_;
};

struct FakeNetwork final : fabric::Network {
    explicit FakeNetwork(const flow::PolicyConfig& its) : flow(its) {}
    const std::vector<std::byte>& address() const override { return own; }
    mailbox::Reader<> reader() override { return {&pointers, slots.data(), 64}; }
    flow::PeerIndex claim(std::span<const std::byte> address) override {
        return static_cast<flow::PeerIndex>(address[0]);
    }
    std::unique_ptr<fabric::Link> open(flow::PeerIndex, flow::PolicyConfig* there,
                                       flow::PeerIndex* index) override {
        *there = flow;
        *index = 0;
        return std::make_unique<FakeLink>(holds);
    }
    void begin_series(flow::PeerIndex peer) override { heard += "begin" + std::to_string(peer) + " "; }
    void end_series(flow::PeerIndex peer) override { heard += "end" + std::to_string(peer) + " "; }
    void retrieved(flow::PeerIndex, std::uint32_t) override {}
    std::uint64_t name_of(flow::PeerIndex peer) const override { return 50 + peer; }
    void send_bulk(flow::PeerIndex to, const fabric::MessageView& message, void* context) override {
        heard += "bulk" + std::to_string(to) + ":" + std::to_string(message.total()) + " ";
        sent.push_back(context);
    }
    bool progress() override {
        ++looks;
        return std::exchange(moves, false);
    }
    bool has_completed() const override { return !sent.empty() || !gone.empty(); }
    std::vector<fabric::Placed> placed() override { return {}; }
    std::vector<void*> sent_bulk() override { return std::exchange(sent, {}); }
    std::vector<fabric::Left> left() override { return std::exchange(gone, {}); }

    flow::PolicyConfig flow;
    std::vector<std::byte> own{std::byte{1}, std::byte{2}};
    mailbox::Pointers<> pointers{};
    std::vector<mailbox::Slot<>> slots = std::vector<mailbox::Slot<>>(64);
    std::string heard;
    std::vector<void*> sent;
    std::vector<fabric::Left> gone;
    int looks = 0;
    bool moves = false;
    bool holds = false;  // data of messages that were sent
};

class RemoteTest : public testing::Test {
 protected:
    RemoteTest() {
        flow::PolicyConfig flow;
        flow.peers = 2;
        flow.credit_slots = 2;
        flow.data_slots = 32;
        auto network = std::make_unique<FakeNetwork>(flow);
        network_ = network.get();
        node_.attaches_by = &remote_;
        remote_.use(node_, std::move(network), open_policy("static", flow));
        node_.remote = &*remote_.domain();
    }
    Peer& expect(unsigned peer) {
        const std::byte address[] = {static_cast<std::byte>(peer)};
        return *node_.peers().get(remote_.expect(address));
    }
    // So many polls that find nothing; how often the network was looked at.
    int looks_of(int polls, bool busy) {
        const int before = network_->looks;
        for (int poll = 0; poll < polls; ++poll) EXPECT_EQ(remote_.run(busy), 0);
        return network_->looks - before;
    }

    NodeProcess node_{10, "static"};
    FakeNetwork* network_;
    Remote remote_{{node_, node_.mutex(), node_.idle(), node_.units(), node_.peers(), node_.large(),
                    node_.departures(), node_.observer(), node_.config(), node_.mailbox()}};
};

TEST_F(RemoteTest, an_expected_peer_is_connected_to_behind_those_of_the_node) {
    const std::size_t own = sizeof(fabric::shm::Address);
    EXPECT_EQ(node_.peers().address().size(), own + 2) << "the address has the network's part";
    Peer& peer = expect(1);
    EXPECT_EQ(peer.index, node_.mailbox().directory_entries() + 1);
    EXPECT_TRUE(remote_.has(peer.index) && !remote_.has(0));
    EXPECT_TRUE(peer.is_remote() && peer.link);
    EXPECT_EQ(peer.name, 51U);
    EXPECT_GT(peer.ledger().credits(peer), 0U);
    EXPECT_EQ(node_.take(), "attached ");
    EXPECT_EQ(&expect(1), &peer);
    EXPECT_EQ(node_.take(), "");
    EXPECT_THROW(remote_.expect({}), Failure);
}

TEST_F(RemoteTest, beside_messages_of_the_node_a_quiet_network_is_looked_at_now_and_then) {
    EXPECT_EQ(looks_of(100, false), 100);
    EXPECT_EQ(looks_of(900, true), 900) << "it has not been quiet for long";
    EXPECT_EQ(looks_of(1600, true), 100);
    network_->moves = true;
    EXPECT_EQ(looks_of(160, true), 160 - 15) << "something came at the next look";
    (void)looks_of(2000, false);
    EXPECT_EQ(looks_of(100, false), 100) << "nothing comes inside the node either";
}

TEST_F(RemoteTest, of_many_messages_between_two_looks_the_first_leave_at_once) {
    Peer& peer = expect(0);
    for (int message = 0; message < 8; ++message) EXPECT_FALSE(remote_.is_one_of_many(peer, 100));
    EXPECT_TRUE(remote_.is_one_of_many(peer, 100));
    EXPECT_FALSE(remote_.is_one_of_many(peer, Remote::kCollectedBytes + 1));
    remote_.run(false);
    EXPECT_FALSE(remote_.is_one_of_many(peer, 100));
}

TEST_F(RemoteTest, long_data_go_past_the_mailbox_and_are_done_when_the_network_says_so) {
    Peer& peer = expect(1);
    static int done = 0;
    done = 0;
    velo_send message{};
    message.done = [](velo_send*, velo_status) { ++done; };
    message.bytes[1] = 100;
    EXPECT_FALSE(remote_.send_bulk(peer, &message));
    message.bytes[1] = 1 << 20;
    EXPECT_TRUE(remote_.send_bulk(peer, &message));
    EXPECT_EQ(network_->heard, "bulk1:1048576 ");
    EXPECT_EQ(done, 0);
    EXPECT_EQ(remote_.run(false), 1);
    EXPECT_EQ(done, 1);
}

TEST_F(RemoteTest, who_takes_leave_has_ended) {
    Peer& peer = expect(1);
    node_.take();
    network_->gone = {{1, {}}};
    remote_.run(false);
    EXPECT_TRUE(peer.ending);
    EXPECT_EQ(node_.take(), "ended ");
}

// Its messages are not reported as sent while the network reads them.
TEST_F(RemoteTest, who_takes_leave_does_not_depart_before_the_network_is_done_with_what_was_sent) {
    Peer& peer = expect(1);
    network_->holds = true;
    network_->gone = {{1, {}}};
    remote_.run(false);
    node_.departures().look_at_all();
    EXPECT_TRUE(peer.ending && !peer.departed && peer.link);
    network_->holds = false;
    node_.departures().look_at_all();
    EXPECT_TRUE(peer.departed && !peer.link);
}

TEST_F(RemoteTest, who_is_lost_counts_as_killed_and_who_takes_leave_does_not) {
    Peer &leaves = expect(0), &lost = expect(1);
    network_->gone = {{0, {}}, {1, "the connection is lost"}};
    remote_.run(false);
    node_.departures().look_at_all();
    EXPECT_TRUE(leaves.departed && lost.departed);
    EXPECT_TRUE(lost.died && !leaves.died);
    const fabric::MessageView nothing{};
    EXPECT_TRUE(leaves.link.carry_packet(nothing, 0, 0, true, false)) << "lost with its receiver";
    EXPECT_FALSE(lost.link.carry_packet(nothing, 0, 0, true, false)) << "its sender is told";
}

TEST_F(RemoteTest, the_upper_layer_is_told_who_is_lost_when_nothing_is_left_of_it) {
    static std::string told;
    told.clear();
    node_.config().lost = [](void*, std::uint64_t name) { told += std::to_string(name) + " "; };
    Peer &leaves = expect(0), &lost = expect(1);
    network_->gone = {{0, {}}, {1, "the connection is lost"}};
    remote_.run(false);
    node_.departures().look_at_all();
    EXPECT_EQ(told, "");
    remote_.gone(leaves);
    remote_.gone(lost);
    EXPECT_EQ(told, "51 ");
}

TEST_F(RemoteTest, a_burst_counts_as_handled_unless_it_belongs_to_no_message) {
    (void)expect(0);
    fabric::Delivery delivery{};
    delivery.packets = 7;
    EXPECT_EQ(remote_.receiver().take(delivery), nullptr);
    EXPECT_EQ(remote_.run(false), 7);
    EXPECT_EQ(node_.observer().counts.network_high_water, 7U);
    node_.takes = false;
    EXPECT_NE(remote_.receiver().take(delivery), nullptr);
    EXPECT_EQ(remote_.run(false), 0);
}

TEST_F(RemoteTest, what_is_sent_in_a_series_leaves_together) {
    { const Remote::Series series(remote_, expect(1)); }
    EXPECT_EQ(network_->heard, "begin1 end1 ");
}

}  // namespace
}  // namespace velo::engine
