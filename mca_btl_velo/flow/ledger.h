// The credits of one process towards all its peers, as whoever moves its packets meets them: a policy, and
// around it what the rules ask of its user, in their order. The plugin, the simulator and the explored
// schedules move packets in three ways, and keep their accounts here in one.
//
// - A CREDIT may be delayed: it waits for the process's next look at its mailbox, or its next packet for
// another
//   peer, as TCP delays an acknowledgement; a DATA packet that leaves for the same peer before takes it
//   along. To the rules this is a CREDIT on a slower way.
// - Credits that come, in whatever packet, let go what waits: control packets first, then the queue.
// - A policy that opens windows on demand hears what is left in a queue, and when a control packet is done
// with.
//
// As pure as the policy itself: what leaves goes through a Carrier, and nothing else happens.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>

#include "flow/contact.h"
#include "flow/policy.h"
#include "flow/requests.h"

namespace velo::flow {

// Where the counts of a peer are. Belongs to whoever knows the peer; the ledger keeps it right.
struct Account {
    PeerIndex peer = 0;
    FlowIndex flow = 0;
    bool waits = false;  // something is left in the queue
};

// Moves packets. None of its functions may retrieve one.
class Carrier {
 public:
    virtual ~Carrier() = default;
    virtual Account& account(PeerIndex peer) = 0;
    // A control packet leaves at once: the rules guarantee a slot.
    virtual void carry(Account& to, wire::PacketKind kind, std::uint32_t value) = 0;
    // The accounts hold what a packet has told: credits, in DATA or CREDIT, or something else. What that lets
    // go has not left yet.
    virtual void entered(Account& /*from*/, wire::PacketKind, std::uint32_t /*value*/) {}
    // Sends what waits for `to`, as far as credits and fabric allow: credits(), attach() and sent() for each
    // packet or run of packets. True: something is left.
    virtual bool send_queued(Account& to) = 0;
};

class Ledger final : private Emitter {
 public:
    // `delays`: CREDITs may wait, if the policy allows it.
    Ledger(Policy& policy, Carrier& carrier, bool delays)
        : policy_(policy),
          carrier_(carrier),
          delays_(delays && policy.traits().credits_may_wait && policy.config().piggyback),
          extensions_(policy.extensions()) {}
    // The accounts of a copy of the policy, moved by another carrier: for the exploration of states.
    Ledger(const Ledger& other, Policy& policy, Carrier& carrier)
        : policy_(policy),
          carrier_(carrier),
          delays_(other.delays_),
          delayed_credits_(other.delayed_credits_),
          delayed_to_(other.delayed_to_.load(std::memory_order_relaxed)),
          extensions_(policy.extensions()) {}

    const Policy& policy() const { return policy_; }
    bool delays() const { return delays_; }

    Account account_of(PeerIndex peer) const { return {peer, flow_of(peer)}; }
    // The pair is connected: this process owns `credit` slots at `to`.
    void open(const Account& to, std::uint32_t credit) {
        if (!on_demand()) policy_.open_window(to.flow, credit);
    }

    // ---- sender role

    std::uint32_t credits(const Account& to) const { return policy_.credits(to.flow); }
    // The number of credits to put into a DATA packet that leaves for `to` now, 0 for none. `room`: it has
    // two bytes to spare. Where credits may wait, those of a few packets do, too: giving back each one at
    // once costs both ends more than the rest of an 8-byte message's flow control.
    std::uint32_t attach(const Account& to, bool room = true) {
        const PeerFlow& flow = policy_.peer(to.flow);
        // One branch of the three conditions.
        const bool few = delays_ ? flow.returns_may_wait() & (delayed_to() != to.peer) : flow.retrieved == 0;
        return few | !room ? 0 : attach_due(to);
    }
    // `packets` <= credits(to) DATA packets have left.
    void sent(const Account& to, std::uint32_t packets) {
        if (take(to, packets)) [[unlikely]]
            release();
    }
    // The same in two steps. True: look() is due.
    bool take(const Account& to, std::uint32_t packets) {
        policy_.take(to.flow, packets);
        return owes_another(to);
    }
    // attach() and take() where credits may wait, of packets that bring none and make none due, and take no
    // more than a part of those at hand: nearly always. False: nothing has changed.
    bool try_take(const Account& to, std::uint32_t packets, unsigned shift = 0) {
        return !owes() && policy_.try_take(to.flow, packets, shift);
    }
    // Whoever speaks to another peer may not look at its mailbox for long.
    bool owes_another(const Account& than) const {
        const PeerIndex owed = delayed_to();
        return (owed != kNobody) & (owed != than.peer);
    }
    // A packet for `to` waits, and none did before.
    void queued(Account& to) {
        to.waits = true;
        if (on_demand()) extensions_.contact->credit_wanted(to.peer, *this);
    }
    // A control packet for `to` waits for a credit.
    bool control_waiting(const Account& to) const {
        return extensions_.requests != nullptr && extensions_.requests->control_waiting(to.flow);
    }
    // DATA for this policy's peers says so if it has waited.
    bool marks_backlog() const { return extensions_.backlog != nullptr; }
    // Sends what waits for `to` and may go. True: something is left.
    bool flush(Account& to);

