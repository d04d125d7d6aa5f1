// An independent model of the dynamic rules, written for reading along with design/flow-control.md: signed
// numbers, plain lists, no attention to speed or size. It checks the production policy (same schedule, same
// packets), and each rule in which Velo departs from the thesis can be switched back to the literal reading,
// to show why it does.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fifo.h"
#include "packet.h"
#include "scenario.h"

namespace velo::schedule {

// The literal readings, by the row of the table in design/flow-control.md.
enum class Literal {
    kNone,
    kA1ComputedThreshold,   // the computed threshold is appended, though less was granted
    kA2ThresholdsKept,      // a RESP lowers cc and leaves the thresholds
    kA3OvershootDropped,    // a threshold overshot by piggybacking resets `retr` to 0
    kA4PiggybackUnbounded,  // all of `retr` is piggybacked, whatever is available
    kA5BlockedPops,         // blocked: pops the threshold, resets `retr`, returns nothing
    kA5BlockedResets,       // blocked: resets `retr`, keeps the threshold, returns nothing
    kA5BlockedTrickles,     // blocked below S: one credit for every packet
    kA6ActivityFirst,       // the activity control runs before the RESP is applied
    kA7ExactMatch,          // the threshold is reached only if both values are the same
    kA8ControlUncounted,    // REQ and RESP do not count as retrieved packets
};

class ReferenceParty {
 public:
    enum Level { kLow, kMedium, kHigh, kNull };

    ReferenceParty(const Scenario& scenario, std::uint32_t process, Literal literal = Literal::kNone);

    void send(flow::PeerIndex to, Pending packet, Outbox& out);
    void retrieve(flow::PeerIndex from, const Packet& packet, Outbox& out);
    void flush_all(Outbox& out);
    // The rules by themselves: a CREDIT leaves when it is due.
    void look(Outbox&) {}
    std::uint32_t delayed_credits(flow::PeerIndex) const { return 0; }

    bool limited() const { return true; }
    bool on_demand() const { return false; }
    std::uint32_t refusal_limit() const { return UINT32_MAX; }
    std::uint64_t retry_at_ns(flow::PeerIndex) const { return 0; }
    std::uint32_t credit(flow::PeerIndex to) const { return static_cast<std::uint32_t>(peers_[to].credit); }
    std::uint32_t current(flow::PeerIndex from) const { return static_cast<std::uint32_t>(peers_[from].cc); }
    std::int64_t available() const { return avail_; }
    std::size_t backlog(flow::PeerIndex to) const { return peers_[to].sendq.size(); }
    bool control_waiting(flow::PeerIndex to) const { return peers_[to].req_flag || peers_[to].resp_flag; }
    std::optional<Handshake> handshake(flow::PeerIndex peer) const {
        return Handshake{peers_[peer].blocked, peers_[peer].req_flag, peers_[peer].resp_flag};
    }
    std::string violation() const;
    void encode(std::string& text) const;
    // Thresholds, intended, retrieved, piggybacked, current, credit, crossings, level and flags of a peer.
    std::string state(flow::PeerIndex peer) const;
    // Times that more had left early than the next lot holds: rare, so that a test can see it happen.
    std::uint64_t excess_adjustments() const { return excess_adjustments_; }

 private:
    struct Peer {
        std::int64_t credit = 0, retr = 0, intended = 0, pig = 0, cc = 0, cross = 0;
        std::vector<std::int64_t> t;
        bool blocked = false, req_flag = false, resp_flag = false;
        Fifo<Pending> sendq;
    };

    void flush(flow::PeerIndex q);
    void emit(flow::PeerIndex q, wire::PacketKind kind, std::int64_t value);
    void emit_request(flow::PeerIndex q);
    void emit_response(flow::PeerIndex q);
    void activity(flow::PeerIndex q);
    std::int64_t piggyback(flow::PeerIndex q);
    void crossing(flow::PeerIndex q);
    void monitor(flow::PeerIndex q);
    void steal(flow::PeerIndex q, flow::PeerIndex v);
    void apply_response(flow::PeerIndex v, std::int64_t m);
    void push(flow::PeerIndex q, std::int64_t v);
    void grant(flow::PeerIndex q, std::int64_t c);
    Level level(flow::PeerIndex q) const;
    void move(flow::PeerIndex q, Level to);
    std::int64_t threshold_of(std::int64_t quota) const { return quota / (n_ + 1) + 1; }
    std::int64_t lot_of(const Peer& p) const;

    Literal literal_;
    std::int64_t n_;
    std::int64_t data_slots_;
    std::int64_t intended_max_;
    bool piggyback_;
    std::int64_t avail_;
    std::vector<Peer> peers_;
    std::vector<flow::PeerIndex> lists_[4];  // front = most recent
    Outbox* out_ = nullptr;
    std::uint64_t excess_adjustments_ = 0;
};

}  // namespace velo::schedule
