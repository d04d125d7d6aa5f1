#include "flow/static.h"

#include "flow/factory.h"

namespace velo::flow {

StaticPolicy::StaticPolicy(const PolicyConfig& config)
    : Policy(config, {.name = kStaticFactory.name, .credits_may_wait = true}) {
    for (PeerIndex q = 0; q < peers_.size(); ++q) {
        const std::uint32_t quota = config.even_share(q);
        peers_[q].current = quota;
        peers_[q].threshold = return_threshold(quota, config.credit_slots);
    }
}

std::string StaticPolicy::violation() const {
    if (std::string slots = slot_violation(); !slots.empty()) return slots;
    for (PeerIndex q = 0; q < peers_.size(); ++q) {
        const PeerFlow& peer = peers_[q];
        const char* broken = nullptr;
        if (peer.current + peer.retrieved != config_.even_share(q)) broken = "I2, I11";
        if (peer.threshold > peer.current + peer.retrieved) broken = "I10: the threshold cannot be reached";
        if (peer.retrieved >= peer.threshold) broken = "a due credit packet was not sent";
        if (broken != nullptr)
            return std::string(broken) + ": peer " + std::to_string(q) + " current " +
                   std::to_string(peer.current) + " retrieved " + std::to_string(peer.retrieved) +
                   " threshold " + std::to_string(peer.threshold) + " quota " +
                   std::to_string(config_.even_share(q));
    }
    return {};
}

constinit const PolicyFactory kStaticFactory{
    .name = "static",
    .make = make_one<StaticPolicy>,
    .initial_credit = [](const PolicyConfig& config, PeerIndex index) { return config.even_share(index); },
    .minimum_data_slots = [](const PolicyConfig& config) { return std::uint64_t{config.peers}; },
    .maximum_share = [](const PolicyConfig&) { return kMaxQuota; },
};

}  // namespace velo::flow
