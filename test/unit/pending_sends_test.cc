// What waits to leave, without an engine: its order, what a peer is told of a stall, and what becomes of it
// when the peer ends.
#include "engine/pending_sends.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <mutex>
#include <string>
#include <utility>

#include "node_process.h"

namespace velo::test {
namespace {

using engine::Peer;

// A send of so many bytes that writes its name when it is done.
struct Waiting {
    Waiting(char its_name, std::size_t bytes, std::string& in) : name(its_name), done_in_order(in) {
        send.bytes[0] = bytes;
        send.done = [](velo_send* done, velo_status status) {
            auto& self = *reinterpret_cast<Waiting*>(done);
            self.done_in_order += status == VELO_OK ? self.name : '!';
            if (self.then) self.then();
        };
    }
    velo_send send{};
    char name;
    std::string& done_in_order;
    std::function<void()> then;
};

class PendingSendsTest : public ::testing::Test, private engine::PendingSendsHost {
 protected:
    // As credits for so many bytes allow.
    bool push(Peer&, velo_send& send, wire::PacketKind) override {
        const std::size_t now = std::min(send.bytes[0] - send.sent, allowed_);
        send.sent += now;
        allowed_ -= now;
        return send.sent == send.bytes[0];
    }
    // In words: what is done, and what is left.
    std::string flush(std::size_t allowed) {
        allowed_ = allowed;
        const bool left = pending_.send(peer_);
        pending_.call_back();
        return std::exchange(done_, "") + (left ? "+" : "");
    }

    NodeProcess node_{10, "static"}, other_{11, "static"};
    Peer& peer_ = node_.expect(other_);
    engine::Remote remote_{{node_, node_.mutex(), node_.idle(), node_.units(), node_.peers(), node_.large(),
                            node_.departures(), node_.observer(), node_.config(), node_.mailbox()}};
    engine::PendingSends pending_{*this, node_.mutex(), node_.idle(), remote_, node_.observer()};
    std::size_t allowed_ = 0;
    std::string done_;
    Waiting a_{'a', 100, done_}, b_{'b', 50, done_};
};

TEST_F(PendingSendsTest, they_leave_in_order_as_far_as_they_may) {
    pending_.enqueue(peer_, &a_.send);
    pending_.enqueue(peer_, &b_.send);
    EXPECT_EQ(peer_.queue.bytes(), 150U);
    EXPECT_EQ(flush(0), "+");
    EXPECT_EQ(flush(70), "+");
    EXPECT_EQ(peer_.queue.bytes(), 80U);
    EXPECT_EQ(flush(40), "a+");
    EXPECT_EQ(flush(40), "b");
    EXPECT_FALSE(pending_.any());
}

// From the first one that waits until none does.
TEST_F(PendingSendsTest, a_stall_lasts_as_long_as_something_waits) {
    EXPECT_FALSE(node_.observer().any_stall());
    pending_.enqueue(peer_, &a_.send);
    pending_.enqueue(peer_, &b_.send);
    EXPECT_EQ(node_.observer().counts.stalls, 1U);
    EXPECT_EQ(flush(120), "a+");
    EXPECT_TRUE(node_.observer().any_stall());
    EXPECT_EQ(flush(30), "b");
    EXPECT_FALSE(node_.observer().any_stall());
}

// Its sender learns nothing of it: nobody would read the message.
TEST_F(PendingSendsTest, what_waits_for_a_peer_that_departs_is_done) {
    pending_.enqueue(peer_, &a_.send);
    pending_.enqueue(peer_, &b_.send);
    EXPECT_EQ(flush(20), "+");
    pending_.departed(peer_);
    EXPECT_EQ(peer_.queue.bytes(), 0U);
    EXPECT_EQ(flush(100), "ab");
    EXPECT_FALSE(node_.observer().any_stall());
}

TEST_F(PendingSendsTest, what_a_callback_completes_waits_for_the_next_poll_and_takes_the_mutex) {
    pending_.enqueue(peer_, &a_.send);
    pending_.enqueue(peer_, &b_.send);
    a_.then = [&] {
        std::lock_guard lock(node_.mutex());
        allowed_ = 50;
        EXPECT_FALSE(pending_.send(peer_));
    };
    EXPECT_EQ(flush(100), "a+");
    EXPECT_TRUE(pending_.any());
    EXPECT_TRUE(node_.idle().is_wanted());
    EXPECT_EQ(flush(0), "b");
}

TEST_F(PendingSendsTest, the_engines_own_are_done_at_once) {
    a_.send.flags = wire::kInternal;
    pending_.enqueue(peer_, &a_.send);
    allowed_ = 100;
    EXPECT_FALSE(pending_.send(peer_));
    EXPECT_EQ(done_, "a");
    EXPECT_FALSE(pending_.any());
}

}  // namespace
}  // namespace velo::test
