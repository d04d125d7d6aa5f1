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

#include "flow/counters.h"
#include "types/parameters.h"
#include "wire/packet.h"

namespace velo::flow {

// Index of a peer in this process's directory, 0..P-1.
using PeerIndex = std::uint32_t;

// Where a policy keeps the counts of a pair: what the functions of the hot path take. The index of the peer
// itself, but for a policy that opens windows on demand; see Policy::flow_of.
using FlowIndex = std::uint32_t;

// Upper bound of a credit count that one packet can carry (16 bits), and with it of a quota and a lot.
inline constexpr std::uint32_t kMaxQuota = 65535;

struct PolicyConfig {
    std::uint32_t peers = 0;         // P, the peers that share the data region, in id order; 0..2^24 - 1
    std::uint32_t spare_peers = 0;   // further indices P..P+spare-1 (processes of other jobs), 0..65535: S
                                     // slots of their own each, beside the data region of the P peers
    std::uint32_t data_slots = 0;    // D of the P peers, spares excluded; see minimum_data_slots
    // Upper bound of an intended quota (dynamic): at least the largest even share; nothing is stolen
    // beyond it.
    std::uint32_t intended_max = kMaxQuota;

// Those of the parameters that policies go by, with their defaults. n is credit_slots.
#define VELO_POLICY_PARAMETER(type, name, initial, ...) VELO_TYPE_##type name = initial;
#include "types/parameters.inc"

    // lazy: the engine carries HELLO outside of the mailbox, which then has no slots for it.
    bool lazy_doorbell = false;

    std::uint32_t total_peers() const { return peers + spare_peers; }
    // Slots that DATA, REQ and RESP may occupy in this mailbox at most: the D of invariants I2, I4 and I6.
    std::uint32_t total_data_slots() const { return data_slots + spare_peers * credit_slots; }
    // Slots of the whole mailbox under none, static and dynamic: data region plus credit region. For any
    // policy: mailbox_plan.
    std::uint32_t mailbox_slots() const { return total_data_slots() + total_peers() * credit_slots; }
    // Share of peer `index` in a static partition of the data region (Eq 5.2: never below n in dynamic):
    // D div P, one more for the first D mod P peers; n for a spare.
    std::uint32_t even_share(PeerIndex index) const;
};

// What a mailbox has to hold under a policy.
struct MailboxPlan {
    std::uint64_t data_slots = 0;      // packets that take a credit (or, under rnr, a buffer), at most
    std::uint64_t control_slots = 0;   // packets that take none, of all peers together, at most
    std::uint32_t credit_packets = 0;  // CREDIT packets of one peer, at most; part of control_slots

    std::uint64_t total() const { return data_slots + control_slots; }
};

// lazy: what of lazy_ahead to give to a policy. More than an eighth of the windows would close some that are
// in use: with 1 window for 3 active peers an alltoall takes four times as long. What is out of range stays
// so, for the policy to object to.
constexpr std::uint32_t useful_windows_ahead(std::uint32_t ahead, std::uint32_t windows) {
    return ahead > 16 || ahead < windows / 8 ? ahead : windows / 8;
}

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
    // By the ledger, when they leave.
    void count_control(wire::PacketKind kind, std::uint32_t value);
    void count_piggyback(std::uint32_t credits) {
        ++counters_.piggybacks;
        counters_.piggybacked_credits += credits;
    }
    const PeerFlow& peer(FlowIndex index) const { return peers_[index]; }
    // Free slots of the data region that are granted to nobody (available_slots).
    std::uint32_t available() const { return available_; }

    // False: nothing is counted and the fabric's own back-pressure is the only limit (policy "none").
    bool limited() const { return limited_; }

    // ---- where the counts of a pair are ---

