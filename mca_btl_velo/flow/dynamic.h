// Dynamic credit flow control (thesis chapter 6, in the checked form of design/flow-control.md): slots move
// from idle senders to active ones.
//
// The thresholds of a sender are the sizes of grants that were really made, oldest first, which keeps
//     sum of thresholds = current + retrieved + 1                                                  (I9)
// at all times. Safety of the credit region, reachability of the head threshold and the floor of S credits
// follow.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "flow/policy.h"
#include "flow/requests.h"

namespace velo::flow {

class DynamicPolicy final : public Policy, public Requests {
 public:
    // Activity of a sender as its receiver sees it. kNull: the intended quota was at its floor S.
    enum class Level : std::uint8_t { kLow, kMedium, kHigh, kNull };

    explicit DynamicPolicy(const PolicyConfig& config);
    Extensions extensions() override { return {.requests = this}; }
    bool control_waiting(PeerIndex to) const override {
        return extras_[to].request_waiting || extras_[to].response_waiting;
    }
    void send_waiting_control(PeerIndex to, Emitter& out) override;
    void request_retrieved(PeerIndex from, Emitter& out) override;
    void response_retrieved(PeerIndex from, std::uint32_t returned, Emitter& out) override;
    bool departed(PeerIndex peer, Emitter& out) override;
    std::string violation() const override;
    std::uint32_t intended(PeerIndex index) const override { return extras_[index].intended; }

    // What else the tests and a state dump look at.
    std::uint32_t threshold(PeerIndex from,
                            std::uint32_t position) const;  // position 0..n, 0 is the current one
    std::uint32_t piggybacked(PeerIndex from) const { return extras_[from].piggybacked; }
    std::uint32_t crossings(PeerIndex from) const { return extras_[from].crossings; }
    bool blocked(PeerIndex from) const { return extras_[from].blocked; }
    bool request_waiting(PeerIndex to) const { return extras_[to].request_waiting; }
    bool response_waiting(PeerIndex to) const { return extras_[to].response_waiting; }
    Level level(PeerIndex from) const;
    // The part of the state that decides what happens next, for the exploration of states.
    void encode(std::string& text) const;

 private:
    static constexpr PeerIndex kNobody = UINT32_MAX;
    static constexpr std::uint8_t kNullList = 3;

    static std::size_t bytes_of_peer(const PolicyConfig& config) {
        return sizeof(PeerFlow) + sizeof(Extra) + config.credit_slots * sizeof(std::uint16_t);
    }

    // Beside PeerFlow, whose `threshold` is t[0]. All but the two flags belong to the receiver role.
    struct Extra {
        PeerIndex newer = kNobody;  // neighbours in the list of the peer's activity level
        PeerIndex older = kNobody;
        std::uint16_t intended = 0;         // I, <= 65535 - n
        std::uint16_t piggybacked = 0;      // `pig`, credits that left early against the current threshold
        std::uint8_t crossings = 0;         // thresholds reached since the last monitoring point, 0..n
        std::uint8_t oldest = 0;            // position of t[1] in the peer's ring
        std::uint8_t list : 2 = 0;          // the list that the peer is in, 0..2 or kNullList
        bool blocked : 1 = false;           // asked to return credits, and has not answered
        bool request_waiting : 1 = false;   // sender role: a REQ waits for a credit
        bool response_waiting : 1 = false;  // sender role: a RESP waits for a credit
    };
    struct List {
        PeerIndex newest = kNobody;  // front
        PeerIndex oldest = kNobody;  // back
    };

    // return_threshold of the intended quota, without its division: exact, as I * (n + 1) < 2^24.
    std::uint32_t intended_lot(const Extra& extra) const {
        return static_cast<std::uint32_t>(extra.intended * lots_reciprocal_ >> 32) + 1;
    }
    // The lot for a sender that holds `held` without it.
    std::uint32_t next_lot(const Extra& extra, std::uint32_t held) const;

    void due(PeerIndex from, Emitter& out) override;
    std::uint32_t attach(PeerIndex to, Emitter& out) override;

    // Slot of t[position] in the rings, position 1..n.
    std::size_t ring_slot(PeerIndex from, std::uint32_t position) const;
    // Drops t[0] and appends `lot` >= 1.
    void push_threshold(PeerIndex from, std::uint32_t lot);
    void shrink_thresholds(PeerIndex from, std::uint32_t credits);

    void threshold_crossed(PeerIndex from, Emitter& out);
    void monitor(PeerIndex from, Emitter& out);
    void steal(PeerIndex thief, PeerIndex victim, Emitter& out);
    void block(PeerIndex victim, Emitter& out);
    void send_request(PeerIndex to, Emitter& out);
    void send_response(PeerIndex to, Emitter& out);

    bool hand_back_quota(PeerIndex from);

    // The lists LOW, MED and HIGH rotate: `low_` says which one is LOW now.
    std::uint8_t list_of(Level level) const {
        return level == Level::kNull ? kNullList
                                     : static_cast<std::uint8_t>((low_ + static_cast<unsigned>(level)) % 3);
    }
    void move_to_front(PeerIndex peer, Level level);
    void unlink(PeerIndex peer);
    void link_front(PeerIndex peer, std::uint8_t list);
    void link_back(PeerIndex peer, std::uint8_t list);

    std::string list_violation() const;
    std::string peer_violation(PeerIndex from) const;

    std::uint32_t intended_max_;
    std::uint64_t lots_reciprocal_;  // 2^32 / (n + 1), rounded up
    std::uint8_t low_ = 0;
    List lists_[4];
    std::vector<Extra> extras_;
    std::vector<std::uint16_t> rings_;  // t[1..n] of each peer
};

}  // namespace velo::flow
