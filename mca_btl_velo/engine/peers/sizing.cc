#include "engine/peers/sizing.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "flow/policies.h"
#include "parameters/agreement.h"
#include "platform/cache.h"
#include "platform/failure.h"

namespace velo::engine {
namespace {

// Slots of an automatic mailbox, shared out among few peers or many, and for each at least: as much as small
// messages need, since longer ones go by reference, and for few as much as makes up for an outbox that is
// full (design/by-reference.md, measured).
struct AutomaticSlots {
    std::uint32_t few, many, least;
};
constexpr AutomaticSlots kAutomaticMailbox{8192, 4096, 16};
// For other nodes: a message holds its slots for the time of its journey. The thesis's 64 for each peer in a
// large job (section 7.4).
constexpr AutomaticSlots kAutomaticNetworkMailbox{16384, 16384, 64};
// For each peer at most.
constexpr std::uint32_t kAutomaticSlotsMost = 8192;

std::uint32_t peers_on(const velo_config& config, Nodes nodes) {
    return nodes == Nodes::kOwn ? config.node_peer_count : config.remote_peer_count;
}

// Room for a window of long messages, too.
std::uint64_t staging_bytes(const velo_config& config) {
    constexpr std::uint64_t kLeast = 2U << 20;
    return shares_processors(config) ? 0 : std::max(least_rotating_bytes(), kLeast);
}

// The ring of the LiMIC-like path is shared by all local senders: room for a few messages of each.
std::uint32_t limic_slots(const velo_config& config) {
    constexpr std::uint64_t kLeast = 64, kMost = 8192;
    if (config.limic_peer_count == 0) return 0;
    const std::uint64_t asked = std::uint64_t{config.limic_peer_count} * config.slots_per_peer;
    return static_cast<std::uint32_t>(asked == 0 ? kMost : std::clamp(asked, kLeast, kMost));
}

// A packet names its sender by 16 bits.
void require_names_for(const velo_config& config, std::uint32_t peers, Nodes nodes) {
    const bool here = nodes == Nodes::kOwn;
    constexpr std::uint64_t kMost = wire::Header::kMaxSource;
    if (std::uint64_t{peers} + config.spare_peers <= kMost) return;
    throw Failure(VELO_ERR_PARAMETER,
                  std::to_string(peers) + " peers on " + (here ? "this node" : "other nodes") +
                      " and btl_velo_spare_peers " + std::to_string(config.spare_peers) +
                      " are more than the " + std::to_string(kMost) +
                      " senders that a mailbox can have: use another transport, " +
                      (here ? "--mca pml ob1 --mca btl ^velo"
                            : "--mca pml ob1 --mca btl velo,tcp,self --mca btl_velo_network none"));
}

}  // namespace

std::uint32_t slots_for_each(const velo_config& config, Nodes nodes) {
    if (config.slots_per_peer != 0) return config.slots_per_peer;
    const AutomaticSlots& automatic = nodes == Nodes::kOwn ? kAutomaticMailbox : kAutomaticNetworkMailbox;
    const std::uint32_t peers = peers_on(config, nodes);
    const std::uint32_t share = (peers <= kFewPeers ? automatic.few : automatic.many) / std::max(peers, 1U);
    return std::max(std::clamp(share, automatic.least, kAutomaticSlotsMost), 4 * config.credit_slots);
}

// What is stored into comes back when neither core's own cache holds it any more.
std::uint64_t least_rotating_bytes() {
    constexpr std::uint64_t kLeast = 1U << 20, kUnknown = 2U << 20, kMost = 8U << 20;
    const std::uint64_t cache = platform::second_level_cache_bytes();
    return cache == 0 ? kUnknown : std::clamp(2 * cache, kLeast, kMost);
}

std::uint32_t longest_sleep(const velo_config& config) {
    // What one thread completes for another wakes nobody.
    constexpr std::uint32_t kOfEach = 40, kLeast = 300, kMost = 10'000, kWithThreads = 100;
    if (config.idle_sleep >= 0) return static_cast<std::uint32_t>(config.idle_sleep);
    if (config.threads) return kWithThreads;
    if (!shares_processors(config)) return 0;
    return std::clamp(kOfEach * std::min(config.processes_per_processor, kMost), kLeast, kMost);
}

flow::PolicyConfig flow_config(const velo_config& config, Nodes nodes) {
    const std::uint32_t peers = peers_on(config, nodes), slots = slots_for_each(config, nodes);
    require_names_for(config, peers, nodes);
    const std::uint64_t total = std::uint64_t{slots} * peers;
    if (slots < 2 * config.credit_slots || total > (1U << 24)) {
        throw Failure(VELO_ERR_PARAMETER, "btl_velo_slots_per_peer is " + std::to_string(slots) + "; with " +
                                              std::to_string(peers) + " peers and btl_velo_credit_slots " +
                                              std::to_string(config.credit_slots) + " it must be at least " +
                                              std::to_string(2 * config.credit_slots) +
                                              " (Eq 5.2: as many data slots as credit slots) " +
                                              "and the mailbox at most 16777216 slots; 0 chooses a size");
    }
    flow::PolicyConfig flow;
    flow.peers = peers;
    // A process that is alone on its node still needs a mailbox to exist.
    flow.spare_peers = peers == 0 ? std::max(config.spare_peers, 1U) : config.spare_peers;
    flow.data_slots = peers * (slots - config.credit_slots);
#define VELO_POLICY_PARAMETER(type, name, ...) flow.name = config.name;
#include "types/parameters.inc"
    flow.lazy_ahead = flow::useful_windows_ahead(config.lazy_ahead, config.lazy_peers);
    flow.lazy_doorbell = nodes == Nodes::kOwn;  // shared memory has one
    return flow;
}

std::unique_ptr<flow::Policy> open_policy(const char* name, const flow::PolicyConfig& flow) {
    std::string error;
    auto policy = flow::make_policy(name, flow, &error);
    if (policy == nullptr) throw Failure(VELO_ERR_PARAMETER, error);
    constexpr std::uint32_t kMost = fabric::shm::Segment::kMostSlots;
    std::uint64_t slots = flow::mailbox_plan(name, flow).total();
    if (slots > kMost)
        throw Failure(VELO_ERR_PARAMETER,
                      "flow control \"" + std::string(name) + "\" would need a mailbox of " +
                          std::to_string(slots) + " slots, more than " + std::to_string(kMost) +
                          ": lower btl_velo_preposted_buffers, btl_velo_slots_per_peer or "
                          "btl_velo_spare_peers");
    return policy;
}

fabric::shm::Segment open_mailbox(const velo_config& config, const flow::PolicyConfig& flow,
                                  std::uint64_t* probe, std::int64_t xpmem_segment) {
    fabric::shm::Segment::Layout layout{};
    layout.owner = config.process_name;
    layout.flow = flow;
    layout.node_peers = config.node_peers;
    layout.limic_peers = config.limic_peers;
    layout.limic_peer_count = config.limic_peer_count;
    layout.limic_slots = limic_slots(config);
    layout.agreement = parameters::agreement_of(config);
    layout.xpmem_segment = xpmem_segment;
    layout.outbox_bytes = config.by_reference == std::string_view("never") ? 0 : config.outbox;
    layout.deposit_bytes = layout.outbox_bytes == 0 ? 0 : staging_bytes(config);
    try {
        return fabric::shm::Segment::create(config.backing_directory, layout, probe);
    } catch (const Failure& failure) {
        if (layout.outbox_bytes == 0) throw;
        const std::string line =
            "no outbox, messages of several packets go in packets: " + std::string(failure.what());
        config.log(config.context, 5, line.c_str());
    }
    layout.outbox_bytes = layout.deposit_bytes = 0;
    return fabric::shm::Segment::create(config.backing_directory, layout, probe);
}

}  // namespace velo::engine