    // True: windows are opened on demand (lazy). Then flow_of(peer) is no constant, and the engine owes the
    // calls under "contact" below. False: flow_of(peer) == peer for ever, and none of them does anything.
    bool on_demand() const { return on_demand_; }
    // The counts of this peer. On demand: all peers without a window in either direction share one that
    // holds no credit. Changes only when a packet for `peer` is emitted or a control packet of `peer` is
    // retrieved, so that a caller may keep the value and read it again at these moments.
    virtual FlowIndex flow_of(PeerIndex peer) const { return peer; }

    // ---- sender role ---

    // The pair is connected: sets the window towards `to` to `credit`, the initial_credit of this process at
    // `to`. On demand: nothing, a window is opened by its first packet.
    void open_window(PeerIndex to, std::uint32_t credit) {
        if (!on_demand_) peers_[to].credit = credit;
    }
    // Packets of the data class that may be sent to `to` now. UINT32_MAX when not limited.
    std::uint32_t credits(FlowIndex to) const { return limited_ ? peers_[to].credit : UINT32_MAX; }
    // The caller sends `count` <= credits(to) DATA packets.
    void take(FlowIndex to, std::uint32_t count) {
        peers_[to].credit -= limited_ ? count : 0;
    }
    // A DATA packet with at least two spare bytes is about to go to `to` (its credit already taken or about
    // to be): the number of credits to put into it, 0..65535, 0 for none. The packet must then go out, before
    // anything else for `to`. May emit a REQ to another peer, never anything to `to`.
    std::uint32_t piggyback(FlowIndex to, Emitter& out) {
        if (!config_.piggyback || peers_[to].retrieved == 0) return 0;
        return attach_credits(to, out);
    }
    // True: the ledger may keep a CREDIT back until the next look at the mailbox (btl_velo_delay_credits),
    // where it joins others or a DATA packet; false: it leaves when it is emitted, and credits go with every
    // DATA packet that has room.
    bool credits_may_wait() const { return credits_may_wait_; }
    // True if a REQ or RESP for `to` waits for a credit. With credits at hand, call send_waiting_control
    // before sending DATA: control packets have priority.
    virtual bool control_waiting(FlowIndex) const { return false; }
    virtual void send_waiting_control(FlowIndex, Emitter&) {}

    // True: a DATA packet that has waited for credits must say so (wire kind kBackloggedData). Then each
    // packet that waited, or the first of each run that leaves a queue, is sent as such.
    bool marks_backlog() const { return marks_backlog_; }

    // Packets of one sender that this process's mailbox takes at a time; the fabric refuses further ones
    // (rnr). UINT32_MAX: a mailbox refuses only what does not fit into it.
    virtual std::uint32_t refusal_limit() const { return UINT32_MAX; }
    // The fabric has refused DATA for `to` at the time `now_ns`, of any monotonic clock. Only when not
    // limited().
    virtual void refused(PeerIndex, std::uint64_t /*now_ns*/) {}
    // The time before which nothing may be offered to `to` again: what has been refused stays at the head of
    // the queue of the pair, and all that is sent meanwhile queues behind it.
    virtual std::uint64_t retry_at_ns(PeerIndex) const { return 0; }

    // ---- receiver role: a packet of `from` has left the mailbox and its slot is free ---

    // DATA. Piggybacked credits, if any, are applied with credit_received afterwards.
    void data_retrieved(FlowIndex from, Emitter& out) {
        if (!limited_) return;
        slot_freed(from);
        if (peers_[from].retrieved < peers_[from].threshold) return;
        // More packets than credits: the count has wrapped around.
        if (expected(peers_[from].current <= data_slots_)) activity(from, out);
    }
    // How many DATA packets of `from` in a row only count, without anything being due.
    std::uint32_t quiet_packets(FlowIndex from) const {
        if (!limited_) return UINT32_MAX;
        const PeerFlow& peer = peers_[from];
        return peer.retrieved + 1 < peer.threshold ? peer.threshold - peer.retrieved - 1 : 0;
    }
    // data_retrieved for `count` <= quiet_packets(from) of them at once.
    void data_retrieved_quietly(FlowIndex from, std::uint32_t count) {
        if (!limited_) return;
        available_ += count;
        peers_[from].retrieved += count;
        peers_[from].current -= count;
    }
    // Credits arrived, in a CREDIT or piggybacked: the caller then flushes its queue for `from`.
    void credit_received(FlowIndex from, std::uint32_t credits) {
        if (limited_) peers_[from].credit += credits;
    }
    // A DATA packet of kind kBackloggedData, instead of data_retrieved.
    virtual void backlogged_data_retrieved(FlowIndex from, Emitter& out) { data_retrieved(from, out); }
    // REQ and RESP. A policy that has neither treats them as the data slots that they took.
    virtual void request_retrieved(FlowIndex from, Emitter& out);
    virtual void response_retrieved(FlowIndex from, std::uint32_t returned, Emitter& out);

