// Static credit flow control (thesis chapter 5): every sender owns a fixed quota of the data region, and
// freed slots go back to it in lots of the threshold of Eq 5.1, or earlier with a data packet that has room
// (section 5.4).
#pragma once

#include "flow/policy.h"

namespace velo::flow {

// A slot counts as available from its retrieval to its return, so that available = sum of `retrieved`, and
// current + retrieved of a peer always equals its quota.
class StaticPolicy final : public Policy {
 public:
    explicit StaticPolicy(const PolicyConfig& config);
    std::uint32_t intended(PeerIndex index) const override { return config_.even_share(index); }
    std::string violation() const override;
};

}  // namespace velo::flow
