// How a rendezvous reaches its receive: between two processes without an engine, whose messages the test
// carries.
#include "messaging/fetching.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "messaging/unmatched.h"
#include "unit/fake_channel.h"
#include "unit/node_process.h"

namespace velo::messaging {
namespace {

class FetchingTest : public testing::Test {
 protected:
    struct Receive {
        velo_message_receive receive{};
        std::string data;
        std::vector<velo_status> done;
    };
    FetchingTest() : from_(one_.expect(two_)), to_(two_.expect(one_)) {
        receive_.receive.done = [](velo_message_receive* receive, velo_status status) {
            reinterpret_cast<Receive*>(receive)->done.push_back(status);
        };
        receive_.receive.turn = kMatched;
    }
    void fetch(const std::string& sent, std::size_t capacity) {
        receive_.data.resize(capacity);
        receive_.receive.buffer = receive_.data.data();
        receive_.receive.capacity = capacity;
        fetching_.fetch(&receive_.receive, parked_like(from_, {{{1, 0, 5}, 0, Kind::kRendezvous, 0},
                                                               kId,
                                                               reinterpret_cast<std::uint64_t>(sent.data()),
                                                               sent.size()}));
        one_.carry_all(two_, to_, from_);
    }
    using Done = std::vector<std::pair<std::uint64_t, velo_status>>;

    static constexpr std::uint64_t kId = 17;
    test::NodeProcess one_{10, "static"}, two_{11, "static"};
    engine::Peer& from_;
    engine::Peer& to_;
    test::FakeChannel channel_;
    std::shared_ptr<Notes> notes_ = std::make_shared<Notes>(false);
    Fetching fetching_{one_.large(), channel_, notes_};
    Receive receive_;
};

TEST_F(FetchingTest, no_more_is_fetched_than_the_receive_has_room_for) {
    fetch(std::string(5000, 's'), 3000);
    EXPECT_EQ(receive_.done, std::vector{VELO_OK});
    EXPECT_EQ(receive_.data, std::string(3000, 's'));
    EXPECT_EQ(receive_.receive.bytes, 5000U);
    EXPECT_EQ(one_.observer().counts.rma_mailbox_bytes, 3000U);
    EXPECT_EQ(channel_.done, (Done{{kId, VELO_OK}}));
}

TEST_F(FetchingTest, what_needs_no_data_is_answered_at_once) {
    fetch(std::string(5000, 's'), 0);
    EXPECT_EQ(receive_.done, std::vector{VELO_OK});
    EXPECT_EQ(channel_.done, (Done{{kId, VELO_OK}}));
    EXPECT_EQ(one_.observer().counts.rma_mailbox_bytes, 0U);
}

TEST_F(FetchingTest, a_message_that_is_unpacked_comes_in_parts_in_their_order) {
    std::string sent;
    for (int i = 0; sent.size() < 600'000; ++i) sent += std::to_string(i);
    receive_.receive.unpack = [](velo_message_receive* receive, const void* data, std::size_t bytes) {
        auto& parts = *reinterpret_cast<Receive*>(receive);
        parts.done.push_back(VELO_QUEUED);
        parts.data.append(static_cast<const char*>(data), bytes);
    };
    fetch(sent, sent.size());
    EXPECT_EQ(receive_.done, (std::vector{VELO_QUEUED, VELO_QUEUED, VELO_QUEUED, VELO_OK}));
    EXPECT_EQ(receive_.data.substr(sent.size()), sent);
    EXPECT_EQ(channel_.done, (Done{{kId, VELO_OK}}));
}

TEST_F(FetchingTest, a_sender_that_has_departed_is_told_of_the_error_and_so_is_the_receive) {
    one_.departures().mark_ended(from_);
    one_.departures().look_at_all();
    fetch(std::string(5000, 's'), 5000);
    EXPECT_EQ(receive_.done, std::vector{VELO_ERR_REMOTE});
    EXPECT_EQ(channel_.done, (Done{{kId, VELO_ERR_REMOTE}}));
}

TEST_F(FetchingTest, a_message_to_oneself_is_copied_and_its_send_is_over) {
    std::string sent(700, 's');
    velo_message_send send{};
    static int over;
    over = 0;
    send.done = [](velo_message_send*, velo_status status) { over += status == VELO_OK; };
    send.awaited = 1;
    receive_.data.resize(sent.size());
    receive_.receive.buffer = receive_.data.data();
    receive_.receive.capacity = sent.size();
    fetching_.fetch(&receive_.receive, parked_like(nullptr, {1, 0, 5}, Kind::kRendezvous, sent.size(),
                                                   reinterpret_cast<std::uint64_t>(&send),
                                                   reinterpret_cast<std::uint64_t>(sent.data())));
    EXPECT_EQ(receive_.data, sent);
    EXPECT_EQ(over, 1);
    EXPECT_TRUE(channel_.done.empty());
}

}  // namespace
}  // namespace velo::messaging
