// The dynamic flow control as the prose of the thesis's chapter 6 has it, all of its holes together (A1 to A8
// of mca_btl_velo/design/flow-control.md): to show what they do to a program. Nothing else uses it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "flow/policy.h"
#include "flow/requests.h"

namespace velo::sim {

class LiteralPolicy final : public flow::Policy, private flow::Requests {
 public:
    explicit LiteralPolicy(const flow::PolicyConfig& config);
    flow::Extensions extensions() override { return {.requests = this}; }
    std::string violation() const override { return {}; }
    std::uint32_t intended(flow::PeerIndex index) const override { return extras_[index].intended; }

 private:
    enum Level { kLow, kMedium, kHigh, kNull };
    struct Extra {
        std::vector<std::uint32_t> later;  // t[1..n]
        std::uint32_t intended = 0;
        std::uint32_t piggybacked = 0;
        std::uint32_t crossings = 0;
        bool blocked = false;
        bool request_waiting = false;
        bool response_waiting = false;
    };

    bool control_waiting(flow::PeerIndex to) const override {
        return extras_[to].request_waiting || extras_[to].response_waiting;
    }
    void send_waiting_control(flow::PeerIndex to, flow::Emitter& out) override;
    void request_retrieved(flow::PeerIndex from, flow::Emitter& out) override;
    void response_retrieved(flow::PeerIndex from, std::uint32_t returned, flow::Emitter& out) override;
    void due(flow::PeerIndex from, flow::Emitter& out) override;
    std::uint32_t attach(flow::PeerIndex to, flow::Emitter& out) override;
    void push(flow::PeerIndex from, std::uint32_t lot);
    void crossed(flow::PeerIndex from, flow::Emitter& out);
    void monitor(flow::PeerIndex from, flow::Emitter& out);
    void steal(flow::PeerIndex thief, flow::PeerIndex victim, flow::Emitter& out);
    void give(flow::PeerIndex from, std::uint32_t count);
    Level level(flow::PeerIndex from) const;
    void move(flow::PeerIndex from, Level level);

    std::vector<Extra> extras_;
    std::vector<flow::PeerIndex> lists_[4];  // front: most recent
};

}  // namespace velo::sim
