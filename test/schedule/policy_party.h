// A process around a real policy object and its ledger: the send queues that the engine has in the plugin.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fifo.h"
#include "flow/dynamic.h"
#include "flow/ledger.h"
#include "flow/outbox.h"
#include "flow/refusal.h"
#include "packet.h"
#include "scenario.h"

namespace velo::schedule {

std::vector<std::string> names();  // of the policies

class PolicyParty : private flow::Carrier {
 public:
    PolicyParty(const Scenario& scenario, std::uint32_t process);
    // With a copy of the policy, for the exploration of states. rnr has timers and is not copied: throws.
    PolicyParty(const PolicyParty& other);
    PolicyParty(PolicyParty&& other) noexcept;
    PolicyParty& operator=(const PolicyParty&) = delete;

    void send(flow::PeerIndex to, Pending packet, Outbox& out);
    void retrieve(flow::PeerIndex from, const Packet& packet, Outbox& out);
    // Sends what waits and may go.
    void flush_all(Outbox& out);
    // The engine's patience with a pending contact is over.
    void overdue(Outbox& out);
    bool contact_pending() const { return ledger_.contact_pending(); }
    // Looks at an empty mailbox.
    void look(Outbox& out);
    std::uint32_t delayed_credits(flow::PeerIndex to) const { return ledger_.delayed_credits(to); }
    // The peer has ended; nothing of it is in the mailbox. False: to be called again.
    bool departed(flow::PeerIndex peer, Outbox& out);
    // Another process has taken its place, or is new here: `credit` is the share of this one there.
    void connect(flow::PeerIndex peer, std::uint32_t credit) { ledger_.open(accounts_[peer], credit); }

    // ---- by reference

    // The reader of a REF looks at its chunk, and is done with it. Empty, or what is wrong with the chunk.
    std::string read(const Packet& reference);
    // Readers of chunks of which this process has not been told that they have been read, and the telling of
    // the oldest of one of them.
    std::uint32_t untold() const;
    void tell(std::uint32_t reader);
    std::uint64_t references() const { return references_; }

    // ---- batches

    // What the reader of the batch at `place` has not taken yet, and that it takes the first of it.
    const Fifo<Enclosed>& batch_at(std::uint32_t place) const { return allocated_at(place).batch; }
    void take_enclosed(std::uint32_t place) { allocated_at(place).batch.pop(); }
    // Of what the peer has sent there.
    void heard(flow::PeerIndex from) { batches_[from].follows = false; }
    // One is open for the peer.
    bool appends(flow::PeerIndex to) const { return batches_[to].room > 0; }
    // The process has polled a few times, and sent nothing to the peer.
    void rest(flow::PeerIndex to);
    std::uint64_t batches() const { return batches_sent_; }
    std::uint64_t batched() const { return batched_; }
    // REFs to the peer that it has yet to read.
    std::uint32_t unread(flow::PeerIndex to) const;
    const flow::Outbox& outbox() const { return outbox_; }
    std::uint64_t allocated_to(flow::PeerIndex to) const { return shares_[to].bytes; }

    bool limited() const { return policy_->limited(); }
    bool on_demand() const { return ledger_.on_demand(); }
    std::uint32_t refusal_limit() const {
        return refusal_ != nullptr ? refusal_->refusal_limit() : UINT32_MAX;
    }
    std::uint32_t credit(flow::PeerIndex to) const { return ledger_.credits(accounts_[to]); }
    std::uint32_t current(flow::PeerIndex from) const { return policy_->peer(accounts_[from].flow).current; }
    std::int64_t available() const { return static_cast<std::int32_t>(policy_->available()); }
    std::size_t backlog(flow::PeerIndex to) const { return queues_[to].size(); }
    bool control_waiting(flow::PeerIndex to) const { return ledger_.control_waiting(accounts_[to]); }
    std::uint64_t retry_at_ns(flow::PeerIndex to) const {
        return refusal_ != nullptr ? refusal_->retry_at_ns(to) : 0;
    }
    // Empty for a policy without REQ and RESP.
    std::optional<Handshake> handshake(flow::PeerIndex peer) const;
    std::string violation() const;

    // What decides the future, as text.
    void encode(std::string& text) const;

    const flow::Policy& policy() const { return *policy_; }

 private:
    flow::Account& account(flow::PeerIndex peer) override { return accounts_[peer]; }
    void carry(flow::Account& to, wire::PacketKind kind, std::uint32_t value) override;
    bool send_queued(flow::Account& to) override;
    void mark_waiting(flow::PeerIndex to);
    struct Lent {
        std::uint32_t place;
        bool unread = false;
        std::uint64_t stamp = 0;
        flow::PeerIndex to = 0;
        Fifo<Enclosed> batch{};
    };
    const Lent& allocated_at(std::uint32_t place) const;
    Lent& allocated_at(std::uint32_t place) {
        return const_cast<Lent&>(std::as_const(*this).allocated_at(place));
    }
    // Where the open one of a peer goes on.
    struct Batch {
        std::uint32_t place = 0;
        std::uint32_t used = 0, room = 0;  // of the chunk; room == 0: none is open
        // What would follow is one of many: something went before it, and neither an answer nor a rest after.
        bool follows = false;
    };
    bool append(flow::PeerIndex to, const Pending& message);
    void close(flow::PeerIndex to);
    bool opens_batch(flow::PeerIndex to, const Pending& message) const;
    bool open(flow::PeerIndex to, std::uint64_t bytes, Packet& packet);
    bool may_refer(flow::PeerIndex to, std::uint32_t packets) const;
    flow::Outbox::Chunk take_chunk(flow::PeerIndex to, std::uint64_t bytes);
    void store(flow::PeerIndex to, const flow::Outbox::Chunk& chunk, std::uint32_t units, Packet& packet);
    std::uint64_t bytes_of(std::uint32_t packets) const { return std::uint64_t{packets} * how_.packet_bytes; }

    std::unique_ptr<flow::Policy> policy_;
    const flow::DynamicPolicy* dynamic_;
    flow::Refusal* refusal_ = nullptr;
    std::uint32_t most_packets_;  // Domain::most_packets
    flow::Ledger ledger_;
    std::vector<Fifo<Pending>> queues_;
    std::vector<flow::Account> accounts_;
    Scenario::ByReference how_;
    flow::Outbox outbox_;
    std::vector<flow::OutboxShare> shares_;
    std::vector<std::uint64_t> read_;  // what each peer has read; its share knows what has been told
    std::vector<Lent> allocated_;      // of each chunk, ascending by its place
    std::vector<Batch> batches_;       // of each peer
    std::uint64_t references_ = 0, batches_sent_ = 0, batched_ = 0;
    bool overfull_ = false;
    Outbox* out_ = nullptr;  // during an event
    bool offended_ = false;
};

}  // namespace velo::schedule
