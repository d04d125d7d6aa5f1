// An engine with two peers on other nodes, both played by the test: what they send is right but for one lie.
// Strangers have no effect; a peer that lies is named and ends the job; nothing is written where nobody
// waits.
#include <algorithm>
#include <random>

#include "played_peers.h"

namespace velo::test {
namespace {

class UcxLies : public PlayedPeers {
 protected:
    using PlayedPeers::PlayedPeers;

    // A stranger's message has no effect; what peers send goes on arriving.
    void expect_no_effect() {
        EXPECT_TRUE(fatal_.empty()) << fatal_.front();
        EXPECT_TRUE(received_.empty());
        EXPECT_EQ(completed_, 0);
        say(remotes_[0], "from the first");
        say(remotes_[1], "from the second");
        EXPECT_EQ(received_, (std::vector<std::string>{"from the first", "from the second"}));
    }
    void expect_the_end(const Remote& of, const char* text) {
        ASSERT_EQ(fatal_.size(), 1U);
        EXPECT_NE(fatal_[0].find(text), std::string::npos) << fatal_[0];
        EXPECT_NE(fatal_[0].find("rank " + std::to_string(of.name) + " "), std::string::npos) << fatal_[0];
        EXPECT_EQ(completed_, 0);
    }
};

// --- strangers

TEST_F(UcxLies, a_parcel_with_a_wrong_key_has_no_effect) {
    Parcel parcel = parcel_of(remotes_[0], 5);
    --remotes_[0].sequence;
    parcel.key ^= 1;
    say(parcel, Bytes(5));
    expect_no_effect();
}

TEST_F(UcxLies, a_parcel_with_a_wrong_key_behind_a_right_one_has_no_effect) {
    say(remotes_[0], "right");
    Parcel parcel = parcel_of(remotes_[0], 5);
    parcel.key ^= 1;
    say(parcel, Bytes(5));
    EXPECT_EQ(received_, std::vector<std::string>{"right"});
    EXPECT_TRUE(fatal_.empty());
}

TEST_F(UcxLies, a_parcel_under_a_name_that_nobody_has_is_without_effect) {
    Remote stranger;
    stranger.name = kStranger;
    say(stranger, "hello");
    expect_no_effect();
}

TEST_F(UcxLies, a_fragment_with_a_wrong_key_reaches_no_memory) {
    const MessageHeader reply = get(remotes_[0], 8192);
    Fragment fragment = fragment_of(remotes_[0], reply);
    fragment.key ^= 1;
    say(fragment, reply, 8192);
    EXPECT_EQ((*memory_[0])[0], std::byte{0});
    expect_no_effect();
}

TEST_F(UcxLies, an_introduction_with_a_wrong_key_or_under_another_name_is_not_taken) {
    Remote stranger;
    stranger.name = kStranger;
    const Bytes address = fabric::ucx::pack(address_of(stranger));
    send(fabric::ucx::kHelloId, bytes_of(Introduction{victim_.key ^ 1, kStranger}), address);
    send(fabric::ucx::kHelloId, bytes_of(Introduction{victim_.key, kNames[0]}), address);
    say(stranger, "unheard");
    expect_no_effect();
}

TEST_F(UcxLies, an_introduction_with_the_key_is_taken) {
    Remote stranger;
    stranger.name = kStranger;
    send(fabric::ucx::kHelloId, bytes_of(Introduction{victim_.key, kStranger}),
         fabric::ucx::pack(address_of(stranger)));
    say(stranger, "heard");
    EXPECT_EQ(received_, std::vector<std::string>{"heard"});
}

TEST_F(UcxLies, messages_that_are_shorter_than_their_headers_have_no_effect) {
    const auto cut = [](Bytes bytes) { return bytes.pop_back(), bytes; };
    Fragment fragment{victim_.key, kNames[0], 10, 0, 0, 0};
    Introduction introduction{victim_.key, kNames[0]};
    Parcel parcel = parcel_of(remotes_[0], 0);
    --remotes_[0].sequence;
    send(fabric::ucx::kParcelId, {}, cut(bytes_of(parcel)));
    send(fabric::ucx::kFragmentId, cut(bytes_of(fragment)), Bytes(10));
    for (unsigned id :
         {fabric::ucx::kHelloId, fabric::ucx::kGoodbyeId, fabric::ucx::kBulkId, fabric::ucx::kRetrievedId})
        send(id, cut(bytes_of(introduction)), Bytes(8));
    send(fabric::ucx::kRetrievedId, bytes_of(introduction), Bytes(7));
    send(fabric::ucx::kGoodbyeId, bytes_of(introduction), Bytes(3));
    expect_no_effect();
}

TEST_F(UcxLies, half_a_parcel_behind_others_has_no_effect) {
    Bytes parcels = joined(bytes_of(parcel_of(remotes_[0], 5)), Bytes(5));
    parcels.resize(parcels.size() + sizeof(Parcel) - 1);
    send(fabric::ucx::kParcelsId, {}, parcels);
    EXPECT_EQ(received_.size(), 1U);
    received_.clear();
    expect_no_effect();
}

TEST_F(UcxLies, parcels_with_a_header_of_ucx_have_no_effect) {
    const Bytes parcel = joined(bytes_of(parcel_of(remotes_[0], 5)), Bytes(5));
    --remotes_[0].sequence;
    send(fabric::ucx::kParcelsId, Bytes(1), parcel);
    send(fabric::ucx::kParcelsId, {}, parcel, true);
    send(fabric::ucx::kParcelsId, {}, {});
    expect_no_effect();
}

// --- peers

TEST_F(UcxLies, parcels_behind_each_other_arrive_as_if_each_had_come_alone) {
    Bytes parcels;
    for (const char* text : {"first", "", "third"}) {
        const std::size_t bytes = std::strlen(text);
        auto* data = reinterpret_cast<const std::byte*>(text);
        parcels = joined(joined(parcels, bytes_of(parcel_of(remotes_[0], bytes))), {data, data + bytes});
    }
    send(fabric::ucx::kParcelsId, {}, parcels);
    EXPECT_EQ(received_, (std::vector<std::string>{"first", "", "third"}));
    say(remotes_[0], "alone");
    EXPECT_EQ(received_.size(), 4U);
    EXPECT_TRUE(fatal_.empty());
}

TEST_F(UcxLies, a_parcel_that_reaches_past_the_end_of_its_message_is_refused) {
    Bytes parcels = joined(bytes_of(parcel_of(remotes_[1], 5)), Bytes(5));
    parcels = joined(joined(parcels, bytes_of(parcel_of(remotes_[1], 6))), Bytes(5));
    send(fabric::ucx::kParcelsId, {}, parcels);
    EXPECT_EQ(received_.size(), 1U);
    expect_the_end(remotes_[1], "another length than announced");
}

TEST_F(UcxLies, a_parcel_of_another_length_than_announced_is_refused) {
    say(parcel_of(remotes_[1], 6), Bytes(5));
    expect_the_end(remotes_[1], "another length than announced");
}

TEST_F(UcxLies, sequences_are_each_senders_own) {
    say(remotes_[0], "a");
    say(remotes_[1], "b");
    remotes_[1].sequence = 0;
    say(remotes_[1], "b again");
    expect_the_end(remotes_[1], "a parcel that came before");
    EXPECT_EQ(received_.size(), 2U);
}

TEST_F(UcxLies, an_rma_header_that_is_cut_off_is_refused) {
    say(parcel_of(remotes_[0], sizeof(MessageHeader) - 1, wire::kInternal | wire::kFirst | wire::kLast),
        Bytes(sizeof(MessageHeader) - 1));
    expect_the_end(remotes_[0], "does not belong to a message");
}

TEST_F(UcxLies, a_total_that_is_not_the_headers_is_refused) {
    const MessageHeader reply = get(remotes_[0], 8192);
    Fragment fragment = fragment_of(remotes_[0], reply);
    ++fragment.total;
    say(fragment, reply, 4096);
    expect_the_end(remotes_[0], "nobody has asked for");
}

TEST_F(UcxLies, the_other_peer_cannot_go_on_with_a_transfer) {
    const MessageHeader first = get(remotes_[0], 8192), second = get(remotes_[1], 8192);
    say(fragment_of(remotes_[0], first), first, 4096);
    Fragment fragment = fragment_of(remotes_[1], first);
    fragment.offset = 4096;
    say(fragment, first, 4096);
    expect_the_end(remotes_[1], "nobody has asked for");
    EXPECT_EQ((*memory_[1])[0], std::byte{0});
    EXPECT_EQ(second.operation, Operation::kGetReply);
}

TEST_F(UcxLies, bulk_data_that_was_not_asked_for_is_refused_whether_it_is_here_or_announced) {
    MessageHeader reply = get(remotes_[0], 8192);
    ++reply.bytes;
    send(fabric::ucx::kBulkId, joined(bytes_of(Introduction{victim_.key, kNames[0]}), bytes_of(reply)),
         Bytes(8193), true);
    ASSERT_EQ(fatal_.size(), 1U);
    EXPECT_NE(fatal_[0].find("nobody has asked for"), std::string::npos) << fatal_[0];
}

TEST_F(UcxLies, bulk_data_of_the_other_peer_is_refused) {
    const MessageHeader reply = get(remotes_[0], 8192);
    send(fabric::ucx::kBulkId, joined(bytes_of(Introduction{victim_.key, kNames[1]}), bytes_of(reply)),
         Bytes(8192));
    EXPECT_EQ(fatal_.size(), 1U);
    EXPECT_EQ(completed_, 0);
}

TEST_F(UcxLies, bulk_data_with_a_wrong_key_has_no_effect) {
    const MessageHeader reply = get(remotes_[0], 8192);
    send(fabric::ucx::kBulkId, joined(bytes_of(Introduction{victim_.key ^ 1, kNames[0]}), bytes_of(reply)),
         Bytes(8192));
    expect_no_effect();
}

TEST_F(UcxLies, the_right_bulk_data_completes_a_get) {
    for (bool announced : {false, true}) {
        const MessageHeader reply = get(remotes_[1], 8192);
        send(fabric::ucx::kBulkId, joined(bytes_of(Introduction{victim_.key, kNames[1]}), bytes_of(reply)),
             Bytes(8192, std::byte{'B'}), announced);
        EXPECT_EQ((*memory_.back())[8191], std::byte{'B'});
    }
    EXPECT_EQ(completed_, 2);
    EXPECT_TRUE(fatal_.empty());
}

// Both peers send messages and answers, cut into fragments in any order.
TEST_F(UcxLies, two_peers_that_interleave_get_everything_through) {
    std::mt19937 random(5);
    for (int round = 0; round < 30; ++round) {
        struct Piece {
            Fragment fragment;
            MessageHeader header;
            std::size_t bytes;
        };
        std::vector<Piece> pieces;
        const int before = completed_;
        for (Remote& remote : remotes_) {
            Parcel credits = parcel_of(remote, 0);
            credits.kind = static_cast<std::uint8_t>(wire::PacketKind::kCredit);
            credits.value = 2;  // for the question and for what it comes with
            say(credits, {});
            const std::uint64_t total = 4096 + random() % 20'000;
            const MessageHeader reply = get(remote, total);
            for (std::uint64_t offset = 0; offset < total;) {
                const std::uint64_t bytes = std::min<std::uint64_t>(1 + random() % 9000, total - offset);
                Fragment fragment = fragment_of(remote, reply, static_cast<std::uint32_t>(round));
                fragment.offset = offset;
                pieces.push_back({fragment, reply, bytes});
                offset += bytes;
            }
        }
        std::shuffle(pieces.begin(), pieces.end(), random);
        for (const Piece& piece : pieces) {
            say(remotes_[random() % 2], "in between");
            say(piece.fragment, piece.header, piece.bytes);
        }
        ASSERT_EQ(completed_, before + 2);
        ASSERT_TRUE(fatal_.empty()) << fatal_.front();
    }
}

// --- references: between nodes there are none

TEST_F(UcxLies, a_reference_is_refused) {
    say(parcel_of(remotes_[0], sizeof(wire::Reference), wire::kReference | wire::kFirst | wire::kLast),
        Bytes(sizeof(wire::Reference)));
    expect_the_end(remotes_[0], "unknown flags");
}

// What is at the head of the mailbox waits for nobody's next call.
TEST_F(UcxLies, a_message_whose_rest_is_not_sent_holds_up_no_other_sender) {
    say(parcel_of(remotes_[0], 100, wire::kFirst), Bytes(100));
    say(remotes_[1], "from the second");
    EXPECT_EQ(received_, std::vector<std::string>{"from the second"});
}

}  // namespace
}  // namespace velo::test
