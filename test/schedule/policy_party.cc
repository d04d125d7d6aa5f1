#include "policy_party.h"

#include <stdexcept>

#include "flow/lazy.h"
#include "flow/mvapich_dynamic.h"
#include "flow/policies.h"
#include "flow/static.h"

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

std::unique_ptr<flow::Policy> policy_of(const Scenario& scenario, std::uint32_t process) {
    std::string error;
    std::unique_ptr<flow::Policy> policy =
        flow::make_policy(scenario.policy, scenario.config_of(process), &error);
    if (policy == nullptr) throw std::runtime_error(scenario.describe() + ": " + error);
    return policy;
}

}  // namespace

PolicyParty::PolicyParty(const PolicyParty& other)
    : policy_(copy_of<flow::LazyPolicy, flow::DynamicPolicy, flow::StaticPolicy, flow::MvapichDynamicPolicy,
                      flow::MvapichStaticPolicy>(*other.policy_)),
      dynamic_(dynamic_cast<const flow::DynamicPolicy*>(policy_.get())),
      ledger_(other.ledger_, *policy_, *this),
      queues_(other.queues_),
      accounts_(other.accounts_) {}

PolicyParty::PolicyParty(PolicyParty&& other) noexcept
    : policy_(std::move(other.policy_)),
      dynamic_(other.dynamic_),
      refusal_(other.refusal_),
      ledger_(other.ledger_, *policy_, *this),
      queues_(std::move(other.queues_)),
      accounts_(std::move(other.accounts_)) {}

void PolicyParty::encode(std::string& text) const {
    for (flow::PeerIndex q = 0; q < queues_.size(); ++q) {
        text.push_back(static_cast<char>(ledger_.delayed_credits(q)));
        text.push_back(static_cast<char>(queues_[q].size()));
        for (std::size_t i = 0; i < queues_[q].size(); ++i)
            text.push_back(static_cast<char>(queues_[q][i].waited));
    }
    if (const auto* lazy = dynamic_cast<const flow::LazyPolicy*>(policy_.get())) return lazy->encode(text);
    if (dynamic_ != nullptr) return dynamic_->encode(text);
    // The others are their counts.
    for (flow::PeerIndex q = 0; q < queues_.size(); ++q)
        for (std::uint32_t value :
             {policy_->peer(q).credit, policy_->peer(q).retrieved, policy_->peer(q).current})
            text.push_back(static_cast<char>(value));
}

PolicyParty::PolicyParty(const Scenario& scenario, std::uint32_t process)
    : policy_(policy_of(scenario, process)),
      dynamic_(dynamic_cast<const flow::DynamicPolicy*>(policy_.get())),
      refusal_(policy_->extensions().refusal),
      ledger_(*policy_, *this, scenario.delay_credits),
      queues_(policy_->config().total_peers()) {
    for (flow::PeerIndex to = 0; to < queues_.size(); ++to) {
        const std::uint32_t peer = scenario.process_at(process, to);
        accounts_.push_back(ledger_.account_of(to));
        connect(to, flow::initial_credit(scenario.policy, scenario.config_of(peer),
                                         scenario.index_of(peer, process)));
    }
}

void PolicyParty::carry(flow::Account& to, PacketKind kind, std::uint32_t value) {
    out_->put(to.peer, Packet{.kind = kind, .value = value});
}

bool PolicyParty::send_queued(flow::Account& account) {
    const flow::PeerIndex to = account.peer;
    Fifo<Pending>& queue = queues_[to];
    if (retry_at_ns(to) > out_->now_ns()) return !queue.empty();
    while (!queue.empty() && ledger_.credits(account) > 0) {
        if (!limited() && !out_->has_room(to)) {
            if (refusal_ != nullptr) refusal_->refused(to, out_->now_ns());
            break;
        }
        const Pending pending = queue.pop();
        Packet packet;
        if (pending.waited && ledger_.marks_backlog()) packet.kind = PacketKind::kBackloggedData;
        if (pending.spare) packet.piggyback = ledger_.attach(account);
        out_->put(to, packet);
        ledger_.sent(account, 1);
    }
    mark_waiting(to);
    return !queue.empty();
}

// What is left in the queue has to be paid for by somebody.
void PolicyParty::mark_waiting(flow::PeerIndex to) {
    for (std::size_t i = 0; i < queues_[to].size(); ++i) queues_[to][i].waited = true;
}

void PolicyParty::send(flow::PeerIndex to, Pending packet, Outbox& out) {
    out_ = &out;
    const bool first = queues_[to].empty();
    queues_[to].push(packet);
    if (ledger_.flush(accounts_[to]) && first) ledger_.queued(accounts_[to]);
}

void PolicyParty::retrieve(flow::PeerIndex from, const Packet& packet, Outbox& out) {
    out_ = &out;
    ledger_.look();
    const bool waited = packet.kind == PacketKind::kBackloggedData;
    const bool kept = waited || packet.kind == PacketKind::kData
                          ? ledger_.data_retrieved(accounts_[from], 1, waited, packet.piggyback)
                          : ledger_.control_retrieved(accounts_[from], packet.kind, packet.value);
    offended_ |= !kept;
}

void PolicyParty::look(Outbox& out) {
    out_ = &out;
    ledger_.look();
}

bool PolicyParty::departed(flow::PeerIndex peer, Outbox& out) {
    out_ = &out;
    queues_[peer] = {};
    return ledger_.departed(accounts_[peer]);
}

std::string PolicyParty::violation() const {
    for (flow::PeerIndex to = 0; to < queues_.size(); ++to)
        if (accounts_[to].flow != ledger_.flow_of(to))
            return "the flow of peer " + std::to_string(to) + " has changed behind the caller's back";
    if (offended_) return "a correct peer is said to have broken the rules";
    return policy_->violation();
}

void PolicyParty::overdue(Outbox& out) {
    out_ = &out;
    if (ledger_.contact_pending()) ledger_.contact_overdue();
}

void PolicyParty::flush_all(Outbox& out) {
    out_ = &out;
    for (flow::PeerIndex to = 0; to < queues_.size(); ++to) ledger_.flush(accounts_[to]);
}

std::optional<Handshake> PolicyParty::handshake(flow::PeerIndex peer) const {
    if (dynamic_ == nullptr) return std::nullopt;
    return Handshake{dynamic_->blocked(peer), dynamic_->request_waiting(peer),
                     dynamic_->response_waiting(peer)};
}

}  // namespace velo::schedule
