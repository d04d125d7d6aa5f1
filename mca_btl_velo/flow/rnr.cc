#include "flow/rnr.h"

namespace velo::flow {
namespace {

// InfiniBand's RNR NAK timer goes from 10 us to 655 ms; shared memory may want less, nobody more than 10 s.
constexpr std::uint64_t kLongestTimerNs = 10'000'000'000;

}  // namespace

RnrPolicy::RnrPolicy(const PolicyConfig& config)
    : Policy(config, false), retry_at_ns_(config.total_peers(), 0) {}

std::string_view RnrPolicy::name() const {
    return kRnrFactory.name;
}

void RnrPolicy::refused(PeerIndex to, std::uint64_t now_ns) {
    ++counters_.refusals;
    retry_at_ns_[to] = now_ns + config_.rnr_timer_ns;
}

bool RnrPolicy::departed(PeerIndex peer, Emitter&) {
    retry_at_ns_[peer] = 0;
    return true;
}

constinit const PolicyFactory kRnrFactory{
    .name = "rnr",
    .make = [](const PolicyConfig& config) -> std::unique_ptr<Policy> {
        return std::make_unique<RnrPolicy>(config);
    },
    .initial_credit = [](const PolicyConfig&, PeerIndex) { return std::uint32_t{0}; },
    .minimum_data_slots = [](const PolicyConfig&) { return std::uint64_t{0}; },
    .maximum_share = [](const PolicyConfig&) { return UINT32_MAX; },
    .needs = kPlannedMailbox | kRefusal,
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
