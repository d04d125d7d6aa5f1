// What add_procs does for each peer takes as many steps with 16,384 of them as with a few.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "../../opal/mca/btl/velo/btl_velo_places.h"
#include "fabric/shm/segment.h"

namespace velo::fabric::shm {
namespace {

constexpr std::uint32_t kPeers = 16'384;

std::vector<std::uint64_t> names(std::uint64_t first, std::uint32_t count) {
    std::vector<std::uint64_t> ascending(count);
    for (std::uint32_t i = 0; i < count; ++i) ascending[i] = first + 3 * std::uint64_t{i};
    return ascending;
}

TEST(ManyPeersTest, an_entry_of_the_directory_is_found_in_the_logarithm_of_the_peers) {
    const std::vector<std::uint64_t> peers = names(1000, kPeers);
    std::uint64_t reads = 0;
    const auto name_at = [&](std::uint32_t i) {
        ++reads;
        return peers.at(i);
    };
    for (std::uint32_t i = 0; i < kPeers; ++i) ASSERT_EQ(find_ascending(0, kPeers, peers[i], name_at), i);
    EXPECT_LE(reads, 15U * kPeers);
    EXPECT_FALSE(find_ascending(0, kPeers, 999, name_at));
    EXPECT_FALSE(find_ascending(0, kPeers, 1001, name_at));
    EXPECT_FALSE(find_ascending(0, kPeers, peers.back() + 1, name_at));
    EXPECT_FALSE(find_ascending(0, 0, 1000, name_at));
    EXPECT_EQ(find_ascending(16'000, 384, peers[16'010], name_at), 16'010U);
}

TEST(ManyPeersTest, every_process_of_a_large_job_finds_its_entry_and_strangers_take_spare_ones) {
    const std::vector<std::uint64_t> peers = names(1000, kPeers), limic = names(1001, 100);
    std::uint64_t probe = 0;
    Segment::Layout layout{};
    layout.owner = 10;
    std::strcpy(layout.agreement.flow_control, "none");
    layout.flow.peers = kPeers;
    layout.flow.spare_peers = 2;
    layout.flow.data_slots = kPeers;
    layout.flow.credit_slots = 1;
    parameters::agree_on(layout.flow, &layout.agreement);
    layout.node_peers = peers.data();
    layout.limic_peers = limic.data();
    layout.limic_peer_count = 100;
    layout.limic_slots = 8;
    Segment segment = Segment::create("/dev/shm", layout, &probe);
    for (std::uint32_t i = 0; i < kPeers; ++i) ASSERT_EQ(segment.senders().find_place(peers[i]), i);
    EXPECT_EQ(segment.senders().find_place(999), kPeers);
    EXPECT_EQ(segment.senders().find_place(998), kPeers + 1);
    EXPECT_EQ(segment.senders().find_place(999), kPeers);
    EXPECT_FALSE(segment.senders().find_place(997));
    for (std::uint32_t i = 0; i < 100; ++i) ASSERT_EQ(segment.senders().find_place(limic[i]), kPeers + 2 + i);
}

TEST(ManyPeersTest, endpoints_are_found_by_place_and_the_table_grows_by_doubling) {
    mca_btl_velo_places_t places{};
    std::vector<int> endpoints(kPeers);
    int self = 0;
    unsigned moved = 0;
    EXPECT_EQ(mca_btl_velo_places_find(&places, 0), nullptr);
    EXPECT_TRUE(mca_btl_velo_places_set(&places, MCA_BTL_VELO_OWN_PLACE, &self));
    for (std::uint32_t place = 0; place < kPeers; ++place) {
        const std::uint32_t before = places.count;
        ASSERT_TRUE(mca_btl_velo_places_set(&places, place, &endpoints[place]));
        if (places.count != before) ++moved;
    }
    EXPECT_LE(moved, 11U);  // from 16 to 32,768
    EXPECT_LE(places.count, 2 * kPeers);
    for (std::uint32_t place = 0; place < kPeers; ++place)
        ASSERT_EQ(mca_btl_velo_places_find(&places, place), &endpoints[place]);
    EXPECT_EQ(mca_btl_velo_places_find(&places, MCA_BTL_VELO_OWN_PLACE), &self);
    EXPECT_EQ(mca_btl_velo_places_find(&places, 1U << 20), nullptr);
    EXPECT_TRUE(mca_btl_velo_places_set(&places, 7, nullptr));
    EXPECT_EQ(mca_btl_velo_places_find(&places, 7), nullptr);
    EXPECT_TRUE(mca_btl_velo_places_set(&places, 1U << 16, &self));
    EXPECT_EQ(mca_btl_velo_places_find(&places, 1U << 16), &self);
    EXPECT_EQ(mca_btl_velo_places_find(&places, kPeers), nullptr);
    mca_btl_velo_places_clear(&places);
}

}  // namespace
}  // namespace velo::fabric::shm
