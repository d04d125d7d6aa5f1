// A segment as its peers see it: validation on attach, the directory.
#include "fabric/shm/segment.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

#include "platform/failure.h"

namespace velo::fabric::shm {
namespace {

constexpr std::uint64_t kPeers[] = {11, 12, 13};

class SegmentTest : public ::testing::Test {
 protected:
    SegmentTest() : segment_(Segment::create("/dev/shm", layout(), &probe_)) {}

    static Segment::Layout layout() {
        Segment::Layout layout{};
        layout.owner = 10;
        std::strcpy(layout.agreement.flow_control, "static");
        layout.agreement.slots_per_peer = 8;
        layout.flow.peers = 3;
        layout.flow.spare_peers = 2;
        layout.flow.data_slots = 18;
        layout.flow.credit_slots = 2;
        parameters::agree_on(layout.flow, &layout.agreement);
        layout.node_peers = kPeers;
        return layout;
    }

    std::uint64_t probe_ = 0;
    Segment segment_;
};

TEST_F(SegmentTest, a_peer_learns_the_configuration_of_the_mailbox) {
    Segment peer = Segment::attach(segment_.address());
    EXPECT_EQ(peer.flow().peers, 3U);
    EXPECT_EQ(peer.flow().data_slots, 18U);
    EXPECT_EQ(peer.flow().mailbox_slots(), 18U + 2 * 2 + 5 * 2);
    EXPECT_EQ(peer.header().owner, 10U);
    EXPECT_EQ(probe_, segment_.address().file.nonce);
}

TEST_F(SegmentTest, the_mailbox_is_as_large_as_its_policy_plans_for_owner_and_peer) {
    Segment::Layout planned = layout();
    std::strcpy(planned.agreement.flow_control, "mvapich_static");
    planned.flow.preposted_buffers = 10;
    planned.flow.credit_message_threshold = 3;
    parameters::agree_on(planned.flow, &planned.agreement);
    Segment owner = Segment::create("/dev/shm", planned, &probe_);
    Segment peer = Segment::attach(owner.address());
    EXPECT_EQ(owner.reader().capacity(), 5U * (10 + 10 / 3));
    EXPECT_EQ(peer.writer().capacity(), owner.reader().capacity());
    EXPECT_EQ(peer.flow().preposted_buffers, 10U);
    owner.header().agreement.preposted_buffers = 9;
    EXPECT_THROW(Segment::attach(owner.address()), Failure);
}

TEST_F(SegmentTest, known_peers_have_their_place_and_strangers_take_the_spare_ones_once) {
    Segment peer = Segment::attach(segment_.address());
    EXPECT_EQ(peer.senders().claim(12, 0), 1U);
    EXPECT_EQ(peer.senders().claim(99, 0), 3U);
    EXPECT_EQ(segment_.senders().claim(99, 0), 3U);
    EXPECT_EQ(peer.senders().claim(98, 0), 4U);
    try {
        peer.senders().claim(97, 0);
        FAIL() << "a sixth sender in a directory of five";
    } catch (const Failure& failure) {
        EXPECT_NE(std::strstr(failure.what(), "btl_velo_spare_peers"), nullptr) << failure.what();
    }
}

TEST_F(SegmentTest, many_claimers_of_the_same_names_agree_on_the_places) {
    std::vector<flow::PeerIndex> places(8);
    std::vector<std::thread> claimers;
    for (std::size_t i = 0; i < places.size(); ++i) {
        claimers.emplace_back([&, i] {
            Segment peer = Segment::attach(segment_.address());
            places[i] = peer.senders().claim(200 + i % 2, 0);
        });
    }
    for (auto& claimer : claimers) claimer.join();
    for (std::size_t i = 2; i < places.size(); ++i) EXPECT_EQ(places[i], places[i % 2]);
    EXPECT_NE(places[0], places[1]);
}

TEST_F(SegmentTest, a_sender_leaves_its_address_for_the_owner) {
    EXPECT_FALSE(segment_.senders().introduced(1));
    Segment peer = Segment::attach(segment_.address());
    Address sender = segment_.address();
    sender.process_name = 12;
    peer.senders().introduce(peer.senders().claim(12, 0), sender);
    ASSERT_TRUE(segment_.senders().introduced(1));
    const Address seen = *segment_.senders().introduced(1);
    // What lies behind the last member is not always copied.
    constexpr std::size_t kBytes =
        offsetof(Address, file) + offsetof(platform::FileAddress, directory) + sizeof seen.file.directory;
    EXPECT_EQ(std::memcmp(&seen, &sender, kBytes), 0);
}

TEST_F(SegmentTest, a_segment_with_impossible_contents_is_refused) {
    auto refuses = [&](auto corrupt, auto repair) {
        corrupt(segment_.header());
        EXPECT_THROW(Segment::attach(segment_.address()), Failure);
        repair(segment_.header());
        EXPECT_NO_THROW(Segment::attach(segment_.address()));
    };
    refuses([](SegmentHeader& h) { h.magic ^= 1; }, [](SegmentHeader& h) { h.magic ^= 1; });
    refuses([](SegmentHeader& h) { h.nonce ^= 1; }, [](SegmentHeader& h) { h.nonce ^= 1; });
    refuses([](SegmentHeader& h) { h.capacity += 1; }, [](SegmentHeader& h) { h.capacity -= 1; });
    refuses([](SegmentHeader& h) { h.data_slots += 1000; }, [](SegmentHeader& h) { h.data_slots -= 1000; });
    refuses([](SegmentHeader& h) { h.peers |= 1U << 31; }, [](SegmentHeader& h) { h.peers &= ~(1U << 31); });
    refuses([](SegmentHeader& h) { h.slots_offset += 64; }, [](SegmentHeader& h) { h.slots_offset -= 64; });
}

TEST_F(SegmentTest, another_layout_version_is_refused_before_anything_is_opened) {
    Address address = segment_.address();
    address.magic += 1;
    EXPECT_THROW(Segment::attach(address), Failure);
}

TEST(SegmentPlanTest, its_parts_lie_one_behind_the_other) {
    flow::PolicyConfig flow;
    flow.peers = 3;
    flow.spare_peers = 2;
    for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{1} << 18}) {
        const SegmentPlan plan({flow, 100, 2, 20, bytes, bytes});
        EXPECT_EQ(plan.entries(), 7U);
        std::size_t end =
            SegmentPlan::directory_offset() + Directory::bytes_for(plan.homes(), plan.entries());
        for (const std::size_t offset : {plan.doorbell_offset, plan.slots_offset, plan.limic_offset,
                                         plan.outbox_offset, plan.deposits_offset, plan.rings_offset}) {
            EXPECT_GE(offset, end);
            end = offset;
        }
        EXPECT_GE(plan.limic_offset - plan.slots_offset, 100 * wire::kPacketBytes);
        EXPECT_GE(plan.outbox_offset - plan.limic_offset, 20 * wire::kPacketBytes);
        EXPECT_EQ(plan.total_bytes() == plan.backed_bytes(), bytes == 0);
        if (bytes > 0) {
            EXPECT_GE(plan.total_bytes(), plan.rings_offset + plan.deposits.bytes());
        }
    }
}

TEST(SegmentPlanTest, numbers_of_nonsense_are_found) {
    const SegmentPlan::Numbers sane{{}, 1, 0, 0, 0, 0};
    EXPECT_TRUE(sane.are_sane());
    for (int kind = 0; kind < 5; ++kind) {
        SegmentPlan::Numbers numbers = sane;
        if (kind == 0) numbers.flow.peers = SegmentPlan::kMostSlots;
        if (kind == 1) numbers.flow.credit_slots = 256;
        if (kind == 2) numbers.limic_peers = SegmentPlan::kMostSlots;
        if (kind == 3) numbers.outbox_bytes = flow::OutboxPlan::kMostBytes + 1;
        if (kind == 4) numbers.deposit_bytes = flow::RotatingMemory::kMostBytes + 1;
        EXPECT_FALSE(numbers.are_sane()) << kind;
    }
}

}  // namespace
}  // namespace velo::fabric::shm
