// Credits between an engine and peers on other nodes, several of whose messages arrive at one look.
#include <chrono>
#include <map>

#include "played_peers.h"

namespace velo::test {
namespace {

class NetworkCredits : public PlayedPeers {
 protected:
    NetworkCredits() : PlayedPeers("static", true) {}

    // Credit packets that a peer has got since the last call.
    std::vector<std::uint32_t> credits_of(const Remote& remote) {
        std::vector<std::uint32_t> values;
        for (const FakeUcx::Message& message : FakeUcx::take_all(remote.worker)) {
            Parcel parcel;
            if (message.id != fabric::ucx::kParcelId || message.data.size() < sizeof parcel) continue;
            std::memcpy(&parcel, message.data.data(), sizeof parcel);
            if (parcel.kind == static_cast<std::uint8_t>(wire::PacketKind::kCredit))
                values.push_back(parcel.value);
        }
        return values;
    }
    // A message that makes a credit packet due.
    void put(Remote& from) {
        const Parcel parcel = parcel_of(from, 2000);
        FakeUcx::send(victim_.worker, {fabric::ucx::kParcelId, {}, joined(bytes_of(parcel), Bytes(2000))});
    }
};

// The credit packet for the first one waits for an answer when that for the second one falls due.
TEST_F(NetworkCredits, that_wait_for_one_peer_are_not_lost_to_another_one) {
    for (int round = 0; round < 3; ++round) {
        const std::size_t before = received_.size();
        put(remotes_[0]);
        put(remotes_[1]);
        settle();
        ASSERT_EQ(received_.size(), before + 2);
        const auto first = credits_of(remotes_[0]), other = credits_of(remotes_[1]);
        ASSERT_EQ(first.size(), 1U) << round;
        EXPECT_EQ(first, other);
        EXPECT_GT(first[0], 0U);
    }
}

TEST_F(NetworkCredits, that_fall_due_twice_at_one_look_travel_in_one_packet) {
    put(remotes_[0]);
    settle();
    const auto once = credits_of(remotes_[0]);
    ASSERT_EQ(once.size(), 1U);
    put(remotes_[1]);
    put(remotes_[1]);
    settle();
    const auto twice = credits_of(remotes_[1]);
    ASSERT_EQ(twice.size(), 1U);
    EXPECT_GE(twice[0], 2 * once[0]);
}

// It is lost once all that it has sent has come, and with it what waits for its credits.
TEST_F(NetworkCredits, of_a_peer_that_takes_leave_are_waited_for_until_its_last_message_has_come) {
    const auto send_to = [&](Remote& to) { return velo_send_now(to.peer, 1, "text", 4, nullptr, 0); };
    const auto look = [&](auto condition) {
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
        while (!condition() && std::chrono::steady_clock::now() < deadline) velo_progress(engine_);
        return condition();
    };
    while (send_to(remotes_[0]) == VELO_OK) continue;
    while (send_to(remotes_[1]) == VELO_OK) continue;
    say(remotes_[0], "first");
    const std::uint32_t parcels = remotes_[0].sequence + 1;
    PlayedPeers::send(fabric::ucx::kGoodbyeId, bytes_of(Introduction{victim_.key, kNames[0]}),
                      bytes_of(parcels));
    for (int i = 0; i < 100'000; ++i) velo_progress(engine_);
    EXPECT_EQ(send_to(remotes_[0]), VELO_WOULD_BLOCK);
    say(remotes_[0], "last");
    EXPECT_TRUE(look([&] { return send_to(remotes_[0]) == VELO_OK; })) << "its credits are still waited for";
    EXPECT_EQ(received_, (std::vector<std::string>{"first", "last"}));
    EXPECT_EQ(send_to(remotes_[1]), VELO_WOULD_BLOCK);
    say(remotes_[1], "from the other one");
    EXPECT_EQ(received_.back(), "from the other one");
    EXPECT_TRUE(fatal_.empty()) << fatal_.front();
}

class RefusingNetwork : public PlayedPeers {
 protected:
    RefusingNetwork() : PlayedPeers("rnr") {}

    velo_status send() { return velo_send_now(remotes_[0].peer, 1, "text", 4, nullptr, 0); }
    void report(std::uint64_t retrieved) {
        PlayedPeers::send(fabric::ucx::kRetrievedId, bytes_of(Introduction{victim_.key, kNames[0]}),
                          bytes_of(retrieved));
    }
};

TEST_F(RefusingNetwork, reports_that_overtake_each_other_do_not_count_backwards) {
    EXPECT_EQ(send(), VELO_OK);
    EXPECT_EQ(send(), VELO_OK);
    EXPECT_EQ(send(), VELO_WOULD_BLOCK);
    report(2);
    report(1);
    EXPECT_EQ(send(), VELO_OK);
    EXPECT_EQ(send(), VELO_OK);
    EXPECT_EQ(send(), VELO_WOULD_BLOCK);
}

}  // namespace
}  // namespace velo::test
