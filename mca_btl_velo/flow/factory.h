// What the table of policies (flow/policies.inc) knows of one: it stands beside the policy's class.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "flow/policy.h"

namespace velo::flow {

template <class SomePolicy>
std::unique_ptr<Policy> make_one(const PolicyConfig& config) {
    return std::make_unique<SomePolicy>(config);
}

// The data region of slots_per_peer, and n CREDIT packets of each peer.
MailboxPlan standard_mailbox(const PolicyConfig& config);
// "S slots per peer, n credit slots, piggyback on"
std::string standard_parameters(const PolicyConfig& config);
inline std::string no_objection(const PolicyConfig&) {
    return {};
}
// "<parameter> is <value>; it must be <low> to <high>", or nothing if it is between them.
std::string range_objection(const char* parameter, std::uint64_t value, std::uint64_t low,
                            std::uint64_t high);

struct PolicyFactory {
    std::string_view name;
    // make_one<the class>. Called with a configuration that has been checked against the limits below.
    std::unique_ptr<Policy> (*make)(const PolicyConfig& config);
    // What initial_credit and minimum_data_slots of flow/policies.h tell.
    std::uint32_t (*initial_credit)(const PolicyConfig& config, PeerIndex index);
    std::uint64_t (*minimum_data_slots)(const PolicyConfig& config);
    // Largest even share that the policy can count.
    std::uint32_t (*maximum_share)(const PolicyConfig& config);
    MailboxPlan (*mailbox)(const PolicyConfig& config) = standard_mailbox;
    // What is wrong with parameters that are in their ranges, and what to set; empty if nothing is.
    std::string (*objection)(const PolicyConfig& config) = no_objection;
    // What the mailbox and the policy were set to, for people.
    std::string (*parameters)(const PolicyConfig& config) = standard_parameters;
};

#define VELO_POLICY(factory) extern const PolicyFactory factory;
#include "flow/policies.inc"

}  // namespace velo::flow
