// An engine with two peers on other nodes, both played by the test: what they send is right but for one lie.
// Strangers have no effect; a peer that lies is named and ends the job; nothing is written where nobody
// waits.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "api/velo.h"
#include "endpoint/engine.h"
#include "fabric/shm/address.h"
#include "fabric/ucx/address.h"
#include "fabric/ucx/messages.h"
#include "fake_ucx.h"
#include "rma/message.h"

namespace velo::test {
namespace {

using fabric::ucx::Fragment;
using fabric::ucx::Introduction;
using fabric::ucx::Parcel;
using rma::MessageHeader;
using rma::Operation;
using Bytes = std::vector<std::byte>;

constexpr std::uint64_t kVictim = 100, kNames[] = {201, 202}, kStranger = 203;

template <typename T>
Bytes bytes_of(const T& value) {
    auto* first = reinterpret_cast<const std::byte*>(&value);
    return {first, first + sizeof value};
}

Bytes joined(Bytes first, const Bytes& second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
}

// A process on another node, as far as its network is concerned.
struct Remote {
    std::uint64_t name = 0;
    Bytes worker = FakeUcx::open_worker();
    velo_peer* peer = nullptr;
    std::uint32_t sequence = 0;

    Remote() = default;
    Remote(const Remote&) = delete;
    ~Remote() { FakeUcx::close_worker(worker); }
};

class UcxLies : public ::testing::Test {
 protected:
    UcxLies() {
#ifdef VELO_CHECKED
        endpoint::Engine::violations_abort = false;
#endif
        velo_config config{};
        config.flow_control = "dynamic";
        config.slots_per_peer = 64;
        config.credit_slots = 2;
        config.piggyback = true;
        config.packet_trains = true;
        config.preposted_buffers = config.initial_buffers = config.growth_buffers = 2;
        config.credit_message_threshold = 2;
        config.rnr_timer_ns = 1;
        config.lazy_slots = config.lazy_peers = 2;
        config.single_copy = "copy";
        config.backing_directory = "/dev/shm";
        config.max_message_bytes = 4096;
        config.process_name = kVictim;
        config.remote_peers = kNames;
        config.remote_peer_count = 2;
        config.spare_peers = 1;
        config.context = this;
        config.message = [](void* context, std::uint8_t, void* data, std::size_t bytes) {
            static_cast<UcxLies*>(context)->received_.emplace_back(static_cast<char*>(data), bytes);
        };
        config.fatal = [](void* context, velo_status, const char* text) {
            static_cast<UcxLies*>(context)->fatal_.emplace_back(text);
        };
        config.log = [](void*, int, const char*) {};
        char error[512] = "";
        EXPECT_EQ(velo_engine_open(&config, &engine_, error, sizeof error), VELO_OK) << error;
        std::size_t bytes = 0;
        auto* address = static_cast<const std::byte*>(velo_engine_address(engine_, &bytes));
        local_part_.assign(address, address + sizeof(fabric::shm::Address));
        EXPECT_TRUE(fabric::ucx::parse({address + local_part_.size(), bytes - local_part_.size()}, &victim_));
        for (int i = 0; i < 2; ++i) connect(remotes_[i], kNames[i]);
    }
    ~UcxLies() override {
        velo_engine_close(engine_);
#ifdef VELO_CHECKED
        endpoint::Engine::violations_abort = true;
#endif
    }

    fabric::ucx::Address address_of(const Remote& remote) const {
        fabric::ucx::Address address = victim_;
        address.name = remote.name;
        address.key = 1000 + remote.name;
        address.worker = remote.worker;
        return address;
    }
    void connect(Remote& remote, std::uint64_t name) {
        remote.name = name;
        const Bytes whole = joined(local_part_, fabric::ucx::pack(address_of(remote)));
        std::uint32_t place = 0;
        char error[512] = "";
        ASSERT_EQ(velo_peer_expect_remote(engine_, whole.data(), whole.size(), &place, error, sizeof error),
                  VELO_OK)
            << error;
        remote.peer = velo_peer_at(engine_, place);
    }

