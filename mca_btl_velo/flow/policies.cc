#include "flow/policies.h"

#include <iterator>

#include "flow/factory.h"

namespace velo::flow {
namespace {

constexpr const PolicyFactory* kFactories[] = {
#define VELO_POLICY(factory) &(factory),
#include "flow/policies.inc"
};

// What a packet can name as its source.
constexpr std::uint32_t kMaxPeers = wire::Header::kMaxSource;
constexpr std::uint32_t kMaxSparePeers = 65535;
// Keeps every sum of slot counts inside 31 bits, so that a counter below zero shows as a value above it.
constexpr std::uint64_t kMaxMailboxSlots = 0x7fffffff;

const PolicyFactory* find_factory(std::string_view name) {
    for (const PolicyFactory* factory : kFactories)
        if (factory->name == name) return factory;
    return nullptr;
}

// The first of the parameters that is out of its range.
std::string parameter_objection(const PolicyConfig& config) {
    using namespace parameters;
    std::string reason;
#define VELO_POLICY_PARAMETER(type, name, initial, permitted, ...) \
    if (reason.empty())                                            \
        reason = range_objection("btl_velo_" #name, config.name, (permitted).least, (permitted).most);
#include "types/parameters.inc"
    return reason;
}

// Why `config` cannot work with the policy, and what to do about it; empty if it can.
std::string objection(const PolicyFactory& factory, const PolicyConfig& config) {
    const std::uint32_t n = config.credit_slots;
    for (const std::string& reason :
         {parameter_objection(config),
          range_objection("the number of peers", std::uint64_t{config.peers} + config.spare_peers, 0,
                          kMaxPeers),
          range_objection("btl_velo_spare_peers", config.spare_peers, 0, kMaxSparePeers),
          factory.objection(config)})
        if (!reason.empty()) return reason;
    if (config.total_peers() == 0) return "there are no peers: set btl_velo_spare_peers to at least 1";
    if (config.peers == 0 && config.data_slots != 0)
        return "a data region without peers to share it: btl_velo_slots_per_peer applies to peers only";

    const std::uint64_t minimum = factory.minimum_data_slots(config);
    if (config.data_slots < minimum && config.peers > 0) {
        const std::uint64_t per_peer = (minimum + config.peers - 1) / config.peers + n;
        return "btl_velo_slots_per_peer leaves a data region of " + std::to_string(config.data_slots) +
               " slots to " + std::to_string(config.peers) + " peers, but flow control \"" +
               std::string(factory.name) + "\" with btl_velo_credit_slots=" + std::to_string(n) + " needs " +
               std::to_string(minimum) + ": set btl_velo_slots_per_peer to at least " +
               std::to_string(per_peer) + ", or lower btl_velo_credit_slots";
    }
    const std::uint32_t largest_share = config.peers > 0 ? config.even_share(0) : n;
    const std::uint32_t maximum = factory.maximum_share(config);
    if (largest_share > maximum) {
        const std::uint64_t most_slots = std::uint64_t{maximum} + n;
        return "btl_velo_slots_per_peer gives a peer " + std::to_string(largest_share) +
               " data slots, but flow control \"" + std::string(factory.name) + "\" grants a peer at most " +
               std::to_string(maximum) + ": set btl_velo_slots_per_peer to at most " +
               std::to_string(most_slots);
    }
    const std::uint64_t mailbox = factory.mailbox(config).total();
    if (mailbox > kMaxMailboxSlots)
        return "the mailbox would have " + std::to_string(mailbox) + " slots, more than " +
               std::to_string(kMaxMailboxSlots) +
               ": lower btl_velo_slots_per_peer, btl_velo_credit_slots or the parameters of flow control \"" +
               std::string(factory.name) + "\"";
    return {};
}

}  // namespace

std::string range_objection(const char* parameter, std::uint64_t value, std::uint64_t low,
                            std::uint64_t high) {
    if (value >= low && value <= high) return {};
    return std::string(parameter) + " is " + std::to_string(value) + "; it must be " + std::to_string(low) +
           " to " + std::to_string(high);
}

MailboxPlan standard_mailbox(const PolicyConfig& config) {
    const std::uint64_t n = config.credit_slots;
    return {.data_slots = config.data_slots + n * config.spare_peers,
            .control_slots = n * config.total_peers(),
            .credit_packets = config.credit_slots};
}

std::string standard_parameters(const PolicyConfig& config) {
    // A process that is alone on its node has no peers to share the region.
    const std::uint32_t data = config.peers > 0 ? config.data_slots / config.peers : 0;
    return std::to_string(data + config.credit_slots) + " slots per peer, " +
           std::to_string(config.credit_slots) + " credit slots, piggyback " +
           (config.piggyback ? "on" : "off");
}

std::uint32_t initial_credit(std::string_view policy, const PolicyConfig& config, PeerIndex index) {
    const PolicyFactory* factory = find_factory(policy);
    return factory != nullptr ? factory->initial_credit(config, index) : 0;
}

std::uint32_t minimum_data_slots(std::string_view policy, const PolicyConfig& config) {
    const PolicyFactory* factory = find_factory(policy);
    return factory != nullptr ? static_cast<std::uint32_t>(factory->minimum_data_slots(config)) : 0;
}

std::uint32_t minimum_data_slots(std::string_view policy, std::uint32_t peers, std::uint32_t credit_slots) {
    PolicyConfig config;
    config.peers = peers;
    config.credit_slots = credit_slots;
    return minimum_data_slots(policy, config);
}

MailboxPlan mailbox_plan(std::string_view policy, const PolicyConfig& config) {
    const PolicyFactory* factory = find_factory(policy);
    return factory != nullptr ? factory->mailbox(config) : MailboxPlan{};
}

std::string parameters_text(std::string_view policy, const PolicyConfig& config) {
    const PolicyFactory* factory = find_factory(policy);
    return factory != nullptr ? factory->parameters(config) : std::string();
}

std::string_view policy_name(unsigned index) noexcept {
    return index < std::size(kFactories) ? kFactories[index]->name : std::string_view();
}

std::vector<std::string_view> policy_names() {
    std::vector<std::string_view> names;
    for (const PolicyFactory* factory : kFactories) names.push_back(factory->name);
    return names;
}

std::unique_ptr<Policy> make_policy(std::string_view name, const PolicyConfig& config, std::string* error) {
    const PolicyFactory* factory = find_factory(name);
    std::string reason;
    if (factory == nullptr) {
        reason = "btl_velo_flow_control is \"" + std::string(name) + "\": set it to one of";
        for (const PolicyFactory* known : kFactories) reason += " \"" + std::string(known->name) + "\"";
    } else {
        reason = objection(*factory, config);
    }
    if (error != nullptr) *error = reason;
    return reason.empty() ? factory->make(config) : nullptr;
}

}  // namespace velo::flow
