#include "policy_party.h"

#include <stdexcept>

namespace velo::schedule {

using wire::PacketKind;

PolicyParty::PolicyParty(const Scenario& scenario, std::uint32_t process) {
    std::string error;
    policy_ = flow::make_policy(scenario.policy, scenario.config_of(process), &error);
    if (policy_ == nullptr) throw std::runtime_error(scenario.describe() + ": " + error);
    dynamic_ = dynamic_cast<const flow::DynamicPolicy*>(policy_.get());
    queues_.resize(policy_->config().total_peers());
    for (flow::PeerIndex to = 0; to < queues_.size(); ++to) {
        const std::uint32_t peer = scenario.process_at(process, to);
        policy_->open_window(to, flow::initial_credit(scenario.policy, scenario.config_of(peer),
                                                      scenario.index_of(peer, process)));
    }
}

void PolicyParty::emit(flow::PeerIndex to, PacketKind kind, std::uint32_t value) {
    out_->put(to, Packet{.kind = kind, .value = value});
}

void PolicyParty::flush(flow::PeerIndex to) {
    if (policy_->control_waiting(to) && policy_->credits(to) > 0) policy_->send_waiting_control(to, *this);
    while (!queues_[to].empty() && policy_->credits(to) > 0 && (limited() || out_->has_room(to))) {
        Packet packet;
        if (queues_[to].pop().spare) packet.piggyback = policy_->piggyback(to, *this);
        policy_->take(to, 1);
        out_->put(to, packet);
    }
}

void PolicyParty::send(flow::PeerIndex to, Pending packet, Outbox& out) {
    out_ = &out;
    queues_[to].push(packet);
    flush(to);
}

void PolicyParty::retrieve(flow::PeerIndex from, const Packet& packet, Outbox& out) {
    out_ = &out;
    switch (packet.kind) {
        case PacketKind::kCredit:
            policy_->credit_received(from, packet.value);
            return flush(from);
        case PacketKind::kRequest:
            return policy_->request_retrieved(from, *this);
        case PacketKind::kResponse:
            return policy_->response_retrieved(from, packet.value, *this);
        case PacketKind::kData:
            policy_->data_retrieved(from, *this);
            if (packet.piggyback > 0) {
                policy_->credit_received(from, packet.piggyback);
                flush(from);
            }
    }
}

void PolicyParty::flush_all(Outbox& out) {
    out_ = &out;
    for (flow::PeerIndex to = 0; to < queues_.size(); ++to) flush(to);
}

std::optional<Handshake> PolicyParty::handshake(flow::PeerIndex peer) const {
    if (dynamic_ == nullptr) return std::nullopt;
    return Handshake{dynamic_->blocked(peer), dynamic_->request_waiting(peer),
                     dynamic_->response_waiting(peer)};
}

}  // namespace velo::schedule
