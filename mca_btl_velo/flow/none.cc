// No flow control: nothing is counted, and the back-pressure of the fabric is the only limit.
#include "flow/factory.h"

namespace velo::flow {
namespace {

class NonePolicy final : public Policy {
 public:
    explicit NonePolicy(const PolicyConfig& config)
        : Policy(config, {.name = kNoneFactory.name, .limited = false}) {}
    std::string violation() const override { return {}; }
};

}  // namespace

constinit const PolicyFactory kNoneFactory{
    .name = "none",
    .make = make_one<NonePolicy>,
    .initial_credit = [](const PolicyConfig&, PeerIndex) { return std::uint32_t{0}; },
    .minimum_data_slots =
        [](const PolicyConfig& config) { return std::uint64_t{config.peers > 0 ? 1U : 0U}; },
    .maximum_share = [](const PolicyConfig&) { return UINT32_MAX; },
};

}  // namespace velo::flow
