#include "policy_party.h"

#include <stdexcept>

#include "flow/lazy.h"
#include "flow/mvapich_dynamic.h"

namespace velo::schedule {

using wire::PacketKind;

namespace {

template <class... Policies>
std::unique_ptr<flow::Policy> copy_of(const flow::Policy& policy) {
    std::unique_ptr<flow::Policy> copy;
    const auto try_type = [&]<class Policy>(const Policy* same) {
        if (same != nullptr && copy == nullptr) copy = std::make_unique<Policy>(*same);
    };
    (try_type(dynamic_cast<const Policies*>(&policy)), ...);
    if (copy == nullptr) throw std::logic_error(std::string(policy.name()) + " is not copied");
    return copy;
}

}  // namespace

PolicyParty::PolicyParty(const PolicyParty& other)
    : policy_(
          copy_of<flow::LazyPolicy, flow::MvapichDynamicPolicy, flow::MvapichStaticPolicy>(*other.policy_)),
      dynamic_(nullptr),
      queues_(other.queues_),
      flows_(other.flows_) {}

void PolicyParty::encode(std::string& text) const {
    for (flow::PeerIndex q = 0; q < queues_.size(); ++q) {
        text.push_back(static_cast<char>(queues_[q].size()));
        for (std::size_t i = 0; i < queues_[q].size(); ++i)
            text.push_back(static_cast<char>(queues_[q][i].waited));
    }
    if (const auto* lazy = dynamic_cast<const flow::LazyPolicy*>(policy_.get())) return lazy->encode(text);
    // A scheme of Liu & Panda is its counts.
    for (flow::PeerIndex q = 0; q < queues_.size(); ++q)
        for (std::uint32_t value :
             {policy_->peer(q).credit, policy_->peer(q).retrieved, policy_->peer(q).current})
            text.push_back(static_cast<char>(value));
}

PolicyParty::PolicyParty(const Scenario& scenario, std::uint32_t process) {
    std::string error;
    policy_ = flow::make_policy(scenario.policy, scenario.config_of(process), &error);
    if (policy_ == nullptr) throw std::runtime_error(scenario.describe() + ": " + error);
    dynamic_ = dynamic_cast<const flow::DynamicPolicy*>(policy_.get());
    queues_.resize(policy_->config().total_peers());
    for (flow::PeerIndex to = 0; to < queues_.size(); ++to) flows_.push_back(policy_->flow_of(to));
    for (flow::PeerIndex to = 0; to < queues_.size(); ++to) {
        const std::uint32_t peer = scenario.process_at(process, to);
        connect(to, flow::initial_credit(scenario.policy, scenario.config_of(peer),
                                         scenario.index_of(peer, process)));
    }
}

void PolicyParty::emit(flow::PeerIndex to, PacketKind kind, std::uint32_t value) {
    out_->put(to, Packet{.kind = kind, .value = value});
    flows_[to] = policy_->flow_of(to);
}

void PolicyParty::flush(flow::PeerIndex to) {
    if (policy_->retry_at_ns(to) > out_->now_ns()) return;
    const flow::FlowIndex flow = flows_[to];
    if (policy_->control_waiting(flow) && policy_->credits(flow) > 0)
        policy_->send_waiting_control(flow, *this);
    while (!queues_[to].empty() && policy_->credits(flow) > 0) {
        if (!limited() && !out_->has_room(to)) return policy_->refused(to, out_->now_ns());
        const Pending pending = queues_[to].pop();
        Packet packet;
        if (pending.waited && policy_->marks_backlog()) packet.kind = PacketKind::kBackloggedData;
        if (pending.spare) packet.piggyback = policy_->piggyback(flow, *this);
        policy_->take(flow, 1);
        out_->put(to, packet);
    }
}

// What is left in the queue has to be paid for by somebody.
void PolicyParty::left_behind(flow::PeerIndex to) {
    for (std::size_t i = 0; i < queues_[to].size(); ++i) queues_[to][i].waited = true;
    if (policy_->on_demand() && !queues_[to].empty()) policy_->credit_wanted(to, *this);
}

void PolicyParty::send(flow::PeerIndex to, Pending packet, Outbox& out) {
    out_ = &out;
    const bool first = queues_[to].empty();
    queues_[to].push(packet);
    flush(to);
    if (first)
        left_behind(to);
    else if (!queues_[to].empty())
        queues_[to].back().waited = true;
}

// A control packet of `from` has been handled: the order of calls that the engine owes to any policy.
void PolicyParty::after_control(flow::PeerIndex from) {
    flows_[from] = policy_->flow_of(from);
    flush(from);
    if (!policy_->on_demand()) return;
    left_behind(from);
    policy_->control_flushed(*this);
}

void PolicyParty::retrieve(flow::PeerIndex from, const Packet& packet, Outbox& out) {
    out_ = &out;
    const flow::FlowIndex flow = flows_[from];
    switch (packet.kind) {
        case PacketKind::kData:
        case PacketKind::kBackloggedData:
            if (packet.kind == PacketKind::kData)
                policy_->data_retrieved(flow, *this);
            else
                policy_->backlogged_data_retrieved(flow, *this);
            if (packet.piggyback > 0) {
                policy_->credit_received(flow, packet.piggyback);
                flush(from);
            }
            return;
        case PacketKind::kCredit:
            if (policy_->on_demand())
                policy_->credit_retrieved(from, packet.value, *this);
            else
                policy_->credit_received(flow, packet.value);
            return after_control(from);
        case PacketKind::kRequest:
            return policy_->request_retrieved(flow, *this);
        case PacketKind::kResponse:
            return policy_->response_retrieved(flow, packet.value, *this);
        case PacketKind::kHello:
        case PacketKind::kBye:
        case PacketKind::kRelease:
        case PacketKind::kLeave:
            policy_->contact_retrieved(from, packet.kind, packet.value, *this);
            return after_control(from);
    }
}

bool PolicyParty::departed(flow::PeerIndex peer, Outbox& out) {
    out_ = &out;
    queues_[peer] = {};
    if (!policy_->departed(peer, *this)) return false;
    flows_[peer] = policy_->flow_of(peer);
    policy_->control_flushed(*this);
    return true;
}

std::string PolicyParty::violation() const {
    for (flow::PeerIndex to = 0; to < queues_.size(); ++to)
        if (flows_[to] != policy_->flow_of(to))
            return "the flow of peer " + std::to_string(to) + " has changed behind the caller's back";
    return policy_->violation();
}

void PolicyParty::overdue(Outbox& out) {
    out_ = &out;
    if (policy_->contact_pending()) policy_->contact_overdue(*this);
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
