// Whether the other end of a connection still answers, by what its kernel tells.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

#include "fabric/ucx/connections.h"

namespace velo::test {
namespace {

using fabric::ucx::Connections;
using fabric::ucx::Silence;
using fabric::ucx::WorkerAddress;
using namespace std::chrono_literals;

TEST(Silence, grows_from_look_to_look_while_an_answer_is_awaited) {
    Silence silence;
    for (int i = 1; i <= 8; ++i) silence.look(true, i * 250ms, 250ms);
    EXPECT_EQ(silence.lasted(), 2000ms);
}

TEST(Silence, ends_with_an_acknowledgement) {
    Silence silence;
    silence.look(true, 250ms, 250ms);
    silence.look(true, 249ms, 250ms);
    EXPECT_EQ(silence.lasted(), 0ms);
}

TEST(Silence, is_not_that_nothing_is_awaited) {
    Silence silence;
    silence.look(true, 250ms, 250ms);
    silence.look(false, 500ms, 250ms);
    EXPECT_EQ(silence.lasted(), 0ms);
}

TEST(Silence, counts_hours_without_a_look_as_one_second) {
    Silence silence;
    silence.look(true, 3h, 2h);
    EXPECT_EQ(silence.lasted(), 1s);
}

// Two ends of a connection on this machine; `near` is the end that Connections knows by `address`.
class Sockets : public ::testing::Test {
 protected:
    void SetUp() override {
        int listener = socket(AF_INET, SOCK_STREAM, 0);
        in_.sin_family = AF_INET;
        in_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&in_), sizeof in_), 0);
        socklen_t bytes = sizeof in_;
        getsockname(listener, reinterpret_cast<sockaddr*>(&in_), &bytes);
        ASSERT_EQ(listen(listener, 1), 0);
        near_ = socket(AF_INET, SOCK_STREAM, 0);
        ASSERT_EQ(connect(near_, reinterpret_cast<sockaddr*>(&in_), sizeof in_), 0);
        far_ = accept(listener, nullptr, nullptr);
        close(listener);
        std::memcpy(address_, &in_.sin_port, 2);
        std::memcpy(address_ + 2, &in_.sin_addr, 4);
        connections_.find({}, [&](const auto& test) { return test(WorkerAddress(address_)); });
    }
    void TearDown() override {
        close(near_);
        close(far_);
    }
    // What can be read at the far end, after what was sent, is the end.
    bool is_shut() const {
        pollfd wait{far_, POLLRDHUP, 0};
        return poll(&wait, 1, 0) == 1 && (wait.revents & POLLRDHUP) != 0;
    }

    sockaddr_in in_{};
    std::byte address_[6];
    int near_ = -1, far_ = -1;
    Connections connections_{5s};
};

TEST_F(Sockets, a_shut_window_is_an_answer) {
    const char data[65536] = {};
    while (send(near_, data, sizeof data, MSG_DONTWAIT) > 0) {
    }
    for (Silence::Time now = 1s; now < 60s; now += 1s) EXPECT_FALSE(connections_.end_silent(now));
    EXPECT_FALSE(is_shut());
}

}  // namespace
}  // namespace velo::test
