// Credit flow control as a pure object: one Policy holds all the flow control state of one process, both as a
// sender and as a receiver, towards each of its peers. Events go in, packets come out through an Emitter, and
// nothing else happens: no clock, I/O, random numbers, allocation (after construction) or logging, so that
// the plugin, the tests and a simulator run the very same object.
//
// The rules are those of the thesis, chapters 5 and 6, in the checked form that design/flow-control.md
// explains. Who calls what, and when: flow/ledger.h.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "flow/counters.h"
#include "flow/emitter.h"

namespace velo::flow {

// The state that the hot path touches, one for each peer; a policy keeps its further state beside it.
struct PeerFlow {
    std::uint32_t credit = 0;     // sender role: packets that may be sent to this peer now
    std::uint32_t retrieved = 0;  // receiver role: `retr`, packets retrieved whose slots are not yet returned
    std::uint32_t threshold = 0;  // receiver role: t[0], current_threshold; UINT32_MAX: never
    std::uint32_t current = 0;    // receiver role: `cc`, credits at the sender and in flight either way

    // What was retrieved is far from due: where credits may wait, no packet needs to take it along.
    bool returns_may_wait() const { return retrieved + retrieved / 4 + 1 < threshold; }
};

// What a policy has beyond credits, each in a header of its own; nullptr: not this one.
struct Extensions {
    class Requests* requests = nullptr;  // credits are asked back: REQ and RESP
    class Backlog* backlog = nullptr;    // DATA that has waited says so
    class Refusal* refusal = nullptr;    // the fabric refuses packets, which are sent again later
    class Contact* contact = nullptr;    // windows open and close on demand
};

// What a policy says of itself.
struct Traits {
    std::string_view name;
    // False: nothing is counted and the fabric's own back-pressure is the only limit (none, rnr).
    bool limited = true;
    // True: the ledger may keep a CREDIT back until the next look at the mailbox (btl_velo_delay_credits),
    // where it joins others or a DATA packet; false: it leaves when it is emitted.
    bool credits_may_wait = false;
    // True: whoever matches messages sends one that finds no credit by rendezvous, however short it is.
    bool rendezvous_without_credit = false;
    // Of its state, for the memory report.
    std::size_t bytes_per_peer = sizeof(PeerFlow);
    std::size_t bytes_shared = 0;
};

class Policy {
 public:
    virtual ~Policy() = default;

    const Traits& traits() const { return traits_; }
    std::string_view name() const { return traits_.name; }
    const PolicyConfig& config() const { return config_; }
    const Counters& counters() const { return counters_; }
    Counters& counters() { return counters_; }  // the ledger counts what leaves
    const PeerFlow& peer(FlowIndex index) const { return peers_[index]; }
    // Free slots of the data region that are granted to nobody (available_slots).
    std::uint32_t available() const { return available_; }
    bool limited() const { return limited_; }
    // A peer has broken the rules: what it sent changed nothing, or the counts do not add up any more. For
    // good.
    bool offended() const { return offended_; }

    virtual Extensions extensions() { return {}; }
    // Credits granted to a peer, as the receiver intends them (I); 0 when not limited.
    virtual std::uint32_t intended(PeerIndex) const { return 0; }
    // The peer will send nothing more, nothing of it is in the mailbox any more, and nobody looks at its own.
    // What it held, and what is on its way to it, goes to the others; its place becomes what it was at the
    // start, for whoever is connected there next. May emit to any other peer. False: nothing has changed,
    // because the others hold what the place starts with; to be called again when packets of theirs have
    // been retrieved.
    virtual bool departed(PeerIndex peer, Emitter& out);
    // The invariants I1, I2, I6, I7, I9-I11, I13 and what this process can see of I8: the empty string, or
    // the first violation with its numbers. O(P * n); for checked builds and tests.
    virtual std::string violation() const = 0;

    // ---- sender role

