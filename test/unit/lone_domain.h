// Peers without an engine: a domain over a mailbox in private memory, whose host notes what it is asked for.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/peers/peer.h"
#include "engine/peers/peer_table.h"
#include "flow/policies.h"

namespace velo::test {

// velo_config with a log that is kept.
struct KeptLog {
    KeptLog() {
        config.context = this;
        config.log = [](void* context, int level, const char* text) {
            static_cast<KeptLog*>(context)->lines.push_back(std::to_string(level) + " " + text);
        };
    }
    std::string take() {
        std::string all;
        for (const std::string& line : lines) all += line + "\n";
        lines.clear();
        return all;
    }
    velo_config config{};
    std::vector<std::string> lines;
};

class LoneDomain final : public engine::DomainHost {
 public:
    static constexpr std::uint32_t kPeers = 3, kSlots = 60, kCreditSlots = 2;

    explicit LoneDomain(const char* policy, std::uint32_t strangers = 0)
        : domain_(*this, engine::Domain::Kind::kVelo, flow::make_policy(policy, config(strangers), nullptr),
                  false, {&pointers_, slots_.data(), kSlots}, 0, &sent_, &fullest_) {
        for (flow::PeerIndex index = 0; index < kPeers + strangers; ++index)
            peers_.add(std::make_unique<engine::Peer>(index, domain_));
    }

    engine::Domain& domain() { return domain_; }
    const engine::PeerTable& peers() const { return peers_; }
    engine::Peer& operator[](flow::PeerIndex index) { return *peers_.find(index); }

    mailbox::Writer<> writer() { return {&pointers_, slots_.data(), kSlots}; }

    std::vector<wire::PacketKind> carried;  // control packets

 private:
    static flow::PolicyConfig config(std::uint32_t strangers) {
        flow::PolicyConfig flow;
        flow.peers = kPeers;
        flow.spare_peers = strangers;
        flow.credit_slots = kCreditSlots;
        flow.data_slots = kSlots - kPeers * kCreditSlots;
        return flow;
    }
    engine::Peer& peer_at(flow::PeerIndex index) override { return *peers_.find(index); }
    void carry_control(engine::Peer&, wire::PacketKind kind, std::uint32_t) override {
        carried.push_back(kind);
    }
    void control_entered(const engine::Peer&, wire::PacketKind, std::uint32_t) override {}
    bool send_queued(engine::Peer& to) override { return !to.queue.empty(); }

    std::uint64_t sent_ = 0, fullest_ = 0;
    mailbox::Pointers<> pointers_{};
    std::vector<mailbox::Slot<>> slots_ = std::vector<mailbox::Slot<>>(kSlots);
    engine::Domain domain_;
    engine::PeerTable peers_{kPeers + 1};  // before the domain that they are of
};

}  // namespace velo::test
