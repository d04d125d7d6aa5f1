#include "flow/mvapich_dynamic.h"

#include <algorithm>

#include "flow/factory.h"

namespace velo::flow {
namespace {

// The region of slots_per_peer, and what the spares start with.
std::uint64_t all_buffers(const PolicyConfig& config) {
    return config.data_slots + std::uint64_t{config.spare_peers} * config.initial_buffers;
}

}  // namespace

MvapichDynamicPolicy::MvapichDynamicPolicy(const PolicyConfig& config)
    : MvapichStaticPolicy(config, kMvapichDynamicFactory.name,
                          static_cast<std::uint32_t>(all_buffers(config)), config.initial_buffers),
      pool_(available_) {}

void MvapichDynamicPolicy::backlogged_data_retrieved(FlowIndex from, Emitter& out) {
    slot_freed(from);
    grow(from);
    if (peers_[from].retrieved >= peers_[from].threshold) due(from, out);
}

// New buffers count as retrieved: they reach the sender on the way that freed ones take.
void MvapichDynamicPolicy::grow(FlowIndex from) {
    const std::uint32_t now = buffers(from);
    const std::uint32_t wanted = config_.growth_buffers == 0 ? now : config_.growth_buffers;
    const std::uint32_t added = std::min({wanted, config_.preposted_buffers - now, pool_});
    if (added == 0) return;
    peers_[from].retrieved += added;
    peers_[from].threshold = credit_message_threshold(config_, now + added);
    pool_ -= added;
    ++counters_.growths;
    counters_.grown_buffers += added;
}

// What it has grown by goes back to the pool.
bool MvapichDynamicPolicy::departed(PeerIndex peer, Emitter&) {
    pool_ += buffers(peer) - config_.initial_buffers;
    start_again(peer, config_.initial_buffers);
    peers_[peer].threshold = credit_message_threshold(config_, config_.initial_buffers);
    return true;
}

std::string MvapichDynamicPolicy::violation() const {
    if (std::string slots = slot_violation(); !slots.empty()) return slots;
    std::uint64_t owned = 0;
    for (PeerIndex q = 0; q < peers_.size(); ++q) {
        if (std::string peer = peer_violation(q); !peer.empty()) return peer;
        owned += buffers(q);
        if (buffers(q) < config_.initial_buffers || buffers(q) > config_.preposted_buffers)
            return "I11: peer " + std::to_string(q) + " has " + std::to_string(buffers(q)) + " buffers";
    }
    if (owned + pool_ == data_slots_) return {};
    return "I2: buffers " + std::to_string(owned) + " + pool " + std::to_string(pool_) +
           " != " + std::to_string(data_slots_) + " data slots";
}

constinit const PolicyFactory kMvapichDynamicFactory{
    .name = "mvapich_dynamic",
    .make = make_one<MvapichDynamicPolicy>,
    .initial_credit = [](const PolicyConfig& config, PeerIndex) { return config.initial_buffers; },
    .minimum_data_slots =
        [](const PolicyConfig& config) { return std::uint64_t{config.peers} * config.initial_buffers; },
    .maximum_share = [](const PolicyConfig&) { return UINT32_MAX; },
    .mailbox =
        [](const PolicyConfig& config) {
            const std::uint32_t most = config.preposted_buffers;
            const std::uint32_t messages = most / credit_message_threshold(config, most);
            return MailboxPlan{all_buffers(config), std::uint64_t{config.total_peers()} * messages, messages};
        },
    .objection = [](const PolicyConfig& config) -> std::string {
        const std::uint32_t most = config.preposted_buffers;
        if (std::uint64_t{config.peers} * config.initial_buffers > config.data_slots)
            return "btl_velo_initial_buffers is " + std::to_string(config.initial_buffers) +
                   ", but btl_velo_slots_per_peer leaves a data region of " +
                   std::to_string(config.data_slots) + " slots to " + std::to_string(config.peers) +
                   " peers: raise btl_velo_slots_per_peer, or set btl_velo_initial_buffers to at most " +
                   std::to_string(config.data_slots / config.peers);
        if (config.initial_buffers <= most) return {};
        return "btl_velo_initial_buffers is " + std::to_string(config.initial_buffers) +
               ", but flow control \"mvapich_dynamic\" grows to btl_velo_preposted_buffers=" +
               std::to_string(most) + ": lower the first or raise the second";
    },
    .parameters =
        [](const PolicyConfig& config) {
            const std::string growth =
                config.growth_buffers == 0 ? "as many" : std::to_string(config.growth_buffers);
            return std::to_string(config.initial_buffers) + " to " +
                   std::to_string(config.preposted_buffers) + " buffers per peer of " +
                   std::to_string(all_buffers(config)) + ", " + growth + " more at a time" +
                   credit_message_text(config, config.preposted_buffers);
        },
};

}  // namespace velo::flow
