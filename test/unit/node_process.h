// A process of a node without an engine: its mailbox, its peers and what it transfers, and in place of the
// engine what notes the calls. The job of a process of a name below 20 has two processes, 10 and 11.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "api/velo.h"
#include "endpoint/large.h"
#include "endpoint/observer.h"
#include "endpoint/peers.h"
#include "endpoint/remote.h"
#include "endpoint/sizing.h"
#include "platform/failure.h"

namespace velo::test {

class NodeProcess final : public endpoint::DomainHost,
                          public endpoint::PeersHost,
                          public endpoint::IdleHost,
                          public rma::Poster,
                          public endpoint::RemoteHost,
                          public endpoint::PeerEvents {
 public:
    NodeProcess(std::uint64_t name, const char* flow_control, bool forced = false) : other_(21 - name) {
        config_ = velo_default_config();
        config_.flow_control = flow_control;
        config_.process_name = name;
        config_.slots_per_peer = config_.lazy_slots = 16;
        config_.credit_slots = 2;
        config_.spare_peers = 1;
        config_.max_message_bytes = 1024;
        config_.backing_directory = "/dev/shm";
        config_.single_copy_mechanism = "copy";
        config_.routes = "reference 512 staged 67108864";
        config_.report = "none";
        config_.outbox = 1U << 18;
        config_.node_peers = &other_;
        config_.node_peer_count = name < 20 ? 1 : 0;
        config_.context = this;
        config_.log = [](void* context, int level, const char* text) {
            if (level <= 0) static_cast<NodeProcess*>(context)->logged += std::string(text) + "\n";
        };
        const flow::PolicyConfig flow = endpoint::flow_config(config_, endpoint::Nodes::kOwn);
        mailbox_ = endpoint::open_mailbox(config_, flow, &probe_, 0);
        domain_ = std::make_unique<endpoint::Domain>(*this, endpoint::Domain::Kind::kVelo,
                                                     endpoint::open_policy(flow_control, flow), false,
                                                     mailbox_.reader(), 0, &sent_, &fullest_);
        routes_ = std::make_unique<endpoint::Routes>(config_, true);
        idle_ = std::make_unique<endpoint::Idle>(*this, mutex_, mailbox_.header(), 0, true);
        peers_ = std::make_unique<endpoint::Peers>(*this, mutex_, *idle_, units_, config_, mailbox_, forced);
        observer_ = std::make_unique<endpoint::Observer>(
            endpoint::Observer::Watched{config_, mutex_, *domain_, none_, peers_->table()});
        staging_ = std::make_unique<endpoint::Staging>(mailbox_, config_, observer_->counts);
        departures_ = std::make_unique<endpoint::Departures>(*peers_, mutex_, units_);
        large_ = std::make_unique<endpoint::Large>(
            endpoint::Large::Context{*this, mutex_, *idle_, gate_, *peers_, *routes_, config_, mechanisms_,
                                     mailbox_, *staging_, observer_->counts});
        units_.add(*this);
        units_.add(*large_);
        units_.add(*peers_);
    }

    endpoint::Peers& peers() { return *peers_; }
    endpoint::Large& large() { return *large_; }
    endpoint::Staging& staging() { return *staging_; }
    endpoint::Departures& departures() { return *departures_; }
    endpoint::Observer& observer() { return *observer_; }
    endpoint::Idle& idle() { return *idle_; }
    endpoint::EachUnit& units() { return units_; }
    endpoint::OptionalMutex& mutex() { return mutex_; }
    velo_config& config() { return config_; }
    const fabric::shm::Address& address() const { return mailbox_.address(); }
    fabric::shm::Segment& mailbox() { return mailbox_; }
    endpoint::Peer& expect(NodeProcess& other) { return *peers_->get(peers_->expect(other.address())); }
    // What this process and `other` have posted arrives at each, as of `here` there and of `there` here.
    void carry_all(NodeProcess& other, endpoint::Peer& here, endpoint::Peer& there) {
        while (!posted.empty() || !other.posted.empty()) {
            carry(other, here);
            other.carry(*this, there);
        }
    }
    // What has become of peers since.
    std::string take() { return std::exchange(heard_, ""); }

    bool may_attach = true;
    int looks = 0, drained = 0;
    std::string logged;
    std::deque<velo_send*> posted;
    endpoint::Domain* remote = nullptr;  // of peers beyond those of the node
    bool takes = true;                   // what has not been in the mailbox
    endpoint::Remote* attaches_by = nullptr;

 private:
    // What it has posted arrives at `at`, as of its peer `sender`.
    void carry(NodeProcess& at, endpoint::Peer& sender) {
        while (!posted.empty()) {
            velo_send* const message = posted.front();
            posted.pop_front();
            rma::MessageHeader header;
            EXPECT_EQ(message->bytes[0], sizeof header);
            std::memcpy(&header, message->part[0], sizeof header);
            rma::Placement placement;
            EXPECT_TRUE(at.large().begin(sender.index, header, &placement));
            if (message->bytes[1] > 0) std::memcpy(placement.data, message->part[1], message->bytes[1]);
            at.large().finish(sender, header);
            message->done(message, VELO_OK);
        }
    }
    endpoint::Domain& domain_of(flow::PeerIndex index) override {
        return index < mailbox_.directory_entries() ? *domain_ : *remote;
    }
    void attach_remote(endpoint::Peer& peer) override { attaches_by->attach(peer); }
    void look_for_departed() override { ++looks; }
    bool is_quiet() const override { return true; }
    void look_around() override {}
    endpoint::Peer& peer_at(flow::PeerIndex index) override { return peers_->at(index); }
    void carry_control(endpoint::Peer&, wire::PacketKind, std::uint32_t) override {}
    void control_entered(const endpoint::Peer&, wire::PacketKind, std::uint32_t) override {}
    bool send_queued(endpoint::Peer&) override { return false; }
    void post(flow::PeerIndex, velo_send* message) override { posted.push_back(message); }
    int drain(endpoint::Domain&) override { return drained; }
    bool arrived(endpoint::Peer&, const fabric::Delivery&) override { return takes; }

    void introduced(const endpoint::Peer&, const fabric::shm::Address&) override { heard_ += "introduced "; }
    void attaching(endpoint::Peer&) override {
        heard_ += "attaching ";
        if (!may_attach) throw Failure(VELO_ERR_UNSUPPORTED, "its memory is out of reach");
    }
    void attached(endpoint::Peer&) override { heard_ += "attached "; }
    void ended(endpoint::Peer&) override { heard_ += "ended "; }

    std::uint64_t other_, probe_ = 0, sent_ = 0, fullest_ = 0;
    velo_config config_{};
    std::string heard_;
    endpoint::OptionalMutex mutex_{false};
    endpoint::Gate gate_{false};
    singlecopy::Mechanisms mechanisms_{"copy"};
    const std::optional<endpoint::Domain> none_;
    fabric::shm::Segment mailbox_;
    std::unique_ptr<endpoint::Domain> domain_;
    std::unique_ptr<endpoint::Routes> routes_;
    std::unique_ptr<endpoint::Idle> idle_;
    endpoint::EachUnit units_;
    std::unique_ptr<endpoint::Peers> peers_;
    std::unique_ptr<endpoint::Observer> observer_;
    std::unique_ptr<endpoint::Staging> staging_;
    std::unique_ptr<endpoint::Departures> departures_;
    std::unique_ptr<endpoint::Large> large_;
};

}  // namespace velo::test
