// Receiver-not-ready, as InfiniBand's hardware does it (Liu & Panda, sections 2.2 and 4.1): nobody counts
// credits. Each peer has pre-posted buffers, an arrival without a free one is refused, and the sender sends
// that packet again after a time, without limit, ahead of everything else for that peer.
//
// The mailbox does the refusing (refusal_limit); this object is the sender's timers. There is no bookkeeping
// at the receiver, and none for packets that are not refused.
#include <vector>

#include "flow/factory.h"
#include "flow/refusal.h"

namespace velo::flow {
namespace {

class RnrPolicy final : public Policy, private Refusal {
 public:
    explicit RnrPolicy(const PolicyConfig& config)
        : Policy(config, {.name = kRnrFactory.name,
                          .limited = false,
                          .bytes_per_peer = sizeof(PeerFlow) + sizeof(std::uint64_t)}),
          retry_at_ns_(config.total_peers(), 0) {}
    Extensions extensions() override { return {.refusal = this}; }
    std::uint32_t intended(PeerIndex) const override { return config_.preposted_buffers; }
    bool departed(PeerIndex peer, Emitter&) override {
        retry_at_ns_[peer] = 0;
        return true;
    }
    std::string violation() const override { return {}; }

 private:
    std::uint32_t refusal_limit() const override { return config_.preposted_buffers; }
    void refused(PeerIndex to, std::uint64_t now_ns) override {
        ++counters_.refusals;
        retry_at_ns_[to] = now_ns + config_.rnr_timer_ns;
    }
    std::uint64_t retry_at_ns(PeerIndex to) const override { return retry_at_ns_[to]; }

    // The end of the last hold, in the past if nothing is held.
    std::vector<std::uint64_t> retry_at_ns_;
};

}  // namespace

constinit const PolicyFactory kRnrFactory{
    .name = "rnr",
    .make = make_one<RnrPolicy>,
    .initial_credit = [](const PolicyConfig&, PeerIndex) { return std::uint32_t{0}; },
    .minimum_data_slots = [](const PolicyConfig&) { return std::uint64_t{0}; },
    .maximum_share = [](const PolicyConfig&) { return UINT32_MAX; },
    .mailbox =
        [](const PolicyConfig& config) {
            return MailboxPlan{.data_slots = std::uint64_t{config.total_peers()} * config.preposted_buffers};
        },
    .parameters =
        [](const PolicyConfig& config) {
            return std::to_string(config.preposted_buffers) + " buffers per peer, refused packets are held " +
                   std::to_string(config.rnr_timer_ns) + " ns";
        },
};

}  // namespace velo::flow
