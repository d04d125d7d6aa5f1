#include "flow/mvapich_static.h"

#include <algorithm>

#include "flow/factory.h"

namespace velo::flow {

std::uint32_t credit_message_threshold(const PolicyConfig& config, std::uint32_t buffers) {
    return std::clamp(config.credit_message_threshold, 1U, std::max(buffers, 1U));
}

std::string credit_message_text(const PolicyConfig& config, std::uint32_t buffers) {
    return ", credit messages from " + std::to_string(credit_message_threshold(config, buffers)) +
           " freed ones on, piggyback " + (config.piggyback ? "on" : "off");
}

MvapichStaticPolicy::MvapichStaticPolicy(const PolicyConfig& config)
    : MvapichStaticPolicy(config, kMvapichStaticFactory.name, config.total_peers() * config.preposted_buffers,
                          config.preposted_buffers) {}

MvapichStaticPolicy::MvapichStaticPolicy(const PolicyConfig& config, std::string_view name,
                                         std::uint32_t data_slots, std::uint32_t buffers)
    : Policy(config, {.name = name, .rendezvous_without_credit = true}, data_slots, config.total_peers()) {
    for (PeerFlow& peer : peers_) {
        peer.current = buffers;
        peer.threshold = credit_message_threshold(config, buffers);
    }
    available_ = data_slots - config.total_peers() * buffers;
}

std::string MvapichStaticPolicy::peer_violation(PeerIndex from) const {
    const PeerFlow& peer = peers_[from];
    const char* broken = nullptr;
    if (peer.threshold > buffers(from)) broken = "I10: the threshold cannot be reached";
    if (peer.threshold != credit_message_threshold(config_, buffers(from)))
        broken = "I10: the threshold is not that of the buffers";
    if (peer.retrieved >= peer.threshold) broken = "a due credit message was not sent";
    if (broken == nullptr) return {};
    return std::string(broken) + ": peer " + std::to_string(from) + " current " +
           std::to_string(peer.current) + " retrieved " + std::to_string(peer.retrieved) + " threshold " +
           std::to_string(peer.threshold);
}

std::string MvapichStaticPolicy::violation() const {
    if (std::string slots = slot_violation(); !slots.empty()) return slots;
    for (PeerIndex q = 0; q < peers_.size(); ++q) {
        if (std::string peer = peer_violation(q); !peer.empty()) return peer;
        if (buffers(q) != config_.preposted_buffers)
            return "I2: peer " + std::to_string(q) + " has " + std::to_string(buffers(q)) + " buffers of " +
                   std::to_string(config_.preposted_buffers);
    }
    return {};
}

constinit const PolicyFactory kMvapichStaticFactory{
    .name = "mvapich_static",
    .make = make_one<MvapichStaticPolicy>,
    .initial_credit = [](const PolicyConfig& config, PeerIndex) { return config.preposted_buffers; },
    .minimum_data_slots = [](const PolicyConfig&) { return std::uint64_t{0}; },
    .maximum_share = [](const PolicyConfig&) { return UINT32_MAX; },
    .mailbox =
        [](const PolicyConfig& config) {
            const std::uint32_t buffers = config.preposted_buffers;
            const std::uint32_t messages = buffers / credit_message_threshold(config, buffers);
            const std::uint64_t peers = config.total_peers();
            return MailboxPlan{peers * buffers, peers * messages, messages};
        },
    .parameters =
        [](const PolicyConfig& config) {
            return std::to_string(config.preposted_buffers) + " buffers per peer" +
                   credit_message_text(config, config.preposted_buffers);
        },
};

}  // namespace velo::flow