    // The pair is connected: this process owns `credit` slots at `to`.
    void open_window(FlowIndex to, std::uint32_t credit) { peers_[to].credit = credit; }
    // Packets of the data class that may be sent to `to` now. UINT32_MAX when not limited.
    std::uint32_t credits(FlowIndex to) const { return limited_ ? peers_[to].credit : UINT32_MAX; }
    // `count` <= credits(to) DATA packets are sent.
    void take(FlowIndex to, std::uint32_t count) { peers_[to].credit -= limited_ ? count : 0; }
    // A DATA packet with at least two spare bytes is about to go to `to`: the number of credits to put into
    // it, 0..65535. It must then go out, before anything else for `to`.
    std::uint32_t piggyback(FlowIndex to, Emitter& out) {
        return config_.piggyback && peers_[to].retrieved > 0 ? attach(to, out) : 0;
    }
    // take(), where credits >> `shift` are as many, and returns to `to` may wait. False: nothing has changed.
    bool try_take(FlowIndex to, std::uint32_t count, unsigned shift) {
        PeerFlow& peer = peers_[to];
        if (peer.credit >> shift < count || !peer.returns_may_wait()) [[unlikely]]
            return false;
        peer.credit -= count;
        return true;
    }
    // Credits arrived, in a CREDIT or with DATA.
    void credit_received(FlowIndex from, std::uint32_t credits) {
        if (limited_) peers_[from].credit += credits;
    }

    // ---- receiver role: a DATA packet of `from` has left the mailbox and its slot is free

    void data_retrieved(FlowIndex from, Emitter& out) {
        if (!limited_) return;
        slot_freed(from);
        if (peers_[from].retrieved < peers_[from].threshold) return;
        // More packets than credits: the count has wrapped around.
        if (expected(peers_[from].current <= data_slots_)) due(from, out);
    }
    // How many DATA packets of `from` in a row only count, without anything being due.
    std::uint32_t quiet_packets(FlowIndex from) const {
        if (!limited_) return UINT32_MAX;
        const PeerFlow& peer = peers_[from];
        return peer.retrieved + 1 < peer.threshold ? peer.threshold - peer.retrieved - 1 : 0;
    }
    // data_retrieved for `count` <= quiet_packets(from) of them at once.
    void data_retrieved_quietly(FlowIndex from, std::uint32_t count) {
        if (limited_) count_retrieved(peers_[from], count);
    }
    // The same where credits are counted, if they are so few. False: nothing has changed.
    bool data_retrieved_if_quiet(FlowIndex from, std::uint32_t count) {
        PeerFlow& peer = peers_[from];
        if (peer.retrieved + count >= peer.threshold) [[unlikely]]
            return false;
        count_retrieved(peer, count);
        return true;
    }

 protected:
    Policy(const PolicyConfig& config, const Traits& traits)
        : Policy(config, traits, config.total_data_slots(), config.total_peers()) {}
    // For a policy with a data region or a number of flows of its own.
    Policy(const PolicyConfig& config, const Traits& traits, std::uint32_t data_slots, std::uint32_t flows);

    // retrieved >= threshold: returns credits if the rules allow it. By default, all that was retrieved.
    virtual void due(FlowIndex from, Emitter& out);
    // retrieved > 0 and a DATA packet with room leaves for `to`: the credits that go along, by default all
    // that was retrieved. May emit a REQ to another peer, never anything to `to`.
    virtual std::uint32_t attach(FlowIndex to, Emitter& out);

    bool expected(bool possible) {
        if (!possible) [[unlikely]]
            offended_ = true;
        return possible;
    }
    void slot_freed(FlowIndex from) { count_retrieved(peers_[from], 1); }
    // Moves `count` free slots to `from`, as credits that are about to be sent.
    void grant(FlowIndex from, std::uint32_t count) {
        peers_[from].current += count;
        available_ -= count;
    }
    // Grants all that was retrieved; the caller sends it.
    std::uint32_t return_retrieved(FlowIndex from);
    // The peer has ended: its place holds `current` credits, as at the start.
    void start_again(FlowIndex from, std::uint32_t current);
    // I1 and I2, common to all policies that count.
    std::string slot_violation() const;

    bool limited_;  // that of the traits
    bool offended_ = false;
    std::uint32_t available_ = 0;
    std::vector<PeerFlow> peers_;  // by FlowIndex
    PolicyConfig config_;
    std::uint32_t data_slots_;  // the D of I2
    Counters counters_;
    Traits traits_;

 private:
    void count_retrieved(PeerFlow& from, std::uint32_t count) {
        available_ += count;
        from.retrieved += count;
        from.current -= count;
    }
};

}  // namespace velo::flow
