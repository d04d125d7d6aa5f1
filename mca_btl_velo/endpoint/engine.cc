// Set-up: the mailbox, the policy, connections.
#include "endpoint/engine.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "parameters/agreement.h"
#include "parameters/table.h"
#include "platform/cache.h"
#include "platform/failure.h"
#include "platform/locality.h"
#include "platform/process_identity.h"

namespace velo::endpoint {

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

namespace {

// Slots of an automatic mailbox, shared out among few peers or many, and for each at least: as much as small
// messages need, since longer ones go by reference, and for few as much as makes up for an outbox that is
// full (design/by-reference.md, measured).
struct AutomaticSlots {
    std::uint32_t few, many, least;
};
constexpr AutomaticSlots kAutomaticMailbox{8192, 4096, 16};
constexpr std::uint32_t kFewPeers = 15;
// For other nodes: a message holds its slots for the time of its journey. The thesis's 64 for each peer in a
// large job (section 7.4).
constexpr AutomaticSlots kAutomaticNetworkMailbox{16384, 16384, 64};
// For each peer at most.
constexpr std::uint32_t kAutomaticSlotsMost = 8192;
constexpr std::uint32_t kAutomaticLimicSlots = 8192;

std::uint32_t resolve_slots_per_peer(const velo_config& config, std::uint32_t peers,
                                     const AutomaticSlots& automatic) {
    if (config.slots_per_peer != 0) return config.slots_per_peer;
    std::uint32_t share = (peers <= kFewPeers ? automatic.few : automatic.many) / std::max(peers, 1U);
    return std::max(std::clamp(share, automatic.least, kAutomaticSlotsMost), 4 * config.credit_slots);
}

// What is stored into comes back when neither core's own cache holds it any more.
std::uint64_t least_in_turn() {
    constexpr std::uint64_t kLeast = 1U << 20, kUnknown = 2U << 20, kMost = 8U << 20;
    const std::uint64_t cache = platform::second_level_cache_bytes();
    return cache == 0 ? kUnknown : std::clamp(2 * cache, kLeast, kMost);
}

// Room for a window of long messages, too.
std::uint64_t resolve_deposit_bytes(const velo_config& config) {
    constexpr std::uint64_t kLeast = 2U << 20;
    if (config.oversubscribed) return 0;  // there are none
    return config.deposit_bytes != 0 ? config.deposit_bytes : std::max(least_in_turn(), kLeast);
}

// The ring of the LiMIC-like path is shared by all local senders: room for a few messages of each.
std::uint32_t resolve_limic_slots(const velo_config& config) {
    return config.limic_slots == 0 ? kAutomaticLimicSlots : config.limic_slots;
}

// A packet names its sender by 16 bits.
void require_names_for(const velo_config& config, std::uint32_t peers, bool here) {
    constexpr std::uint64_t kMost = wire::Header::kMaxSource;
    if (std::uint64_t{peers} + config.spare_peers <= kMost) return;
    throw Failure(VELO_ERR_PARAMETER,
                  std::to_string(peers) + " peers on " + (here ? "this node" : "other nodes") +
                      " and btl_velo_spare_peers " + std::to_string(config.spare_peers) +
                      " are more than the " + std::to_string(kMost) +
                      " that a mailbox tells apart: leave them to another transport, " +
                      (here ? "--mca pml ob1 --mca btl ^velo"
                            : "--mca pml ob1 --mca btl velo,tcp,self --mca btl_velo_network none"));
}

// `doorbell`: the fabric has one. Shared memory does.
flow::PolicyConfig flow_config(const velo_config& config, std::uint32_t peers, bool doorbell) {
    require_names_for(config, peers, doorbell);
    std::uint32_t slots =
        resolve_slots_per_peer(config, peers, doorbell ? kAutomaticMailbox : kAutomaticNetworkMailbox);
    std::uint64_t total = std::uint64_t{slots} * peers;
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
    flow.lazy_doorbell = doorbell;
    return flow;
}

// Of reference_shift_: never, where all of them may go in packets; where they would take more than half;
// always.
unsigned reference_shift(const velo_config& config) {
    const std::string_view choice = config.by_reference;
    return choice == "never" ? 0 : choice == "always" ? 31 : 1;
}

fabric::shm::Segment open_mailbox(const velo_config& config, const flow::PolicyConfig& flow,
                                  std::uint64_t* probe, std::int64_t xpmem_segment) {
    fabric::shm::Segment::Layout layout{};
    layout.owner = config.process_name;
    layout.flow = flow;
    layout.node_peers = config.node_peers;
    layout.limic_peers = config.limic_peers;
    layout.limic_peer_count = config.limic_peer_count;
    layout.limic_slots = config.limic_peer_count == 0 ? 0 : resolve_limic_slots(config);
    layout.agreement = parameters::agreement_of(config);
    layout.xpmem_segment = xpmem_segment;
    layout.outbox_bytes = config.by_reference == std::string_view("never") ? 0 : config.outbox;
    layout.deposit_bytes = layout.outbox_bytes == 0 ? 0 : resolve_deposit_bytes(config);
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

// The longest sleep, microseconds.
std::uint32_t sleep_of(const velo_config& config) {
    constexpr int kOversubscribed = 300;
    if (config.threads) return 0;
    const int automatic = config.oversubscribed ? kOversubscribed : 0;
    return static_cast<std::uint32_t>(config.idle_sleep < 0 ? automatic : config.idle_sleep);
}

flow::PolicyConfig velo_flow(const velo_config& config) {
    return flow_config(config, config.node_peer_count, true);
}

}  // namespace

// Objections to the parameters come before anything is shared.
Engine::Engine(const velo_config& config)
    : Engine(config, open_policy(config.flow_control, velo_flow(config))) {}

Engine::Engine(const velo_config& config, std::unique_ptr<flow::Policy> policy)
    : config_(config),
      texts_(parameters::keep_texts(config_)),
      slots_per_peer_(resolve_slots_per_peer(config, config.node_peer_count, kAutomaticMailbox)),
      mutex_(config.threads),
      gate_(config.threads),
      sleep_us_(sleep_of(config)),
      probe_(std::make_unique<std::uint64_t>(0)),
      mechanisms_(config.single_copy_mechanism),
      mailbox_(open_mailbox(config, policy->config(), probe_.get(), mechanisms_.xpmem_segment())),
      in_turn_(mailbox_.outbox_plan().in_turn_bytes(), least_in_turn()),
      outbox_(mailbox_.outbox_plan(), &in_turn_),
      getting_(kDualCopyExpected),
      most_enclosed_(std::min<std::size_t>(config.max_message_bytes, outbox_.plan().size(1).room())),
      reference_shift_(reference_shift(config)),
      velo_(*this, std::move(policy), config.delay_credits, mailbox_.reader(), 0, &statistics_.data_packets,
            &statistics_.mailbox_high_water),
      peers_(mailbox_.directory_entries()),
      trace_(*velo_.policy),
      stalls_(std::uint64_t{config.stall_warning} * 1'000'000'000),
      rma_(mechanisms_, mailbox_.directory_entries(), *this),
      share_cells_(mailbox_.header().shares),
      deposits_(mutex_, mailbox_, in_turn_, outbox_, measures_ways(), config_),
      buffers_(config.max_message_bytes),
      first_node_peer_(config.node_peer_count > 0 ? config.node_peers[0] : config.process_name),
      single_copy_only_(config.oversubscribed || mechanisms_.forced()) {
    references_.settles(kInTurn, in_turn_.lap());
    references_.settles(kInPackets, std::min(velo_.reader.capacity() * wire::kPacketBytes, kMostSettled));
    mailbox_.header().may_doze = sleep_us_ > 0;
    const flow::PolicyConfig& flow = velo_.policy->config();
    if (velo_.ledger.on_demand()) {
        doorbell_ = mailbox_.doorbell();
        housekeeping_ = Housekeeping::kListen;
    }
    if (config.limic_peer_count > 0) {
        flow::PolicyConfig local{};
        local.peers = config.limic_peer_count;
        local.data_slots = mailbox_.limic_slots();
        limic_.emplace(*this, flow::make_policy("none", local, nullptr), false, mailbox_.limic_reader(),
                       flow.total_peers(), &statistics_.limic_packets, &statistics_.limic_high_water);
        sends_are_followed_ = true;
    }
    const fabric::shm::Address& own = mailbox_.address();
    address_.resize(sizeof own);
    std::memcpy(address_.data(), &own, sizeof own);
    open_remote(flow_config(config, config.remote_peer_count, false));
    open_nowhere();
    if (remote_) {
        remote_slots_per_peer_ =
            resolve_slots_per_peer(config, config.remote_peer_count, kAutomaticNetworkMailbox);
        if (reference_shift_ == 1) remote_->always_in_packets = remote_slots_per_peer_ / 2;
    }
    description_ = "flow_control " + std::string(velo_.policy->name()) + ", slots_per_peer " +
                   std::to_string(slots_per_peer_) + (config.slots_per_peer == 0 ? " (automatic)" : "") +
                   ", delay_credits " + (velo_.ledger.delays() ? "true" : "false") + ", peers " +
                   std::to_string(flow.peers) + " + " + std::to_string(flow.spare_peers) +
                   " spare, mailbox " + std::to_string(velo_.reader.capacity()) + " slots, limic " +
                   (limic_ ? std::to_string(config.limic_peer_count) + " peers with " +
                                 std::to_string(mailbox_.limic_slots()) + " slots"
                           : std::string("off")) +
                   ", segment " + std::to_string(mailbox_.bytes()) + " bytes in " + config.backing_directory +
                   ", single copy " + mechanisms_.description() + ", eager_limit " +
                   (config.eager_limit == 0 ? "automatic" : std::to_string(config.eager_limit));
    if (config.describe_locality) description_ += ", " + platform::describe_locality();
    if (remote_) {
        const flow::PolicyConfig& there = remote_->policy->config();
        description_ += ", other nodes: " + std::to_string(there.peers) + " peers, mailbox " +
                        std::to_string(remote_->reader.capacity()) + " slots, through UCX";
    }
    description_ += "; set: " + parameters::values_text(config);
    open_trace();
}

Engine::~Engine() {
    if (companion_ != nullptr) {
        if (companion_->config_.idle_sleep == 0) companion_->sleep_us_ = 0;
        companion_->companion_ = nullptr;
    }
    if (interceptor_.active())
        config_.log(config_.context, 1, ("intercepted: " + interceptor_.text()).c_str());
}

void Engine::sleep_with(Engine& other) {
    sleep_us_ = config_.threads ? 0 : other.sleep_us_;
    other.sleep_us_ = sleep_us_;
    mailbox_.header().may_doze = sleep_us_ > 0;
    if (sleep_us_ == 0) return;
    companion_ = &other;
    other.companion_ = this;
}

void Engine::open_nowhere() {
    flow::PolicyConfig one{};
    one.peers = one.data_slots = 1;
    const auto index = static_cast<flow::PeerIndex>(peers_.size());
    nowhere_.emplace(*this, flow::make_policy("none", one, nullptr), false, mailbox_.reader(), index,
                     &lost_packets_, &lost_packets_);
    nobody_ = std::make_unique<Peer>(index, *nowhere_);
    nobody_->departed = true;
}

Peer& Engine::add_peer(flow::PeerIndex index) {
    bool remote = index >= remote_first_;
    bool local = limic_ && index >= limic_->first_peer;
    Domain& domain = remote ? *remote_ : local ? *limic_ : velo_;
    auto made = std::make_unique<Peer>(index, domain);
    Peer& peer = *made;
    if (!remote)
        if (const auto address = mailbox_.introduced(index)) introduce_to_rma(peer, *address);
    if (!remote) met_.push_back(&peer);
    peers_.add(std::move(made));
    return peer;
}

flow::PeerIndex Engine::expect(const fabric::shm::Address& address) {
    std::unique_lock lock(mutex_);
    const flow::PeerIndex index = place_for(address.process_name, lock);
    const Peer* known = peers_.find(index);
    if (known != nullptr && (known->link || is_same_departed(*known, address))) return index;
    if (may_wait(index, address) && (known == nullptr || !known->departed)) {
        mailbox_.introduce(index, address);
        if (known != nullptr) introduce_to_rma(*known, address);
    } else {
        attach_expected(peer_at(index), address);
    }
    return index;
}

// Whoever has no place for this process is out of reach, and keeps the one here until it ends: it may yet
// find one.
void Engine::attach_expected(Peer& peer, const fabric::shm::Address& address) {
    try {
        attach(peer, address);
    } catch (const Failure&) {
        place_patience_ = {};
        if (is_stranger(peer)) mailbox_.introduce(peer.index, address);
        throw;
    }
}

bool Engine::is_same_departed(const Peer& peer, const fabric::shm::Address& address) {
    return peer.departed && peer.segment.address().file.nonce == address.file.nonce;
}

Peer* Engine::peer(flow::PeerIndex index) {
    std::lock_guard lock(mutex_);
    return &peer_at(index);
}

// Under a policy whose windows open with the first packet, so does the connection: a peer that is never
// spoken to is not mapped, and is no more than its entry in the directory. What can only fail now, fails now;
// the report needs the counters of all.
bool Engine::may_wait(flow::PeerIndex index, const fabric::shm::Address& address) const {
    const bool by_velo = !limic_ || index < limic_->first_peer;
    return by_velo && velo_.ledger.on_demand() && !reports() && !mechanisms_.forced() &&
           address.magic == fabric::shm::Address::kMagic &&
           address.agreement == mailbox_.address().agreement && platform::openable_by_pid(address.file);
}

void Engine::introduce_to_rma(const Peer& peer, const fabric::shm::Address& address) {
    rma_.connect(peer.index, {address.file.pid, address.probe, address.file.nonce, address.xpmem_segment});
}

// Where this process cannot look into the other, the other cannot look into this one either, most of the
// time: both give their mailboxes names.
fabric::shm::Segment Engine::open_segment(const Peer& peer, const fabric::shm::Address& address) {
    // Of many peers most are spoken to late or never, and all pages of all segments are many.
    const bool at_once = config_.node_peer_count <= kFewPeers;
    if (platform::openable_by_pid(address.file)) return fabric::shm::Segment::attach(address, at_once);
    mailbox_.file().publish();
    awaited_.push_back(peer.index);
    want_housekeeping();
    try {
        return fabric::shm::Segment::attach(address, at_once);
    } catch (const Failure&) {
        std::erase(awaited_, peer.index);
        withdraw_name();
        throw;
    }
}

void Engine::attach(Peer& peer, const fabric::shm::Address& address) {
    fabric::shm::Segment segment = open_segment(peer, address);
    std::string reason = parameters::difference(mailbox_.header().agreement, segment.header().agreement);
    if (!reason.empty()) throw Failure(VELO_ERR_MISMATCH, reason);

    introduce_to_rma(peer, address);
    if (mechanisms_.forced()) rma_.memory_of(peer.index);
    flow::PeerIndex here = segment.claim(config_.process_name, static_cast<int>(place_patience_.count()));
    if ((here >= segment.flow().total_peers()) != (&peer.domain != &velo_))
        throw Failure(VELO_ERR_MISMATCH,
                      "btl_velo_limic or btl_velo_ranks_per_node differ between processes");
    segment.introduce(here, mailbox_.address());
    if (segment.outbox_plan().bytes() > 0)
        segment.will_read(here);
    else if (segment.header().outbox_bytes > 0 && !std::exchange(outboxes_are_missing_, true))
        log_missing_outbox(segment);
    peer.segment = std::move(segment);
    peer.name = address.process_name;
    peer.left = peer.ending = peer.departed = false;
    peer.dozes = peer.segment.header().may_doze != 0;
    if (&peer.domain == &velo_) {
        peer.ledger().open(peer, flow::initial_credit(peer.policy().name(), peer.segment.flow(), here));
        fabric::shm::ShmLink& link = peer.link.open(peer.segment.writer(), here);
        if (peer.domain.refusal != nullptr)
            link.refuse_beyond({peer.domain.refusal->refusal_limit(), &peer.segment.retrieved(here)});
        if (doorbell_) link.use(peer.segment.doorbell());
    } else {
        peer.link.open(peer.segment.limic_writer(), here - peer.segment.flow().total_peers());
    }
    peer.link.intercept(interceptor_);
    if (config_.distance != std::string_view("auto"))
        peer.distance.fix(config_.distance == std::string_view("far"));
    if (refers() && peer.segment.bytes() > 0)
        peer.refer_from = measures_ways() ? std::uint32_t{kLeastReferred}
                                          : static_cast<std::uint32_t>(config_.reference_bytes);
    const bool plain = peer.link.is_direct() && peer.domain.limited && peer.ledger().delays() &&
                       !config_.threads && !sends_are_followed_ && !peer.dozes && config_.packet_trains;
    peer.plain.store(plain, std::memory_order_relaxed);
    log_connection(peer, address);
    trace_.connected(peer);
}

void Engine::log_missing_outbox(const fabric::shm::Segment& segment) const {
    const std::string line = "no address space for the outbox of process " +
                             platform::process_text(segment.header().owner) + ", " +
                             std::to_string(segment.header().outbox_bytes) +
                             " bytes: messages of several packets come in packets. Check ulimit -v.";
    config_.log(config_.context, 5, line.c_str());
}

void Engine::log_connection(const Peer& peer, const fabric::shm::Address& address) const {
    const std::string line = "connected to process " + platform::process_text(address.process_name) +
                             ": NUMA node " + std::to_string(peer.segment.header().numa_node) + ", ours " +
                             std::to_string(mailbox_.header().numa_node) + "; " +
                             (&peer.domain == &velo_ ? "VELO packets" : "LiMIC-like path");
    config_.log(config_.context, 20, line.c_str());
}

// The peer, connected: a sender that this process never connected to has left its address in the directory.
Peer& Engine::reachable_peer(flow::PeerIndex index) {
    Peer& peer = peer_at(index);
    if (!peer.link && index >= remote_first_) attach_remote(peer);
    if (!peer.link) {
        const auto address = mailbox_.introduced(index);
        if (!address) throw Failure(VELO_ERR_PROTOCOL, "a sender did not leave its address");
        attach(peer, *address);
    }
    return peer;
}

bool Engine::has_left(Peer& peer) {
    if (peer.link || peer.left || peer.index >= remote_first_) return peer.left;
    const auto address = mailbox_.introduced(peer.index);
    peer.left = address && platform::closed_by_owner(address->file);
    return peer.left;
}

// A process may have ended by the time that it is answered for the first time, or end while its mailbox is
// opened for that: its question came with the last of its messages, and nobody waits for the answer.
bool Engine::may_be_answered(Peer& peer) {
    if (peer.link) return true;
    if (has_left(peer)) return false;
    try {
        reachable_peer(peer.index);
    } catch (const Failure&) {
        if (!has_left(peer)) throw;
        return false;
    }
    return true;
}

void Engine::reach(Peer& peer) {
    std::lock_guard lock(mutex_);
    if (!peer.departed) (void)may_be_answered(peer);
}

void Engine::dump(const Peer* only, int level) {
    config_.log(config_.context, level, description_.c_str());
    peers_.for_each([&](const Peer& peer) {
        if (only != nullptr && only != &peer) return;
        const flow::PeerFlow& flow = peer.counts();
        char line[320];
        std::snprintf(
            line, sizeof line,
            "peer %" PRIu32 ": credits %" PRIu32 ", queued %zu bytes%s; as receiver: retrieved %" PRIu32
            " of threshold %" PRIu32 ", granted %" PRIu32 ", intended %" PRIu32 ", available %" PRIu32,
            peer.index, peer.ledger().credits(peer), peer.queue.bytes(),
            peer.ledger().control_waiting(peer) ? ", control packet waiting" : "", flow.retrieved,
            flow.threshold, flow.current, peer.policy().intended(peer.source()), peer.policy().available());
        config_.log(config_.context, level, line);
    });
}

void Engine::publish_statistics() {
    statistics_.flow = velo_.policy->counters();
    if (remote_) statistics_.flow += remote_->policy->counters();
    count_stalls();
    statistics_.rma_mailbox_bytes = rma_.mailbox_bytes();
    statistics_.atomics = rma_.atomics();
    statistics_.mailbox_bytes = std::uint64_t{mailbox_.header().capacity} * wire::kPacketBytes;
    statistics_.segment_bytes = mailbox_.bytes();
    statistics_.private_bytes = private_bytes();
    statistics_.peers_met = peers_.met();
    mailbox_.header().statistics = statistics_;
    mailbox_.header().statistics_final.store(1, std::memory_order_release);
}

std::size_t Engine::unmet_peer_bytes() const {
    return sizeof(fabric::shm::Directory::Entry) + kExpectedPeerBytes + velo_.policy->traits().bytes_per_peer;
}

std::size_t Engine::private_bytes() const {
    std::size_t flows = velo_.policy->config().total_peers() * velo_.policy->traits().bytes_per_peer;
    if (remote_) {
        const flow::PolicyConfig& there = remote_->policy->config();
        flows += there.total_peers() * remote_->policy->traits().bytes_per_peer +
                 remote_->policy->traits().bytes_shared +
                 std::size_t{remote_->reader.capacity()} * wire::kPacketBytes;
    }
    return sizeof(Engine) + peers_.size() * kExpectedPeerBytes +
           peers_.met() * (sizeof(Peer) + rma::Rma::kBytesPerPeer) + flows +
           velo_.policy->traits().bytes_shared + buffers_.bytes();
}

std::vector<const fabric::shm::SegmentHeader*> Engine::node_segments() const {
    std::vector<const fabric::shm::SegmentHeader*> segments{&mailbox_.header()};
    peers_.for_each([&](const Peer& peer) {
        if (peer.segment.bytes() > 0) segments.push_back(&peer.segment.header());
    });
    for (const fabric::shm::Segment& segment : segments_of_departed_) segments.push_back(&segment.header());
    std::sort(segments.begin(), segments.end(), [](auto* a, auto* b) { return a->owner < b->owner; });
    return segments;
}

void Engine::fail(velo_status status, const char* text) {
    failed_ = true;
    config_.fatal(config_.context, status, text);
}

void Engine::refuse(const char* what, const wire::Header& header) {
    throw Failure(VELO_ERR_PROTOCOL, what + (": " + wire::to_string(header)));
}

void Engine::abort_on_violation() {
    std::string violation = velo_.policy->violation();
    // With several threads the one in the gate is moving the read position.
    bool bounded = !config_.threads && (velo_.policy->limited() || velo_.refusal != nullptr);
    if (violation.empty() && bounded && velo_.reader.occupancy() > velo_.reader.capacity()) {
        violation = "I4: more packets than slots in the mailbox";
    }
    if (violation.empty()) violation = outbox_.violation();
    if (violation.empty()) violation = deposits_.violation();
    if (violation.empty() && remote_) violation = remote_->policy->violation();
    if (violation.empty()) return;
    std::fprintf(stderr, "velo: flow control invariant violated: %s\n", violation.c_str());
    std::abort();
}

}  // namespace velo::endpoint