    // Whatever is under way, and a few looks more.
    void settle() {
        for (int i = 0; i < 40; ++i) velo_progress(engine_);
    }
    void send(unsigned id, Bytes header, Bytes data, bool announced = false) {
        FakeUcx::send(victim_.worker, {id, std::move(header), std::move(data), announced});
        settle();
    }
    Parcel parcel_of(Remote& from, std::size_t bytes, std::uint8_t flags = wire::kFirst | wire::kLast) {
        Parcel parcel{};
        parcel.key = victim_.key;
        parcel.sender = from.name;
        parcel.sequence = from.sequence++;
        parcel.bytes = static_cast<std::uint32_t>(bytes);
        parcel.kind = static_cast<std::uint8_t>(wire::PacketKind::kData);
        parcel.flags = flags;
        parcel.tag = 1;
        parcel.run_packets = 4;
        return parcel;
    }
    void say(const Parcel& parcel, const Bytes& data) {
        send(fabric::ucx::kParcelId, {}, joined(bytes_of(parcel), data));
    }
    void say(Remote& from, const std::string& text) {
        auto* first = reinterpret_cast<const std::byte*>(text.data());
        say(parcel_of(from, text.size()), {first, first + text.size()});
    }
    Fragment fragment_of(const Remote& from, const MessageHeader& header, std::uint32_t id = 0) const {
        return Fragment{victim_.key, from.name, header.bytes, 0, id, 0};
    }
    void say(const Fragment& fragment, const MessageHeader& header, std::size_t bytes) {
        send(fabric::ucx::kFragmentId, joined(bytes_of(fragment), bytes_of(header)),
             Bytes(bytes, std::byte{'D'}));
    }

    // Starts a get from the peer; the header of the answer that it waits for.
    MessageHeader get(Remote& from, std::uint64_t bytes) {
        FakeUcx::take_all(from.worker);
        memory_.push_back(std::make_unique<std::byte[]>(bytes));
        const auto done = [](void* argument, velo_status, std::uint64_t) { ++*static_cast<int*>(argument); };
        EXPECT_EQ(velo_get(engine_, from.peer, memory_.back().get(), 4096, bytes, done, &completed_),
                  VELO_QUEUED);
        settle();
        MessageHeader header{};
        for (const FakeUcx::Message& message : FakeUcx::take_all(from.worker)) {
            if (message.id != fabric::ucx::kParcelId || message.data.size() < sizeof(Parcel) + sizeof header)
                continue;
            std::memcpy(&header, message.data.data() + sizeof(Parcel), sizeof header);
            if (header.operation == Operation::kGet) break;
        }
        EXPECT_EQ(header.operation, Operation::kGet);
        header.operation = Operation::kGetReply;
        return header;
    }

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
        EXPECT_NE(fatal_[0].find("(rank " + std::to_string(of.name) + " "), std::string::npos) << fatal_[0];
        EXPECT_EQ(completed_, 0);
    }

