// What the flow control tests share: an emitter that records, and ways to build a policy.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "flow/dynamic.h"
#include "flow/policies.h"

namespace velo::flow {

struct Sent {
    PeerIndex to;
    wire::PacketKind kind;
    std::uint32_t value;
    bool operator==(const Sent&) const = default;
};

inline void PrintTo(const Sent& sent, std::ostream* out) {
    *out << "kind " << static_cast<int>(sent.kind) << " to " << sent.to << " value " << sent.value;
}

inline Sent credit(PeerIndex to, std::uint32_t count) {
    return {to, wire::PacketKind::kCredit, count};
}
inline Sent request(PeerIndex to) {
    return {to, wire::PacketKind::kRequest, 0};
}
inline Sent response(PeerIndex to, std::uint32_t m) {
    return {to, wire::PacketKind::kResponse, m};
}

class Recorder final : public Emitter {
 public:
    void emit(PeerIndex to, wire::PacketKind kind, std::uint32_t value) override {
        sent.push_back({to, kind, value});
    }
    // What was sent since the last call.
    std::vector<Sent> take() {
        std::vector<Sent> all;
        all.swap(sent);
        return all;
    }
    std::vector<Sent> sent;
};

inline PolicyConfig config_of(std::uint32_t peers, std::uint32_t data_slots, std::uint32_t credit_slots) {
    PolicyConfig config;
    config.peers = peers;
    config.data_slots = data_slots;
    config.credit_slots = credit_slots;
    return config;
}

// A policy whose windows to all peers are open with `window` credits.
inline std::unique_ptr<Policy> open_policy(const std::string& name, const PolicyConfig& config,
                                           std::uint32_t window) {
    std::string error;
    std::unique_ptr<Policy> policy = make_policy(name, config, &error);
    EXPECT_NE(policy, nullptr) << error;
    if (policy == nullptr || policy->extensions().contact != nullptr) return policy;
    for (PeerIndex to = 0; to < config.total_peers(); ++to) policy->open_window(to, window);
    return policy;
}

inline void retrieve_data(Policy& policy, PeerIndex from, std::uint32_t count, Emitter& out) {
    for (std::uint32_t i = 0; i < count; ++i) {
        ASSERT_GT(policy.peer(from).current, 0U) << "the sender could not have sent this packet";
        policy.data_retrieved(from, out);
        ASSERT_EQ(policy.violation(), "");
    }
}

}  // namespace velo::flow
