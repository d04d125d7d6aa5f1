// Credit flow control as a pure object: one Policy holds all the flow control state of one process, both as a
// sender and as a receiver, towards each of its peers. Events go in, packets come out through an Emitter, and
// nothing else happens: no clock, I/O, random numbers, allocation (after construction) or logging, so that
// the plugin, the tests and a simulator run the very same object.
//
// The rules are those of the thesis, chapters 5 and 6, in the checked form that design/flow-control.md
// explains. Words: N processes, P = N - 1 peers, n = credit_slots, S = static_slots = n, D = data region in
// slots.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "wire/packet.h"

namespace velo::flow {

// Index of a peer in this process's directory, 0..P-1.
using PeerIndex = std::uint32_t;

// Upper bound of a credit count that one packet can carry (16 bits), and with it of a quota and a lot.
inline constexpr std::uint32_t kMaxQuota = 65535;

struct PolicyConfig {
    std::uint32_t peers = 0;         // P, the peers that share the data region, in id order; 0..65535
    std::uint32_t spare_peers = 0;   // further indices P..P+spare-1 (processes of other jobs), 0..65535: S
                                     // slots of their own each, beside the data region of the P peers
    std::uint32_t data_slots = 0;    // D of the P peers, spares excluded; see minimum_data_slots
    std::uint32_t credit_slots = 2;  // n, 1..255
    bool piggyback = true;
    // Upper bound of an intended quota (dynamic): at least the largest even share; nothing is stolen
    // beyond it.
    std::uint32_t intended_max = kMaxQuota;

    std::uint32_t total_peers() const { return peers + spare_peers; }
    // Slots that DATA, REQ and RESP may occupy in this mailbox at most: the D of invariants I2, I4 and I6.
    std::uint32_t total_data_slots() const { return data_slots + spare_peers * credit_slots; }
    // Slots of the whole mailbox: data region plus credit region.
    std::uint32_t mailbox_slots() const { return total_data_slots() + total_peers() * credit_slots; }
    // Share of peer `index` in a static partition of the data region (Eq 5.2: never below n in dynamic):
    // D div P, one more for the first D mod P peers; n for a spare.
    std::uint32_t even_share(PeerIndex index) const;
};

// Threshold of Eq 5.1: number of freed slots at which credits go back. q div (n + 1) + 1.
constexpr std::uint32_t return_threshold(std::uint32_t quota, std::uint32_t credit_slots) {
    return quota / (credit_slots + 1) + 1;
}

// Receives the packets that a policy wants sent. DATA packets are never emitted by a policy.
// `value` is the credit count of a CREDIT (>= 1) or of a RESP (>= 0), 0 for a REQ.
// An emitter must accept the packet at once (the rules guarantee a slot for it) and must not call the policy
// back.
class Emitter {
 public:
    virtual ~Emitter() = default;
    virtual void emit(PeerIndex to, wire::PacketKind kind, std::uint32_t value) = 0;
};

struct Counters {
    std::uint64_t credit_packets = 0;       // CREDIT packets emitted
    std::uint64_t credits_in_packets = 0;   // credits that they carried
    std::uint64_t piggybacked_credits = 0;  // credits returned in DATA packets
    std::uint64_t piggybacks = 0;           // DATA packets that carried them
    std::uint64_t requests = 0;             // REQ emitted
    std::uint64_t responses = 0;            // RESP emitted
    std::uint64_t steals = 0;               // intended quota moved from a victim (d > 0)
    std::uint64_t stolen_slots = 0;         // the sum of those d
};

// The state that the hot path touches, one for each peer; a policy keeps its further state beside it.
struct PeerFlow {
    std::uint32_t credit = 0;     // sender role: packets that may be sent to this peer now
    std::uint32_t retrieved = 0;  // receiver role: `retr`, packets retrieved whose slots are not yet returned
    std::uint32_t threshold = 0;  // receiver role: t[0], current_threshold; UINT32_MAX: never
    std::uint32_t current = 0;    // receiver role: `cc`, credits at the sender and in flight either way
};

class Policy {
 public:
    virtual ~Policy() = default;
    virtual std::string_view name() const = 0;

    const PolicyConfig& config() const { return config_; }
    const Counters& counters() const { return counters_; }
    const PeerFlow& peer(PeerIndex index) const { return peers_[index]; }
    // Free slots of the data region that are granted to nobody (available_slots).
    std::uint32_t available() const { return available_; }

    // False: nothing is counted and the fabric's own back-pressure is the only limit (policy "none").
    bool limited() const { return limited_; }

    // ---- sender role ---

