// Set-up: the mailbox, the policy, connections.
#include "endpoint/engine.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "platform/failure.h"

namespace velo::endpoint {
namespace {

// Slots of an automatic mailbox, shared out among the peers: 512 KiB hold the packets of a window of 64
// messages of 2 KiB from each of three peers. Large jobs get the thesis's 64 slots for each peer
// (section 7.4).
constexpr std::uint32_t kAutomaticMailboxSlots = 8192;
constexpr std::uint32_t kAutomaticSlotsLeast = 64;
constexpr std::uint32_t kAutomaticSlotsMost = 4096;

std::uint32_t resolve_slots_per_peer(const velo_config& config) {
    if (config.slots_per_peer != 0) return config.slots_per_peer;
    std::uint32_t share = kAutomaticMailboxSlots / std::max(config.node_peer_count, 1U);
    return std::max(std::clamp(share, kAutomaticSlotsLeast, kAutomaticSlotsMost), 4 * config.credit_slots);
}

flow::PolicyConfig flow_config(const velo_config& config) {
    std::uint32_t slots = resolve_slots_per_peer(config);
    if (config.credit_slots < 1 || config.credit_slots > 255) {
        throw Failure(VELO_ERR_PARAMETER, "btl_velo_credit_slots is " + std::to_string(config.credit_slots) +
                                              "; it must be 1 to 255");
    }
    std::uint64_t total = std::uint64_t{slots} * config.node_peer_count;
    if (slots < 2 * config.credit_slots || total > (1U << 24)) {
        throw Failure(VELO_ERR_PARAMETER, "btl_velo_slots_per_peer is " + std::to_string(slots) + "; with " +
                                              std::to_string(config.node_peer_count) +
                                              " peers and btl_velo_credit_slots " +
                                              std::to_string(config.credit_slots) + " it must be at least " +
                                              std::to_string(2 * config.credit_slots) +
                                              " (Eq 5.2: as many data slots as credit slots) " +
                                              "and the mailbox at most 16777216 slots; 0 chooses a size");
    }
    flow::PolicyConfig flow;
    flow.peers = config.node_peer_count;
    // A process that is alone on its node still needs a mailbox to exist.
    flow.spare_peers = config.node_peer_count == 0 ? std::max(config.spare_peers, 1U) : config.spare_peers;
    flow.data_slots = config.node_peer_count * (slots - config.credit_slots);
    flow.credit_slots = config.credit_slots;
    flow.piggyback = config.piggyback;
    return flow;
}

std::unique_ptr<flow::Policy> open_policy(const velo_config& config, const flow::PolicyConfig& flow) {
    std::string error;
    auto policy = flow::make_policy(config.flow_control, flow, &error);
    if (policy == nullptr) throw Failure(VELO_ERR_PARAMETER, error);
    return policy;
}

fabric::shm::Segment open_mailbox(const velo_config& config, const flow::PolicyConfig& flow,
                                  std::uint64_t* probe) {
    fabric::shm::Segment::Layout layout{};
    layout.owner = config.process_name;
    layout.flow = flow;
    layout.node_peers = config.node_peers;
    std::snprintf(layout.agreement.flow_control, sizeof layout.agreement.flow_control, "%s",
                  config.flow_control);
    layout.agreement.slots_per_peer = config.slots_per_peer;
    layout.agreement.credit_slots = config.credit_slots;
    layout.agreement.piggyback = config.piggyback;
    layout.agreement.eager_limit = config.eager_limit;
    layout.agreement.max_message_bytes = config.max_message_bytes;
    return fabric::shm::Segment::create(config.backing_directory, layout, probe);
}

const singlecopy::Mechanism* single_copy_mechanism(const velo_config& config) {
    std::string_view name = config.single_copy;
    if (name == "copy") return nullptr;
    if (name == "auto" || name == "cma") return &singlecopy::cma();
    throw Failure(VELO_ERR_PARAMETER, "btl_velo_single_copy_mechanism is \"" + std::string(name) +
                                          "\"; it must be auto, cma or copy");
}

// What comes one by one goes up without a copy; what is waited for is fetched by the receiver while the
// second half of it is being stored (measured: design/shared-memory.md).
constexpr wire::Framing kRateFraming{wire::kPayloadBytes + 1, 80, 16};
constexpr wire::Framing kLatencyFraming{wire::kPayloadBytes + 1, 24, 40};

}  // namespace

Engine::Engine(const velo_config& config)
    : config_(config),
      framing_{config.packet_trains ? kRateFraming : wire::kClassicFraming,
               config.packet_trains ? kLatencyFraming : wire::kClassicFraming},
      slots_per_peer_(resolve_slots_per_peer(config)),
      mutex_(config.threads),
      gate_(config.threads),
      policy_(open_policy(config, flow_config(config))),
      probe_(std::make_unique<std::uint64_t>(0)),
      mailbox_(open_mailbox(config, policy_->config(), probe_.get())),
      reader_(mailbox_.reader()),
      peers_(policy_->config().total_peers()),
      trace_(*policy_),
      stalls_(std::uint64_t{config.stall_warning_seconds} * 1'000'000'000),
      rma_(single_copy_mechanism(config), policy_->config().total_peers(), *this),
      share_cells_(mailbox_.header().shares),
      buffers_(config.max_message_bytes),
      forced_single_copy_(std::strcmp(config.single_copy, "cma") == 0) {
    const flow::PolicyConfig& flow = policy_->config();
    description_ =
        "flow_control " + std::string(policy_->name()) + ", slots_per_peer " +
        std::to_string(slots_per_peer_) + (config.slots_per_peer == 0 ? " (automatic)" : "") +
        ", credit_slots " + std::to_string(flow.credit_slots) + ", piggyback " +
        (flow.piggyback ? "on" : "off") + ", packet_trains " + (config.packet_trains ? "on" : "off") +
        ", peers " + std::to_string(flow.peers) + " + " + std::to_string(flow.spare_peers) +
        " spare, mailbox " + std::to_string(flow.mailbox_slots()) + " slots, segment " +
        std::to_string(mailbox_.bytes()) + " bytes in " + config.backing_directory + ", single copy " +
        config.single_copy + ", eager_limit " + std::to_string(config.eager_limit);
    open_trace();
}

Engine::~Engine() = default;

Peer& Engine::peer_at(flow::PeerIndex index) {
    if (peers_[index] == nullptr) peers_[index] = std::make_unique<Peer>(index);
    return *peers_[index];
}

Peer* Engine::connect(const fabric::shm::Address& address) {
    std::lock_guard lock(mutex_);
    Peer& peer = peer_at(mailbox_.claim(address.process_name));
    if (!peer.link) attach(peer, address);
    return &peer;
}

void Engine::attach(Peer& peer, const fabric::shm::Address& address) {
    if (!platform::reachable_by_pid(address.file)) {
        mailbox_.file().publish();
        awaited_.push_back(peer.index);
        housekeeping_.store(true, std::memory_order_relaxed);
    }
    fabric::shm::Segment segment = fabric::shm::Segment::attach(address);
    std::string reason = fabric::shm::difference(mailbox_.header().agreement, segment.header().agreement);
    if (!reason.empty()) throw Failure(VELO_ERR_MISMATCH, reason);

    rma_.connect(peer.index, {address.file.pid, address.probe, address.file.nonce});
    if (std::strcmp(config_.single_copy, "cma") == 0 && rma_.mechanism_for(peer.index) == nullptr) {
        throw Failure(
            VELO_ERR_PARAMETER,
            "btl_velo_single_copy_mechanism is cma, but the kernel does not let this process read the memory "
            "of process " +
                std::to_string(address.file.pid) +
                " (process_vm_readv: ptrace rights, another container or a seccomp filter); "
                "set it to auto or copy");
    }
    flow::PeerIndex here = segment.claim(config_.process_name);
    segment.introduce(here, mailbox_.address());
    policy_->open_window(peer.index, flow::initial_credit(policy_->name(), segment.flow(), here));
    peer.segment = std::move(segment);
    peer.link.emplace(peer.segment.writer(), here);
    trace_.connected(peer);
}

// The peer, connected: a sender that this process never connected to has left its address in the directory.
Peer& Engine::reachable_peer(flow::PeerIndex index) {
    Peer& peer = peer_at(index);
    if (!peer.link) {
        const fabric::shm::Address* address = mailbox_.introduced(index);
        if (address == nullptr) throw Failure(VELO_ERR_PROTOCOL, "a sender did not leave its address");
        attach(peer, fabric::shm::Address(*address));
    }
    return peer;
}

void Engine::dump(const Peer* only, int level) {
    config_.log(config_.context, level, description_.c_str());
    for (const auto& peer : peers_) {
        if (peer == nullptr || (only != nullptr && only != peer.get())) continue;
        const flow::PeerFlow& flow = policy_->peer(peer->index);
        char line[320];
        std::snprintf(line, sizeof line,
                      "peer %" PRIu32 ": credits %" PRIu32
                      ", queued %zu bytes%s; as receiver: retrieved %" PRIu32 " of threshold %" PRIu32
                      ", granted %" PRIu32 ", intended %" PRIu32 ", available %" PRIu32,
                      peer->index, policy_->credits(peer->index), peer->queue.bytes(),
                      policy_->control_waiting(peer->index) ? ", control packet waiting" : "", flow.retrieved,
                      flow.threshold, flow.current, policy_->intended(peer->index), policy_->available());
        config_.log(config_.context, level, line);
    }
}

void Engine::publish_statistics() {
    statistics_.flow = policy_->counters();
    count_stalls();
    statistics_.rma_mailbox_bytes = rma_.mailbox_bytes();
    statistics_.atomics = rma_.atomics();
    mailbox_.header().statistics = statistics_;
    mailbox_.header().statistics_final.store(1, std::memory_order_release);
}

std::vector<const fabric::shm::SegmentHeader*> Engine::node_segments() const {
    std::vector<const fabric::shm::SegmentHeader*> segments{&mailbox_.header()};
    for (const auto& peer : peers_) {
        if (peer != nullptr && peer->link) segments.push_back(&peer->segment.header());
    }
    std::sort(segments.begin(), segments.end(), [](auto* a, auto* b) { return a->owner < b->owner; });
    return segments;
}

void Engine::fail(velo_status status, const std::string& text) {
    failed_ = true;
    config_.fatal(config_.context, status, text.c_str());
}

void Engine::abort_on_violation() {
    std::string violation = policy_->violation();
    if (violation.empty() && policy_->limited() && reader_.occupancy() > reader_.capacity()) {
        violation = "I4: more packets than slots in the mailbox";
    }
    if (violation.empty()) return;
    std::fprintf(stderr, "velo: flow control invariant violated: %s\n", violation.c_str());
    std::abort();
}

}  // namespace velo::endpoint
