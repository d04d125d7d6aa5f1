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
#include "engine/large/large.h"
#include "engine/observe/observer.h"
#include "engine/peers/peers.h"
#include "engine/peers/sizing.h"
#include "engine/remote.h"
#include "platform/failure.h"

namespace velo::test {

class NodeProcess final : public engine::DomainHost,
                          public engine::PeersHost,
                          public engine::IdleHost,
                          public rma::Poster,
                          public engine::RemoteHost,
                          public engine::PeerEvents {
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
        const flow::PolicyConfig flow = engine::flow_config(config_, engine::Nodes::kOwn);
        mailbox_ = engine::open_mailbox(config_, flow, &probe_, 0);
        domain_ = std::make_unique<engine::Domain>(*this, engine::Domain::Kind::kVelo,
                                                   engine::open_policy(flow_control, flow), false,
                                                   mailbox_.reader(), 0, &sent_, &fullest_);
        routes_ = std::make_unique<engine::Routes>(config_, true);
        idle_ = std::make_unique<engine::Idle>(*this, mutex_, mailbox_.header(), 0, true);
        peers_ = std::make_unique<engine::Peers>(*this, mutex_, *idle_, units_, config_, mailbox_, forced);
        observer_ = std::make_unique<engine::Observer>(
            engine::Observer::Watched{config_, mutex_, *domain_, none_, peers_->table()});
        staging_ = std::make_unique<engine::Staging>(mailbox_, config_, observer_->counts);
        departures_ = std::make_unique<engine::Departures>(*peers_, mutex_, units_);
        large_ = std::make_unique<engine::Large>(
            engine::Large::Context{*this, mutex_, *idle_, gate_, *peers_, *routes_, config_, mechanisms_,
                                   mailbox_, *staging_, observer_->counts});
        units_.add(*this);
        units_.add(*large_);
        units_.add(*peers_);
    }

    engine::Peers& peers() { return *peers_; }
    engine::Large& large() { return *large_; }
    engine::Staging& staging() { return *staging_; }
    engine::Departures& departures() { return *departures_; }
    engine::Observer& observer() { return *observer_; }
    engine::Idle& idle() { return *idle_; }
    engine::EachUnit& units() { return units_; }
    platform::OptionalMutex& mutex() { return mutex_; }
    velo_config& config() { return config_; }
    const fabric::shm::Address& address() const { return mailbox_.address(); }
    fabric::shm::Segment& mailbox() { return mailbox_; }
    engine::Peer& expect(NodeProcess& other) { return *peers_->get(peers_->expect(other.address())); }
    // What this process and `other` have posted arrives at each, as of `here` there and of `there` here.
    void carry_all(NodeProcess& other, engine::Peer& here, engine::Peer& there) {
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
    engine::Domain* remote = nullptr;  // of peers beyond those of the node
    bool takes = true;                 // what has not been in the mailbox
    engine::Remote* attaches_by = nullptr;

 private:
    // What it has posted arrives at `at`, as of its peer `sender`.
    void carry(NodeProcess& at, engine::Peer& sender) {
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
    engine::Domain& domain_of(flow::PeerIndex index) override {
        return index < mailbox_.directory_entries() ? *domain_ : *remote;
    }
    void attach_remote(engine::Peer& peer) override { attaches_by->attach(peer); }
    void look_for_departed() override { ++looks; }
    bool is_quiet() const override { return true; }
    void look_around() override {}
    engine::Peer& peer_at(flow::PeerIndex index) override { return peers_->at(index); }
    void carry_control(engine::Peer&, wire::PacketKind, std::uint32_t) override {}
    void control_entered(const engine::Peer&, wire::PacketKind, std::uint32_t) override {}
    bool send_queued(engine::Peer&) override { return false; }
    void post(flow::PeerIndex, velo_send* message) override { posted.push_back(message); }
    int drain(engine::Domain&) override { return drained; }
    bool arrived(engine::Peer&, const fabric::Delivery&) override { return takes; }

    void introduced(const engine::Peer&, const fabric::shm::Address&) override { heard_ += "introduced "; }
    void attaching(engine::Peer&) override {
        heard_ += "attaching ";
        if (!may_attach) throw Failure(VELO_ERR_UNSUPPORTED, "its memory is out of reach");
    }
    void attached(engine::Peer&) override { heard_ += "attached "; }
    void ended(engine::Peer&) override { heard_ += "ended "; }

    std::uint64_t other_, probe_ = 0, sent_ = 0, fullest_ = 0;
    velo_config config_{};
    std::string heard_;
    platform::OptionalMutex mutex_{false};
    platform::Gate gate_{false};
    singlecopy::Mechanisms mechanisms_{"copy"};
    const std::optional<engine::Domain> none_;
    fabric::shm::Segment mailbox_;
    std::unique_ptr<engine::Domain> domain_;
    std::unique_ptr<engine::Routes> routes_;
    std::unique_ptr<engine::Idle> idle_;
    engine::EachUnit units_;
    std::unique_ptr<engine::Peers> peers_;
    std::unique_ptr<engine::Observer> observer_;
    std::unique_ptr<engine::Staging> staging_;
    std::unique_ptr<engine::Departures> departures_;
    std::unique_ptr<engine::Large> large_;
};

}  // namespace velo::test