    // The pair is connected: sets the window towards `to` to `credit`, the initial_credit of this process at
    // `to`.
    void open_window(PeerIndex to, std::uint32_t credit) { peers_[to].credit = credit; }
    // Packets of the data class that may be sent to `to` now. UINT32_MAX when not limited.
    std::uint32_t credits(PeerIndex to) const { return limited_ ? peers_[to].credit : UINT32_MAX; }
    // The caller sends `count` <= credits(to) DATA packets.
    void take(PeerIndex to, std::uint32_t count) {
        if (limited_) peers_[to].credit -= count;
    }
    // A DATA packet with at least two spare bytes is about to go to `to` (its credit already taken or about
    // to be): the number of credits to put into it, 0..65535, 0 for none. The packet must then go out, before
    // anything else for `to`. May emit a REQ to another peer, never anything to `to`.
    std::uint32_t piggyback(PeerIndex to, Emitter& out) {
        if (!config_.piggyback || peers_[to].retrieved == 0) return 0;
        return attach_credits(to, out);
    }
    // True if a REQ or RESP for `to` waits for a credit. With credits at hand, call send_waiting_control
    // before sending DATA: control packets have priority.
    virtual bool control_waiting(PeerIndex) const { return false; }
    virtual void send_waiting_control(PeerIndex, Emitter&) {}

    // ---- receiver role: a packet of `from` has left the mailbox and its slot is free ---

    // DATA. Piggybacked credits, if any, are applied with credit_received afterwards.
    void data_retrieved(PeerIndex from, Emitter& out) {
        if (!limited_) return;
        slot_freed(from);
        if (peers_[from].retrieved >= peers_[from].threshold) activity(from, out);
    }
    // How many DATA packets of `from` in a row only count, without anything being due.
    std::uint32_t quiet_packets(PeerIndex from) const {
        if (!limited_) return UINT32_MAX;
        const PeerFlow& peer = peers_[from];
        return peer.retrieved + 1 < peer.threshold ? peer.threshold - peer.retrieved - 1 : 0;
    }
    // data_retrieved for `count` <= quiet_packets(from) of them at once.
    void data_retrieved_quietly(PeerIndex from, std::uint32_t count) {
        if (!limited_) return;
        available_ += count;
        peers_[from].retrieved += count;
        peers_[from].current -= count;
    }
    // Credits arrived, in a CREDIT or piggybacked: the caller then flushes its queue for `from`.
    void credit_received(PeerIndex from, std::uint32_t credits) {
        if (limited_) peers_[from].credit += credits;
    }
    // REQ and RESP. A policy that has neither treats them as the data slots that they took.
    virtual void request_retrieved(PeerIndex from, Emitter& out);
    virtual void response_retrieved(PeerIndex from, std::uint32_t returned, Emitter& out);

    // Checks the invariants I1, I2, I6, I7, I9-I11, I13 and what this process can see of I8. Returns the
    // empty string, or the first violation with its numbers. O(P * n); for checked builds and tests.
    virtual std::string violation() const = 0;

    // Bytes of state for each peer, for the memory report.
    virtual std::size_t bytes_per_peer() const { return sizeof(PeerFlow); }
    // Credits granted per peer, as the receiver intends them (I); the quota under "static"; 0 when not
    // limited.
    virtual std::uint32_t intended(PeerIndex) const { return 0; }

 protected:
    Policy(const PolicyConfig& config, bool limited);

    void slot_freed(PeerIndex from) {
        ++available_;
        ++peers_[from].retrieved;
        --peers_[from].current;
    }
    // retrieved >= threshold: return credits if the rules allow it.
    virtual void activity(PeerIndex from, Emitter& out) = 0;
    // retrieved > 0 and a DATA packet with room leaves for `to`.
    virtual std::uint32_t attach_credits(PeerIndex to, Emitter& out) = 0;

    // Moves `count` free slots to `from`, as credits that are about to be sent.
    void grant(PeerIndex from, std::uint32_t count) {
        peers_[from].current += count;
        available_ -= count;
    }
    // Sends granted credits back in a credit packet. `count` >= 1.
    void emit_credit(PeerIndex to, std::uint32_t count, Emitter& out);
    // I1 and I2, common to all policies that count.
    std::string slot_violation() const;

    PolicyConfig config_;
    bool limited_;
    std::uint32_t available_ = 0;
    Counters counters_;
    std::vector<PeerFlow> peers_;
};

// Credits that the process with index `index` in a mailbox of this configuration owns at the start, under the
// named policy (0 if the policy does not count). Both ends of a pair compute it: the receiver for its
// records, the sender for its window.
std::uint32_t initial_credit(std::string_view policy, const PolicyConfig& config, PeerIndex index);

// The smallest data region that the named policy can work with: P * n (dynamic, Eq 5.2), P (static), 1
// (none); 0 for an unknown name.
std::uint32_t minimum_data_slots(std::string_view policy, std::uint32_t peers, std::uint32_t credit_slots);

// Names in the order of the one name -> factory table: "none", "static", "dynamic".
std::vector<std::string_view> policy_names();

// nullptr if there is no such policy; otherwise a policy whose sender windows are still 0: the caller opens
// each with open_window once it knows its own index at that peer. `error` explains a configuration that the
// policy cannot work with (nullptr is returned then).
std::unique_ptr<Policy> make_policy(std::string_view name, const PolicyConfig& config, std::string* error);

}  // namespace velo::flow
