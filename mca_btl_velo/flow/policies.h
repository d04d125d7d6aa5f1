// The policies by their names: for whoever makes one, plans a mailbox for one, or lists them. The table is
// flow/policies.inc.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "flow/policy.h"

namespace velo::flow {

// Credits that the process with index `index` in a mailbox of this configuration owns at the start, under the
// named policy (0 if the policy does not count). Both ends of a pair compute it: the receiver for its
// records, the sender for its window.
std::uint32_t initial_credit(std::string_view policy, const PolicyConfig& config, PeerIndex index);

// The smallest data region of the peers (PolicyConfig::data_slots) that the named policy can work with: P * n
// (dynamic, Eq 5.2), P (static), 1 (none), P * initial_buffers (mvapich_dynamic), 0 where the policy sizes
// its mailbox from other parameters; 0 for an unknown name. Only `peers` and the parameters of the policy
// count.
std::uint32_t minimum_data_slots(std::string_view policy, const PolicyConfig& config);
std::uint32_t minimum_data_slots(std::string_view policy, std::uint32_t peers, std::uint32_t credit_slots);

// The slots of a mailbox of this configuration under the named policy; nothing for an unknown name.
MailboxPlan mailbox_plan(std::string_view policy, const PolicyConfig& config);

// What the named policy goes by, in words for people; nothing for an unknown name.
std::string parameters_text(std::string_view policy, const PolicyConfig& config);

// Names in the order of the table: one, empty beyond the last; and all.
std::string_view policy_name(unsigned index) noexcept;
std::vector<std::string_view> policy_names();

// nullptr if there is no such policy; otherwise a policy whose sender windows are still 0: the caller opens
// each once it knows its own index at that peer. `error` explains a configuration that the policy cannot work
// with (nullptr is returned then).
std::unique_ptr<Policy> make_policy(std::string_view name, const PolicyConfig& config, std::string* error);

}  // namespace velo::flow
