// One row of the policy table. A new policy defines its row beside its class; policy.cc lists the rows.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "flow/policy.h"

namespace velo::flow {

struct PolicyFactory {
    std::string_view name;
    // Called with a configuration that has been checked against the limits below.
    std::unique_ptr<Policy> (*make)(const PolicyConfig& config);
    std::uint32_t (*initial_credit)(const PolicyConfig& config, PeerIndex index);
    std::uint64_t (*minimum_data_slots)(std::uint32_t peers, std::uint32_t credit_slots);
    // Largest even share that the policy can count.
    std::uint32_t (*maximum_share)(const PolicyConfig& config);
};

}  // namespace velo::flow
