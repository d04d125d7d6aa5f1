// A network whose peers, played by the test, take leave, are lost or are out of reach.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fabric/ucx/messages.h"
#include "fabric/ucx/network.h"
#include "fake_ucx.h"
#include "parameters/agreement.h"
#include "platform/failure.h"

namespace velo::fabric::ucx {
namespace {

using test::FakeUcx;

constexpr std::uint64_t kPeers[] = {201, 202};

struct NoReceiver final : Receiver {
    std::byte* place(flow::PeerIndex, std::span<const std::byte>, std::uint64_t) override { return nullptr; }
    const char* take(const Delivery&) override { return nullptr; }
};

class UcxNetworkTest : public ::testing::TestWithParam<bool> {
 protected:
    UcxNetworkTest() {
        NetworkConfig config{};
        config.process_name = 100;
        config.peers = kPeers;
        config.flow.peers = 2;
        config.flow.data_slots = 32;
        config.agreement = parameters::agreement_of(velo_default_config());
        config.limited = true;
        config.threads = true;
        config.outlives_peers = GetParam();
        config.grace_ms = 0;
        network_ = std::make_unique<UcxNetwork>(config, receiver_);
        EXPECT_TRUE(parse(network_->address(), &own_));
        link_ = connect(kPeers[0]);
    }
    ~UcxNetworkTest() override {
        link_.reset();
        network_.reset();
        FakeUcx::close_worker(worker_);
    }

    std::unique_ptr<Link> connect(std::uint64_t peer) {
        Address address = own_;
        address.name = peer;
        address.worker = worker_;
        flow::PolicyConfig flow;
        flow::PeerIndex index;
        return network_->open(network_->claim(pack(address)), &flow, &index);
    }
    template <typename... Parts>
    void send(unsigned id, std::vector<std::byte> header, const Parts&... parts) {
        std::vector<std::byte> data;
        const auto add = [&data](const auto& part) {
            data.resize(data.size() + sizeof part);
            std::memcpy(data.data() + data.size() - sizeof part, &part, sizeof part);
        };
        (add(parts), ...);
        FakeUcx::send(own_.worker, {id, std::move(header), std::move(data)});
        network_->progress();
    }
    void send_parcel(std::uint32_t sequence) {
        Parcel parcel{};
        parcel.key = own_.key;
        parcel.sender = kPeers[0];
        parcel.sequence = sequence;
        parcel.kind = static_cast<std::uint8_t>(wire::PacketKind::kData);
        parcel.flags = wire::kFirst | wire::kLast;
        parcel.run_packets = 4;
        send(kParcelId, {}, parcel);
    }
    void take_leave(std::uint32_t parcels) {
        const Introduction introduction{own_.key, kPeers[0]};
        std::vector<std::byte> header(sizeof introduction);
        std::memcpy(header.data(), &introduction, sizeof introduction);
        send(kGoodbyeId, std::move(header), parcels);
    }
    // Why no connection can be made.
    std::string refusal() {
        FakeUcx::is_unreachable = true;
        std::string text;
        try {
            connect(kPeers[1]);
        } catch (const Failure& failure) {
            text = failure.what();
        }
        FakeUcx::is_unreachable = false;
        return text;
    }
    // Until something has gone wrong or nothing will: how it ended.
    std::string lost() {
        FakeUcx::break_connections(worker_);
        try {
            for (const Clock::time_point begin = Clock::now(); Clock::now() == begin;) network_->progress();
            network_->progress();
            network_->progress();
        } catch (const Failure& failure) {
            return failure.what();
        }
        std::string all;
        for (const Left& left : network_->left())
            all += std::to_string(left.peer) + (left.lost.empty() ? " left" : ": " + left.lost);
        return all;
    }

    NoReceiver receiver_;
    std::vector<std::byte> worker_ = FakeUcx::open_worker();
    Address own_;
    std::unique_ptr<UcxNetwork> network_;
    std::unique_ptr<Link> link_;
};

constexpr const char* kLost = "the connection to rank 201 on ";

TEST_P(UcxNetworkTest, who_took_leave_before_the_connection_broke_has_left) {
    send_parcel(0);
    take_leave(1);
    EXPECT_EQ(lost(), "0 left");
    EXPECT_EQ(lost(), "");
}

TEST_P(UcxNetworkTest, who_took_no_leave_is_lost) {
    send_parcel(0);
    EXPECT_EQ(lost().find(GetParam() ? "0: " + std::string(kLost) : kLost), 0U);
}

// Several connections to one peer lose what each carries.
TEST_P(UcxNetworkTest, who_took_leave_is_lost_where_an_earlier_parcel_never_comes) {
    send_parcel(0);
    send_parcel(2);
    take_leave(3);
    EXPECT_TRUE(network_->left().empty());
    EXPECT_EQ(lost().find(GetParam() ? "0: " + std::string(kLost) : kLost), 0U);
    if (GetParam()) {
        EXPECT_EQ(lost(), "") << "once";
    }
}

TEST_P(UcxNetworkTest, who_took_leave_has_left_when_what_was_overtaken_comes) {
    send_parcel(1);
    take_leave(2);
    EXPECT_TRUE(network_->left().empty());
    send_parcel(0);
    EXPECT_EQ(lost(), "0 left");
}

TEST_P(UcxNetworkTest, where_no_connection_can_be_made_a_lack_of_descriptors_is_told) {
    EXPECT_NE(refusal().find("(UCX_TLS and UCX_NET_DEVICES choose networks)"), std::string::npos)
        << refusal();
    rlimit before{};
    getrlimit(RLIMIT_NOFILE, &before);
    const rlimit none{0, before.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
    const std::string text = refusal();
    setrlimit(RLIMIT_NOFILE, &before);
    EXPECT_NE(text.find("(/sys/class/net cannot be opened: Too many open files)"), std::string::npos) << text;
}

INSTANTIATE_TEST_SUITE_P(Jobs, UcxNetworkTest, ::testing::Values(false, true),
                         [](const auto& outlives) { return outlives.param ? "that_go_on" : "that_end"; });

}  // namespace
}  // namespace velo::fabric::ucx