    // ---- contact: for a policy with on_demand() only ---

    // A packet for `to` waits, and credits(flow_of(to)) is 0. Due when a packet is queued for a peer that had
    // none waiting, and when the flush after a control packet of `to` leaves packets behind. May emit to any
    // peer.
    virtual void credit_wanted(PeerIndex, Emitter&) {}
    // A CREDIT, instead of credit_received. The caller then flushes, and calls control_flushed.
    virtual void credit_retrieved(PeerIndex, std::uint32_t /*credits*/, Emitter&) {}
    // HELLO, BYE (with its count), RELEASE or LEAVE. The caller then flushes, and calls control_flushed.
    virtual void contact_retrieved(PeerIndex, wire::PacketKind, std::uint32_t /*value*/, Emitter&) {}
    // A control packet has been handled, what it allowed has been sent, and credit_wanted was called for what
    // is left. May emit to any peer.
    virtual void control_flushed(Emitter&) {}
    // Somebody, here or elsewhere, waits for a window that a peer has to give up.
    virtual bool contact_pending() const { return false; }
    // That has lasted longer than the engine likes (milliseconds, not microseconds): whoever was asked may
    // not be looking, so another one is. May emit to any peer.
    virtual void contact_overdue(Emitter&) {}

    // ---- the end of a peer ---

    // It will send nothing more, nothing of it is in the mailbox any more, and nobody looks at its own. What
    // it held, and what is on its way to it, goes to the others; its place becomes what it was at the start,
    // for whoever is connected there next, with open_window. May emit to any other peer; the caller then
    // calls control_flushed. False: nothing has changed, because the others hold what the place starts with;
    // to be called again when packets of theirs have been retrieved.
    virtual bool departed(PeerIndex peer, Emitter& out);

    // A peer has broken the rules: what it sent changed nothing, or the counts do not add up any more. For
    // good.
    bool offended() const { return offended_; }

    // Checks the invariants I1, I2, I6, I7, I9-I11, I13 and what this process can see of I8. Returns the
    // empty string, or the first violation with its numbers. O(P * n); for checked builds and tests.
    virtual std::string violation() const = 0;

    // Bytes of state for each peer, for the memory report.
    virtual std::size_t bytes_per_peer() const { return sizeof(PeerFlow); }
    // Bytes of state that do not depend on the number of peers.
    virtual std::size_t bytes_shared() const { return 0; }
    // Credits granted per peer, as the receiver intends them (I); the quota under "static"; 0 when not
    // limited.
    virtual std::uint32_t intended(PeerIndex) const { return 0; }

 protected:
    Policy(const PolicyConfig& config, bool limited)
        : Policy(config, limited, config.total_data_slots(), config.total_peers()) {}
    // For a policy with a data region or a number of flows of its own.
    Policy(const PolicyConfig& config, bool limited, std::uint32_t data_slots, std::uint32_t flows);

