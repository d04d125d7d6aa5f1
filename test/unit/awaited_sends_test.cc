// The ids of sends that wait for their receivers: what a peer may make of them.
#include "messaging/awaited_sends.h"

#include <gtest/gtest.h>

namespace velo::messaging {
namespace {

constexpr std::uint32_t kPeer = 3, kOther = 4;

TEST(AwaitedSends, a_send_is_found_once_by_the_peer_that_was_told_its_id) {
    AwaitedSends sends;
    velo_message_send first{}, second{};
    const std::uint64_t a = sends.add(&first, kPeer), b = sends.add(&second, kPeer);
    EXPECT_NE(a, b);
    EXPECT_EQ(sends.remove(b, kPeer), &second);
    EXPECT_EQ(sends.remove(a, kPeer), &first);
    EXPECT_EQ(sends.remove(a, kPeer), nullptr);
}

TEST(AwaitedSends, another_peer_and_an_invented_id_find_nothing) {
    AwaitedSends sends;
    velo_message_send send{};
    const std::uint64_t id = sends.add(&send, kPeer);
    EXPECT_EQ(sends.remove(id, kOther), nullptr);
    EXPECT_EQ(sends.remove(id + 1, kPeer), nullptr);
    EXPECT_EQ(sends.remove(~std::uint64_t{0}, kPeer), nullptr);
    EXPECT_EQ(sends.remove(id, kPeer), &send);
}

TEST(AwaitedSends, the_id_of_a_send_that_is_over_does_not_find_the_next_one_in_its_place) {
    AwaitedSends sends;
    velo_message_send send{};
    const std::uint64_t old = sends.add(&send, kPeer);
    sends.remove(old, kPeer);
    const std::uint64_t id = sends.add(&send, kPeer);
    EXPECT_EQ(sends.remove(old, kPeer), nullptr);
    EXPECT_EQ(sends.remove(id, kPeer), &send);
}

TEST(AwaitedSends, no_id_is_0_when_a_place_has_been_used_as_often_as_numbers_go) {
    AwaitedSends sends(UINT32_MAX - 1);
    velo_message_send send{};
    std::uint64_t before = 0;
    for (int i = 0; i < 4; ++i) {
        const std::uint64_t id = sends.add(&send, kPeer);
        EXPECT_NE(id, 0U);
        EXPECT_EQ(sends.remove(before, kPeer), nullptr);
        EXPECT_EQ(sends.remove(id, kPeer), &send);
        before = id;
    }
}

}  // namespace
}  // namespace velo::messaging