    Bytes local_part_;
    fabric::ucx::Address victim_;
    Remote remotes_[2];
    std::vector<std::string> received_, fatal_;
    std::vector<std::unique_ptr<std::byte[]>> memory_;
    int completed_ = 0;
    velo_engine* engine_ = nullptr;
};

// --- strangers

TEST_F(UcxLies, a_parcel_with_a_wrong_key_has_no_effect) {
    Parcel parcel = parcel_of(remotes_[0], 5);
    --remotes_[0].sequence;
    parcel.key ^= 1;
    say(parcel, Bytes(5));
    expect_no_effect();
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
    EXPECT_EQ(memory_[0][0], std::byte{0});
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
    expect_no_effect();
}

// --- peers

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

TEST_F(UcxLies, the_right_fragments_complete_a_get) {
    const MessageHeader reply = get(remotes_[0], 8192);
    Fragment fragment = fragment_of(remotes_[0], reply);
    say(fragment, reply, 5000);
    EXPECT_EQ(completed_, 0);
    fragment.offset = 5000;
    say(fragment, reply, 3192);
    EXPECT_EQ(completed_, 1);
    EXPECT_EQ(memory_[0][8191], std::byte{'D'});
    EXPECT_TRUE(fatal_.empty());
}

TEST_F(UcxLies, fragments_beyond_the_announced_length_are_refused) {
    const MessageHeader reply = get(remotes_[0], 8192);
    Fragment fragment = fragment_of(remotes_[0], reply);
    say(fragment, reply, 8000);
    fragment.offset = 8000;
    say(fragment, reply, 193);
    expect_the_end(remotes_[0], "a fragment outside of its transfer");
}

TEST_F(UcxLies, a_fragment_that_announces_one_byte_more_than_was_asked_for_is_refused) {
    MessageHeader reply = get(remotes_[0], 8192);
    reply.bytes = 8193;
    say(fragment_of(remotes_[0], reply), reply, 4096);
    expect_the_end(remotes_[0], "nobody has asked for");
    EXPECT_EQ(memory_[0][0], std::byte{0});
}

TEST_F(UcxLies, a_total_that_is_not_the_headers_is_refused) {
    const MessageHeader reply = get(remotes_[0], 8192);
    Fragment fragment = fragment_of(remotes_[0], reply);
    ++fragment.total;
    say(fragment, reply, 4096);
    expect_the_end(remotes_[0], "nobody has asked for");
}

TEST_F(UcxLies, the_other_peer_cannot_answer_a_get) {
    const MessageHeader reply = get(remotes_[0], 8192);
    say(fragment_of(remotes_[1], reply), reply, 8192);
    expect_the_end(remotes_[1], "nobody has asked for");
    EXPECT_EQ(memory_[0][0], std::byte{0});
}

TEST_F(UcxLies, the_other_peer_cannot_go_on_with_a_transfer) {
    const MessageHeader first = get(remotes_[0], 8192), second = get(remotes_[1], 8192);
    say(fragment_of(remotes_[0], first), first, 4096);
    Fragment fragment = fragment_of(remotes_[1], first);
    fragment.offset = 4096;
    say(fragment, first, 4096);
    expect_the_end(remotes_[1], "nobody has asked for");
    EXPECT_EQ(memory_[1][0], std::byte{0});
    EXPECT_EQ(second.operation, Operation::kGetReply);
}

TEST_F(UcxLies, transfers_of_two_peers_under_one_id_do_not_mix) {
    const MessageHeader first = get(remotes_[0], 8192), second = get(remotes_[1], 10'000);
    Fragment one = fragment_of(remotes_[0], first, 7), other = fragment_of(remotes_[1], second, 7);
    say(one, first, 4096);
    say(other, second, 5000);
    one.offset = 4096;
    say(one, first, 4096);
    EXPECT_EQ(completed_, 1);
    other.offset = 5000;
    say(other, second, 5000);
    EXPECT_EQ(completed_, 2);
    EXPECT_TRUE(fatal_.empty());
}

// While the first one is arriving, and after it: memory that is its owner's again must not be written.
TEST_F(UcxLies, the_same_answer_under_two_ids_is_refused) {
    const MessageHeader reply = get(remotes_[0], 8192);
    say(fragment_of(remotes_[0], reply, 0), reply, 4096);
    say(fragment_of(remotes_[0], reply, 1), reply, 8192);
    expect_the_end(remotes_[0], "nobody has asked for");
}

TEST_F(UcxLies, an_answer_to_a_get_that_is_complete_is_refused) {
    const MessageHeader reply = get(remotes_[0], 8192);
    say(fragment_of(remotes_[0], reply, 0), reply, 8192);
    EXPECT_EQ(completed_, 1);
    completed_ = 0;
    memory_.clear();
    say(fragment_of(remotes_[0], reply, 1), reply, 8192);
    expect_the_end(remotes_[0], "nobody has asked for");
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
        EXPECT_EQ(memory_.back()[8191], std::byte{'B'});
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

}  // namespace
}  // namespace velo::test
