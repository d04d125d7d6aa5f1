// A process around a real policy object: the send queues and the packet dispatch that the engine has in the
// plugin.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fifo.h"
#include "flow/dynamic.h"
#include "flow/policy.h"
#include "packet.h"
#include "scenario.h"

namespace velo::schedule {

class PolicyParty : private flow::Emitter {
 public:
    PolicyParty(const Scenario& scenario, std::uint32_t process);
    PolicyParty(PolicyParty&& other) = default;
    // With a copy of the policy, for the exploration of states. Not every policy is worth one: throws.
    PolicyParty(const PolicyParty& other);
    PolicyParty& operator=(const PolicyParty&) = delete;
    PolicyParty& operator=(PolicyParty&&) = default;

    void send(flow::PeerIndex to, Pending packet, Outbox& out);
    void retrieve(flow::PeerIndex from, const Packet& packet, Outbox& out);
    // Sends what waits and may go.
    void flush_all(Outbox& out);
    // The engine's patience with a pending contact is over.
    void overdue(Outbox& out);
    bool contact_pending() const { return policy_->contact_pending(); }
    // The peer has ended; nothing of it is in the mailbox. False: to be called again.
    bool departed(flow::PeerIndex peer, Outbox& out);
    // Another process has taken its place, or is new here: `credit` is the share of this one there.
    void connect(flow::PeerIndex peer, std::uint32_t credit) { policy_->open_window(peer, credit); }

    bool limited() const { return policy_->limited(); }
    bool on_demand() const { return policy_->on_demand(); }
    std::uint32_t refusal_limit() const { return policy_->refusal_limit(); }
    std::uint32_t credit(flow::PeerIndex to) const { return policy_->credits(flows_[to]); }
    std::uint32_t current(flow::PeerIndex from) const { return policy_->peer(flows_[from]).current; }
    std::int64_t available() const { return static_cast<std::int32_t>(policy_->available()); }
    std::size_t backlog(flow::PeerIndex to) const { return queues_[to].size(); }
    bool control_waiting(flow::PeerIndex to) const { return policy_->control_waiting(flows_[to]); }
    std::uint64_t retry_at_ns(flow::PeerIndex to) const { return policy_->retry_at_ns(to); }
    // Empty for a policy without REQ and RESP.
    std::optional<Handshake> handshake(flow::PeerIndex peer) const;
    std::string violation() const;

    // What decides the future, as text.
    void encode(std::string& text) const;

    const flow::Policy& policy() const { return *policy_; }

 private:
    void emit(flow::PeerIndex to, wire::PacketKind kind, std::uint32_t value) override;
    void flush(flow::PeerIndex to);
    void left_behind(flow::PeerIndex to);
    void after_control(flow::PeerIndex from);

    std::unique_ptr<flow::Policy> policy_;
    const flow::DynamicPolicy* dynamic_;
    std::vector<Fifo<Pending>> queues_;
    std::vector<flow::FlowIndex> flows_;  // of each peer, read again when the policy says that it may change
    Outbox* out_ = nullptr;               // during an event
};

}  // namespace velo::schedule
