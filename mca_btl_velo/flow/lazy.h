// Memory follows the peers that are active, not the size of the job: a peer that was never spoken to costs 8
// bytes, and its slot for HELLO. A window opens with the first packet (HELLO, answered by a CREDIT), is
// adjusted with each lot that goes back, and closes when somebody else needs what it holds (RELEASE, answered
// by BYE). With more active peers than slots, they take turns. The rules and why they hold:
// design/policies.md.
//
// The counts of an open window, in either direction, are in a fixed pool of 2 * lazy_peers flows; the flow
// after the last one stands for all peers without a window, and nobody writes to it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "flow/contact.h"
#include "flow/contact_order.h"
#include "flow/policy.h"

namespace velo::flow {

class LazyPolicy final : public Policy, public Contact {
 public:
    // A sender as its receiver sees it. From kActive on it has a flow.
    enum class In : std::uint8_t {
        kCold,
        kWaiting,    // has said HELLO, gets credits when it is its turn
        kActive,     // has credits
        kReleasing,  // was sent RELEASE, its BYE is due
        kReturning,  // the same, and its next HELLO is here already (a doorbell overtakes packets)
    };
    // A window as its sender sees it. From kHello on it has a flow.
    enum class Out : std::uint8_t {
        kCold,
        kQueued,   // waits until another window of this process is closed
        kHello,    // HELLO sent, its first CREDIT is due
        kWarm,     // open
        kLeaving,  // open, and its RELEASE was asked for
    };

    explicit LazyPolicy(const PolicyConfig& config);
    Extensions extensions() override { return {.contact = this}; }
    FlowIndex flow_of(PeerIndex peer) const override;
    void credit_wanted(PeerIndex to, Emitter& out) override;
    void contact_retrieved(PeerIndex from, wire::PacketKind kind, std::uint32_t value, Emitter& out) override;
    void control_flushed(Emitter& out) override;
    bool contact_pending() const override { return waiting_.count + queued_.count > 0; }
    void contact_overdue(Emitter& out) override;
    bool departed(PeerIndex peer, Emitter& out) override;
    std::string violation() const override;
    std::uint32_t intended(PeerIndex from) const override { return in(from) == In::kActive ? share() : 0; }

    In in(PeerIndex from) const { return static_cast<In>(contacts_[from].in.state); }
    Out out(PeerIndex to) const { return static_cast<Out>(contacts_[to].out.state); }
    // What a sender may hold when all that are active or waiting, and one more, hold the same.
    std::uint32_t share() const;
    // The part of the state that decides what happens next, for the exploration of states.
    void encode(std::string& text) const;

 private:
    static constexpr std::uint32_t kNobody = (1U << 29) - 1;

    // `value`: the flow; while waiting, the next peer of the queue.
    struct Side {
        std::uint32_t state : 3 = 0;
        std::uint32_t value : 29 = kNobody;
    };
    struct Pair {
        Side in, out;
    };
    static_assert(sizeof(Pair) == 8);

    // Peers that wait, in the order of their arrival, linked through one side of their contacts.
    struct Queue {
        PeerIndex first = kNobody, last = kNobody;
        std::uint32_t count = 0;
    };
    // Flows in order, least recent first.
    struct Links {
        FlowIndex older = kNobody, newer = kNobody;
    };
    struct List {
        FlowIndex oldest = kNobody, newest = kNobody;
        std::uint32_t count = 0;
    };
    // Beside PeerFlow, for each flow of the pool.
    struct Extra {
        Links in;   // in active_; `newer` also links the free flows
        Links out;  // in warm_
        PeerIndex peer = kNobody;
        std::uint32_t turn = 0;         // turns_ when it last got credits
        std::uint32_t seen_credit = 0;  // sender role: at the last look for a window to close
        std::uint8_t oldest = 0;        // position of t[1] among its lots
        std::uint8_t shortfall = 0;     // first credits below n: see grants in the design page
    };

    void due(FlowIndex from, Emitter& out) override;
    std::uint32_t attach(FlowIndex to, Emitter& out) override;

    // ---- receiver role
    void hello_retrieved(PeerIndex from, Emitter& out);
    void bye_retrieved(PeerIndex from, std::uint32_t returned, Emitter& out);
    void service(Emitter& out);
    void activate(PeerIndex from, Emitter& out);
    void start_release(FlowIndex from, Emitter& out);
    void relieve(FlowIndex from, bool starved, Emitter& out);
    std::uint32_t cross_thresholds(FlowIndex from, bool* starved);
    void give_back(FlowIndex from, std::uint32_t used, std::uint32_t granted);
    void spread(FlowIndex from, std::uint32_t credits);
    void mark_turn(FlowIndex from);
    std::uint32_t patience() const { return config_.credit_slots + 1 + active_.count; }
    std::uint32_t lot(FlowIndex from, std::uint32_t position) const;
    std::size_t lot_slot(FlowIndex from, std::uint32_t position) const;

    // ---- sender role
    void credit_retrieved(PeerIndex from, std::uint32_t credits);
    void release_retrieved(PeerIndex from, Emitter& out);
    std::uint32_t close_window(PeerIndex to);
    void open_queued(Emitter& out);
    void open(PeerIndex to, Emitter& out);
    void say_hello(PeerIndex to, Emitter& out);
    void review_order();
    void open_ahead(Emitter& out);
    void make_room(Emitter& out);
    void ask_to_leave(Emitter& out);
    FlowIndex window_to_close();

    // ---- flows, queues and lists
    FlowIndex cold_flow() const { return 2 * pairs_; }
    FlowIndex take_flow(PeerIndex peer);
    void drop_flow(FlowIndex flow);
    void set(Side& side, std::uint8_t state, std::uint32_t value) { side = {state, value & kNobody}; }
    template <Side Pair::*kSide>
    void push(Queue& queue, PeerIndex peer, std::uint8_t state);
    template <Side Pair::*kSide>
    PeerIndex pop(Queue& queue);
    // From anywhere in the queue; its state becomes cold.
    template <Side Pair::*kSide>
    void take_out(Queue& queue, PeerIndex peer);
    template <Links Extra::*kLinks>
    void append(List& list, FlowIndex flow);
    template <Links Extra::*kLinks>
    void remove(List& list, FlowIndex flow);

    std::string flow_violation(FlowIndex flow) const;
    std::string count_violation() const;

    std::uint32_t pairs_;  // open windows in one direction, at most
    std::vector<Pair> contacts_;
    std::vector<Extra> extras_;
    std::vector<std::uint16_t> lots_;  // t[1..n] of each flow
    FlowIndex free_ = kNobody;

    Queue waiting_;  // receiver role: HELLO retrieved, no credits yet
    List active_;    // receiver role: by their last turn
    std::uint32_t releasing_ = 0;
    std::uint32_t turns_ = 0;  // lots given back so far: the measure of idleness
    std::uint32_t last_release_ = 0;

    Queue queued_;            // sender role: waits for a window
    List warm_;               // sender role: by their opening, or their last second chance
    std::uint32_t open_ = 0;  // kHello, kWarm and kLeaving
    std::uint32_t leaving_ = 0;
    ContactOrder order_;
};

}  // namespace velo::flow