    // ---- receiver role

    // The process looks at its mailbox: before it retrieves a packet, and when it finds none.
    void look() {
        if (owes()) [[unlikely]]
            release();
    }
    // `packets` DATA packets of one message have been retrieved, the first of which had waited for credits if
    // `waited`, and the last of which brought `credits`. Before each part of them that is counted at once,
    // `step` is called with the size of the part, perhaps 0, and whether it may make credits due; the last
    // call is with one that does not. It may look(). False: the peer has broken the rules.
    template <class Step>
    [[gnu::always_inline]] bool data_retrieved(Account& from, std::uint32_t packets, bool waited,
                                               std::uint32_t credits, Step&& step);
    [[gnu::always_inline]] bool data_retrieved(Account& from, std::uint32_t packets, bool waited,
                                               std::uint32_t credits) {
        return data_retrieved(from, packets, waited, credits, [](std::uint32_t, bool) {});
    }
    // The same where credits are counted, the packets brought none, and nothing is due with them: nearly
    // always. False: nothing has changed.
    bool data_retrieved_if_quiet(const Account& from, std::uint32_t packets) {
        return policy_.data_retrieved_if_quiet(from.flow, packets);
    }
    // How many DATA packets in a row only count, and counting so many at once.
    std::uint32_t quiet_packets(const Account& from) const { return policy_.quiet_packets(from.flow); }
    void data_retrieved_quietly(const Account& from, std::uint32_t packets) {
        policy_.data_retrieved_quietly(from.flow, packets);
    }
    // Any other packet. False: no correct peer sends it.
    bool control_retrieved(Account& from, wire::PacketKind kind, std::uint32_t value);

    // ---- windows on demand

    bool on_demand() const { return extensions_.contact != nullptr; }
    // Where the counts of a peer are: without windows on demand, at its index for ever.
    FlowIndex flow_of(PeerIndex peer) const {
        return on_demand() ? extensions_.contact->flow_of(peer) : peer;
    }
    // Somebody waits for a window that a peer has to give up.
    bool contact_pending() const { return on_demand() && extensions_.contact->contact_pending(); }
    // The carrier's patience with that is over (milliseconds).
    void contact_overdue() {
        if (on_demand()) extensions_.contact->contact_overdue(*this);
    }

    // This peer has ended: see Policy::departed. False: nothing has changed.
    bool departed(Account& from);

    // Something is delayed.
    bool owes() const { return delayed_to() != kNobody; }
    // CREDITs that are neither under way nor joined yet.
    std::uint32_t delayed_credits(PeerIndex to) const { return delayed_to() == to ? delayed_credits_ : 0; }

 private:
    static constexpr PeerIndex kNobody = UINT32_MAX;

    PeerIndex delayed_to() const { return delayed_to_.load(std::memory_order_relaxed); }
    void emit(PeerIndex to, wire::PacketKind kind, std::uint32_t value) override;
    [[gnu::noinline]] std::uint32_t attach_due(const Account& to);
    [[gnu::noinline]] void release();
    [[gnu::noinline]] void backlogged(const Account& from);
    [[gnu::noinline]] void credited(Account& from, std::uint32_t credits);
    void carry(PeerIndex to, wire::PacketKind kind, std::uint32_t value);
    void follow(Account& from);

    Policy& policy_;
    Carrier& carrier_;
    bool delays_;
    std::uint32_t delayed_credits_ = 0;
    std::atomic<PeerIndex> delayed_to_{kNobody};  // looked at without the lock of those who call
    const Extensions extensions_;
};

template <class Step>
inline bool Ledger::data_retrieved(Account& from, std::uint32_t packets, bool waited, std::uint32_t credits,
                                   Step&& step) {
    if (waited) {
        step(1U, false);
        backlogged(from);
        --packets;
    }
    // As if they had been retrieved one after the other: the rules see each of them.
    for (;; --packets) {
        const std::uint32_t quiet = std::min(packets, quiet_packets(from));
        step(quiet, false);
        data_retrieved_quietly(from, quiet);
        packets -= quiet;
        if (packets == 0) break;
        step(1U, true);
        policy_.data_retrieved(from.flow, *this);
        if (policy_.offended()) [[unlikely]]
            return false;
    }
    if (credits > 0) credited(from, credits);
    return true;
}

}  // namespace velo::flow
