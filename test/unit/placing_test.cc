// What is announced of receives, where no mechanism lets a process write to another one; and which receives
// wait for the dead. test/unit/performer_announced_test.cc has the copies.
#include "messaging/placing.h"

#include <gtest/gtest.h>

#include "messaging/dead_sources.h"
#include "messaging/receive_state.h"
#include "platform/failure.h"
#include "unit/fake_channel.h"
#include "unit/node_process.h"

namespace velo::messaging {
namespace {

class PlacingTest : public testing::Test {
 protected:
    static constexpr matching::Key kKey{1, 0, 5};
    test::NodeProcess one_{10, "static"}, two_{11, "static"};
    engine::Peer& peer_ = one_.expect(two_);
    test::FakeChannel channel_;
    AwaitedSends awaited_;
    Placing placing_{one_.large(), channel_, awaited_, one_.mutex()};
};

TEST_F(PlacingTest, a_receive_that_nobody_could_write_to_is_not_announced) {
    velo_message_receive receive{};
    receive.turn = kWaiting;
    receive.capacity = 100'000;
    EXPECT_FALSE(placing_.announce(peer_, kKey, &receive));
    EXPECT_EQ(receive.turn, kWaiting);
    EXPECT_TRUE(channel_.said.empty());
}

TEST_F(PlacingTest, a_send_that_cannot_be_helped_is_as_if_nothing_had_been_announced) {
    velo_message_send send{};
    const std::byte data[8]{};
    AnnounceHeader announcement{{kKey, 0, Kind::kAnnounce, 0}, 0x1000, sizeof data, 0, 0};
    placing_.announcement_arrived(peer_, announcement);
    EXPECT_EQ(placing_.begin(peer_, kKey, data, sizeof data, &send), &send);
    announcement.ticket = fabric::shm::kShareCells;
    EXPECT_THROW(placing_.announcement_arrived(peer_, announcement), Failure) << "a cell that there is not";
}

TEST(DeadSourcesTest, only_receives_that_name_a_dead_source_wait_in_vain) {
    test::NodeProcess one(10, "static"), two(11, "static");
    engine::Peer& peer = one.expect(two);
    matching::PostedQueue queue;
    matching::Posted first{}, second{}, other{}, any{};
    queue.push(&first, {1, 0, 5});
    queue.push(&second, {1, 0, 5});
    queue.push(&other, {1, 2, 5});
    queue.push(&any, {1, matching::kAnySource, 5});
    DeadSources dead;
    dead.watch([](void*, std::uint32_t context, std::int32_t source) { return context == 1 && source == 0; },
               nullptr);
    EXPECT_TRUE(dead.departed(peer, queue).empty()) << "it has closed";
    EXPECT_FALSE(dead.waits_in_vain(first));
    peer.died = true;
    EXPECT_EQ(dead.departed(peer, queue), (std::vector{&first, &second}));
    EXPECT_EQ(queue.size(), 2U);
    EXPECT_TRUE(dead.waits_in_vain(first));
    EXPECT_FALSE(dead.waits_in_vain(any));
}

}  // namespace
}  // namespace velo::messaging
