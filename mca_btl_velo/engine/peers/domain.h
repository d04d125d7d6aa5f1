// A mailbox and the rules for it. The VELO domain has the flow control that the user has chosen. The
// LiMIC-like domain, if there is one, serves the peers of the same (virtual) node: its messages take no VELO
// credits, and its ring, which refuses what does not fit, is the only limit. The remote domain serves
// processes on other nodes, under the same flow control, with a mailbox in private memory.
#pragma once

#include <memory>
#include <utility>

#include "flow/ledger.h"
#include "flow/refusal.h"
#include "mailbox/reader.h"

struct velo_peer;

namespace velo::engine {

using Peer = ::velo_peer;

// What a domain asks of whoever moves its packets. Under the mutex of that.
class DomainHost {
 public:
    virtual Peer& peer_at(flow::PeerIndex index) = 0;
    virtual void carry_control(Peer& to, wire::PacketKind kind, std::uint32_t value) = 0;
    // The accounts hold what a packet has told.
    virtual void control_entered(const Peer& from, wire::PacketKind kind, std::uint32_t value) = 0;
    // Sends what waits for the peer, as far as credits allow. True: something is left.
    virtual bool send_queued(Peer& to) = 0;

 protected:
    ~DomainHost() = default;
};

class Domain final : public flow::Carrier {
 public:
    // Of its peers: on this node by the VELO or the LiMIC-like path, on other nodes, or those that have
    // departed.
    enum class Kind : std::uint8_t { kVelo, kLimic, kRemote, kNull };

    // `first`: the directory index of the policy's peer 0. `sent`, `fullest`: what is sent here, in packets,
    // and the fullest that the mailbox was, in slots.
    Domain(DomainHost& in, Kind of, std::unique_ptr<flow::Policy> rules, bool delay_credits,
           mailbox::Reader<> box, flow::PeerIndex first, std::uint64_t* sent, std::uint64_t* fullest)
        : host(in),
          kind(of),
          policy(std::move(rules)),
          ledger(*policy, *this, delay_credits),
          reader(std::move(box)),
          first_peer(first),
          sent_packets(sent),
          high_water(fullest),
          refusal(policy->extensions().refusal),
          most_packets(refusal != nullptr  ? refusal->refusal_limit()
                       : policy->limited() ? UINT32_MAX
                                           : reader.capacity()),
          senders(policy->config().total_peers()),
          limited(policy->limited()) {}

    DomainHost& host;
    const Kind kind;
    std::unique_ptr<flow::Policy> policy;
    flow::Ledger ledger;
    mailbox::Reader<> reader;
    flow::PeerIndex first_peer;
    std::uint64_t* sent_packets;
    std::uint64_t* high_water;
    const wire::Framing* framing = nullptr;  // of its messages, nullptr: by the measurements of shared memory
    flow::Refusal* refusal;                  // the policy has the fabric refuse by sender
    std::uint32_t
        most_packets;  // that the fabric takes of one sender at a time, if not as many as there are credits
    std::uint32_t always_in_packets = 0;  // of a message: it waits for credits rather than go by reference
    std::uint32_t senders;                // that its packets may come from
    bool limited;                         // the policy counts credits
    std::uint64_t next_sample = 0;        // position at which the occupancy is looked at next
    std::uint64_t plain_until = 0;        // and up to which plain runs need no closer look, 0: all do

 private:
    // Under the engine's mutex.
    flow::Account& account(flow::PeerIndex peer) override;
    void carry(flow::Account& to, wire::PacketKind kind, std::uint32_t value) override;
    void entered(flow::Account& from, wire::PacketKind kind, std::uint32_t value) override;
    bool send_queued(flow::Account& to) override;
};

}  // namespace velo::engine
