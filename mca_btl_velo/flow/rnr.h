// Receiver-not-ready, as InfiniBand's hardware does it (Liu & Panda, sections 2.2 and 4.1): nobody counts
// credits. Each peer has pre-posted buffers, an arrival without a free one is refused, and the sender sends
// that packet again after a time, without limit, ahead of everything else for that peer.
//
// The mailbox does the refusing (refusal_limit); this object is the sender's timers. There is no bookkeeping
// at the receiver, and none for packets that are not refused.
#pragma once

#include <string>
#include <vector>

#include "flow/factory.h"
#include "flow/policy.h"

namespace velo::flow {

class RnrPolicy final : public Policy {
 public:
    explicit RnrPolicy(const PolicyConfig& config);
    std::string_view name() const override;
    std::uint32_t refusal_limit() const override { return config_.preposted_buffers; }
    void refused(PeerIndex to, std::uint64_t now_ns) override;
    std::uint64_t retry_at_ns(PeerIndex to) const override { return retry_at_ns_[to]; }
    bool departed(PeerIndex peer, Emitter& out) override;
    std::string violation() const override { return {}; }
    std::size_t bytes_per_peer() const override { return sizeof(PeerFlow) + sizeof(std::uint64_t); }
    std::uint32_t intended(PeerIndex) const override { return config_.preposted_buffers; }

 private:
    void activity(FlowIndex, Emitter&) override {}
    std::uint32_t attach_credits(FlowIndex, Emitter&) override { return 0; }

    // The end of the last hold, in the past if nothing is held.
    std::vector<std::uint64_t> retry_at_ns_;
};

extern const PolicyFactory kRnrFactory;

}  // namespace velo::flow
