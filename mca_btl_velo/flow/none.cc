#include "flow/none.h"

namespace velo::flow {

NonePolicy::NonePolicy(const PolicyConfig& config) : Policy(config, false) {}

std::string_view NonePolicy::name() const {
    return kNoneFactory.name;
}

std::string NonePolicy::violation() const {
    return {};
}

void NonePolicy::activity(PeerIndex, Emitter&) {}

std::uint32_t NonePolicy::attach_credits(PeerIndex, Emitter&) {
    return 0;
}

constinit const PolicyFactory kNoneFactory{
    .name = "none",
    .make = [](const PolicyConfig& config) -> std::unique_ptr<Policy> {
        return std::make_unique<NonePolicy>(config);
    },
    .initial_credit = [](const PolicyConfig&, PeerIndex) { return std::uint32_t{0}; },
    .minimum_data_slots =
        [](const PolicyConfig& config) { return std::uint64_t{config.peers > 0 ? 1U : 0U}; },
    .maximum_share = [](const PolicyConfig&) { return UINT32_MAX; },
};

}  // namespace velo::flow
