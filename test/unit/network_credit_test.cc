// Credits between an engine and peers on other nodes, several of whose messages arrive at one look.
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