    bool expected(bool possible) {
        if (!possible) [[unlikely]]
            offended_ = true;
        return possible;
    }
    void slot_freed(FlowIndex from) {
        ++available_;
        ++peers_[from].retrieved;
        --peers_[from].current;
    }
    // retrieved >= threshold: return credits if the rules allow it.
    virtual void activity(FlowIndex from, Emitter& out) = 0;
    // retrieved > 0 and a DATA packet with room leaves for `to`.
    virtual std::uint32_t attach_credits(FlowIndex to, Emitter& out) = 0;

    // Moves `count` free slots to `from`, as credits that are about to be sent.
    void grant(FlowIndex from, std::uint32_t count) {
        peers_[from].current += count;
        available_ -= count;
    }
    // The peer has ended: its place holds `current` credits, as at the start.
    void start_again(FlowIndex from, std::uint32_t current) {
        available_ += peers_[from].current - current;
        peers_[from].credit = peers_[from].retrieved = 0;
        peers_[from].current = current;
    }
    // Grants all that was retrieved; the caller sends it.
    std::uint32_t return_retrieved(FlowIndex from) {
        const std::uint32_t count = peers_[from].retrieved;
        peers_[from].retrieved = 0;
        grant(from, count);
        return count;
    }
    // I1 and I2, common to all policies that count.
    std::string slot_violation() const;

    bool limited_;
    bool on_demand_ = false;
    bool marks_backlog_ = false;
    bool credits_may_wait_ = false;
    bool offended_ = false;
    std::uint32_t available_ = 0;
    std::vector<PeerFlow> peers_;  // by FlowIndex
    PolicyConfig config_;
    std::uint32_t data_slots_;  // the D of I2
    Counters counters_;
};

// Credits that the process with index `index` in a mailbox of this configuration owns at the start, under the
// named policy (0 if the policy does not count). Both ends of a pair compute it: the receiver for its
// records, the sender for its window.
std::uint32_t initial_credit(std::string_view policy, const PolicyConfig& config, PeerIndex index);

// The smallest data region of the peers (PolicyConfig::data_slots) that the named policy can work with: P * n
// (dynamic, Eq 5.2), P (static), 1 (none), P * initial_buffers (mvapich_dynamic), 0 where the policy sizes
// its mailbox from other parameters; 0 for an unknown name. Only `peers` and the parameters of the policy
// count.
std::uint32_t minimum_data_slots(std::string_view policy, const PolicyConfig& config);
std::uint32_t minimum_data_slots(std::string_view policy, std::uint32_t peers, std::uint32_t credit_slots);

// The slots of a mailbox of this configuration under the named policy; nothing for an unknown name.
MailboxPlan mailbox_plan(std::string_view policy, const PolicyConfig& config);

// What the named policy goes by, in words for people; nothing for an unknown name.
std::string parameters_text(std::string_view policy, const PolicyConfig& config);

// What a policy asks of its engine beyond credits, the credit region, REQ and RESP; see
// design/adding-a-policy.md.
enum Need : std::uint32_t {
    kPlannedMailbox = 1,  // the mailbox has mailbox_plan().total() slots, not PolicyConfig::mailbox_slots()
    kBacklogFlag = 2,     // marks_backlog() is obeyed
    kRefusal = 4,         // refusal_limit(), refused() and retry_at_ns() are obeyed
    kContact = 8,         // on_demand() is obeyed
    kEveryNeed = kPlannedMailbox | kBacklogFlag | kRefusal | kContact,
};

// Names in the order of the one name -> factory table, of the policies that need no more than `provided`.
// One, empty beyond the last; and all.
std::string_view policy_name(unsigned index, std::uint32_t provided = kEveryNeed) noexcept;
std::vector<std::string_view> policy_names(std::uint32_t provided = kEveryNeed);

// nullptr if there is no such policy; otherwise a policy whose sender windows are still 0: the caller opens
// each with open_window once it knows its own index at that peer. `error` explains a configuration that the
// policy cannot work with (nullptr is returned then).
std::unique_ptr<Policy> make_policy(std::string_view name, const PolicyConfig& config, std::string* error);

}  // namespace velo::flow
