// No flow control: nothing is counted, and the back-pressure of the fabric is the only limit.
#pragma once

#include <string>

#include "flow/factory.h"
#include "flow/policy.h"

namespace velo::flow {

class NonePolicy final : public Policy {
 public:
    explicit NonePolicy(const PolicyConfig& config);
    std::string_view name() const override;
    std::string violation() const override;

 private:
    void activity(PeerIndex from, Emitter& out) override;
    std::uint32_t attach_credits(PeerIndex to, Emitter& out) override;
};

extern const PolicyFactory kNoneFactory;

}  // namespace velo::flow
