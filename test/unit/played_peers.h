// An engine whose two peers, on other nodes, are played by the test: what they send and what is sent to them.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "api/velo.h"
#include "engine/engine.h"
#include "exact_memory.h"
#include "fabric/shm/address.h"
#include "fabric/ucx/address.h"
#include "fabric/ucx/messages.h"
#include "fake_ucx.h"
#include "rma/message.h"

namespace velo::test {

using fabric::ucx::Fragment;
using fabric::ucx::Introduction;
using fabric::ucx::Parcel;
using rma::MessageHeader;
using rma::Operation;
using Bytes = std::vector<std::byte>;

inline constexpr std::uint64_t kVictim = 100, kNames[] = {201, 202}, kStranger = 203;

template <typename T>
Bytes bytes_of(const T& value) {
    auto* first = reinterpret_cast<const std::byte*>(&value);
    return {first, first + sizeof value};
}

inline Bytes joined(Bytes first, const Bytes& second) {
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

class PlayedPeers : public ::testing::Test {
 protected:
    explicit PlayedPeers(const char* flow_control = "dynamic", bool delay_credits = false,
                         std::uint32_t slots_per_peer = 64) {
#ifdef VELO_CHECKED
        engine::Engine::violations_abort = false;
#endif
        velo_config config = velo_default_config();
        config.flow_control = flow_control;
        config.delay_credits = delay_credits;
        config.slots_per_peer = slots_per_peer;
        config.credit_slots = 2;
        config.piggyback = true;
        config.packet_trains = true;
        config.preposted_buffers = config.initial_buffers = config.growth_buffers = 2;
        config.credit_message_threshold = 2;
        config.rnr_timer_ns = 1;
        config.lazy_slots = config.lazy_peers = 2;
        config.single_copy_mechanism = "copy";
        config.backing_directory = "/dev/shm";
        config.max_message_bytes = 4096;
        config.process_name = kVictim;
        config.remote_peers = kNames;
        config.remote_peer_count = 2;
        config.spare_peers = 1;
        config.context = this;
        config.message = [](void* context, std::uint8_t, void* data, std::size_t bytes) {
            static_cast<PlayedPeers*>(context)->received_.emplace_back(static_cast<char*>(data), bytes);
        };
        config.fatal = [](void* context, velo_status, const char* text) {
            static_cast<PlayedPeers*>(context)->fatal_.emplace_back(text);
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
    ~PlayedPeers() override {
        velo_engine_close(engine_);
#ifdef VELO_CHECKED
        engine::Engine::violations_abort = true;
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
        memory_.push_back(std::make_unique<ExactMemory>(bytes));
        const auto done = [](void* argument, velo_status, std::uint64_t) { ++*static_cast<int*>(argument); };
        EXPECT_EQ(velo_get(engine_, from.peer, memory_.back()->data(), 4096, bytes, done, &completed_),
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

    Bytes local_part_;
    fabric::ucx::Address victim_;
    Remote remotes_[2];
    std::vector<std::string> received_, fatal_;
    std::vector<std::unique_ptr<ExactMemory>> memory_;
    int completed_ = 0;
    velo_engine* engine_ = nullptr;
};

}  // namespace velo::test
