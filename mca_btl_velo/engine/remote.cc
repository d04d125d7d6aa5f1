#include "engine/remote.h"

#include <cstring>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "engine/peers/sizing.h"
#include "engine/view.h"
#include "flow/policies.h"
#include "platform/failure.h"

namespace velo::engine {
namespace {

// Asking the network costs a system call, which messages inside the node would pay for. While they come and
// it has nothing to tell, it is asked at one progress in so many.
constexpr std::uint32_t kQuietPolls = 16;
// So many polls that brought nothing make the network quiet, or end the time of messages inside the node.
constexpr std::uint32_t kQuietAfter = 1000;
// The network wakes nobody: a process that sleeps looks at it so often.
constexpr std::uint32_t kMostSleepUs = 100;
// One copy of a burst goes into the mailbox anyway: the longer the runs, the fewer headers.
constexpr wire::Framing kNetworkFraming{wire::kPayloadBytes + 1, 255, 255};
// Shorter data travels in packets: cheaper than an announcement.
constexpr std::size_t kLeastBulkBytes = 4096;
// This many messages of a burst leave at once: no less than a process sends to a neighbour before it
// computes. The next ones are collected, and leave when there are kCollectedBytes of them, if the process has
// not looked at the network before.
constexpr std::uint32_t kLeaveAtOnce = 8;

}  // namespace

Remote::Remote(const Context& context)
    : context_(context), mutex_(context.mutex), first_(context.mailbox.directory_entries()) {}

void Remote::open(DomainHost& domain_host) {
    const velo_config& config = context_.config;
    const flow::PolicyConfig flow = flow_config(config, Nodes::kOther);
    if (config.remote_peer_count == 0 && config.network != std::string_view("always")) return;
    std::string reason;
    auto policy = open_policy(config.flow_control, flow);
    fabric::NetworkConfig network{};
    network.process_name = config.process_name;
    network.peers = config.remote_peers;
    network.flow = flow;
    network.agreement = context_.mailbox.header().agreement;
    network.limited = policy->limited();
    const flow::Refusal* refusal = policy->extensions().refusal;
    network.refusal_limit = refusal != nullptr ? refusal->refusal_limit() : UINT32_MAX;
    network.threads = config.threads;
    network.outlives_peers = config.outlives_peers;
    network.patience_ms = 1000 * config.network_timeout;
    auto opened = fabric::open_network(network, *this, &reason);
    if (opened != nullptr) return use(domain_host, std::move(opened), std::move(policy));
    config.log(config.context, 5, ("processes on other nodes are out of reach: " + reason).c_str());
}

void Remote::use(DomainHost& domain_host, std::unique_ptr<fabric::Network> network,
                 std::unique_ptr<flow::Policy> policy) {
    const velo_config& config = context_.config;
    const flow::PeerIndex end = first_ + policy->config().total_peers();
    network_ = std::move(network);
    fabric::shm::Statistics& counts = context_.observer.counts;
    domain_.emplace(domain_host, Domain::Kind::kRemote, std::move(policy), config.delay_credits,
                    network_->reader(), first_, &counts.network_packets, &counts.network_high_water);
    domain_->framing = &kNetworkFraming;
    domain_->always_in_packets = UINT32_MAX;
    slots_per_peer_ = slots_for_each(config, Nodes::kOther);
    context_.idle.limit_sleep(kMostSleepUs);
    context_.idle.always(*this);
    context_.peers.add_to_address(network_->address());
    context_.peers.grow(end);
    context_.large.grow(end);
}

flow::PeerIndex Remote::expect(std::span<const std::byte> address) {
    if (network_ == nullptr)
        throw Failure(VELO_ERR_UNSUPPORTED, "this process has no network to other nodes");
    if (address.empty())
        throw Failure(VELO_ERR_UNREACHABLE, "a process on another node has no network that Velo can use");
    std::lock_guard lock(mutex_);
    Peer& peer = context_.peers.at(first_ + network_->claim(address));
    if (!peer.link) attach(peer);
    return peer.index;
}

void Remote::attach(Peer& peer) {
    flow::PolicyConfig there;
    flow::PeerIndex place;
    peer.link.open(network_->open(peer.source(), &there, &place));
    peer.ledger().open(peer, flow::initial_credit(peer.policy().name(), there, place));
    peer.name = network_->name_of(peer.source());
    context_.units.attached(peer);
}

int Remote::run(bool busy) {
    if (domain_->ledger.owes()) {
        std::lock_guard lock(mutex_);
        domain_->ledger.look();
    }
    looks_.store(looks_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    if (is_skipped(busy)) return 0;
    bool moved, completed;
    {
        std::lock_guard lock(mutex_);
        moved = network_->progress();
        completed = network_->has_completed();
    }
    int handled = std::exchange(taken_, 0);
    if (!is_quiet()) handled += context_.host.drain(*domain_);
    if (completed) handled += finish_bulk();
    quiet_ = moved || handled > 0 ? 0 : quiet_ + 1;
    return handled;
}

bool Remote::is_skipped(bool busy) {
    local_quiet_ = busy ? 0 : local_quiet_ + 1;
    const bool others = local_quiet_ < kQuietAfter && quiet_ >= kQuietAfter;
    if (others && ++skipped_ < kQuietPolls) return true;
    skipped_ = 0;
    return false;
}

std::byte* Remote::place(flow::PeerIndex from, std::span<const std::byte> header, std::uint64_t bytes) {
    rma::MessageHeader message;
    if (header.size() != sizeof message) return nullptr;
    std::memcpy(&message, header.data(), sizeof message);
    rma::Placement placement;
    if (!context_.large.begin(first_ + from, message, &placement) || placement.bytes != bytes) return nullptr;
    return placement.data;
}

const char* Remote::take(const fabric::Delivery& delivery) {
    Peer& peer = context_.peers.sender(first_ + delivery.from);
    if (!context_.host.arrived(peer, delivery)) return "a packet that does not belong to a message";
    taken_ += static_cast<int>(delivery.packets);
    *domain_->high_water = std::max<std::uint64_t>(*domain_->high_water, delivery.packets);
    return nullptr;
}

void Remote::gone(Peer& peer) {
    if (!peer.lost || context_.config.lost == nullptr) return;
    context_.config.lost(context_.config.context, network_->name_of(peer.source()));
}

int Remote::finish_bulk() {
    std::unique_lock lock(mutex_);
    const std::vector<fabric::Placed> placed = network_->placed();
    const std::vector<void*> sent = network_->sent_bulk();
    for (const fabric::Left& left : network_->left()) {
        Peer& peer = context_.peers.at(first_ + left.peer);
        peer.lost = !left.lost.empty();
        if (peer.lost) context_.config.log(context_.config.context, VELO_LOG_ONCE_A_NODE, left.lost.c_str());
        context_.departures.mark_ended(peer);
    }
    for (void* context : sent) {
        auto* message = static_cast<velo_send*>(context);
        message->done(message, VELO_OK);
    }
    lock.unlock();
    for (const fabric::Placed& arrival : placed) {
        rma::MessageHeader header;
        std::memcpy(&header, arrival.header.data(), sizeof header);
        context_.large.finish(context_.peers.sender(first_ + arrival.from), header);
    }
    return static_cast<int>(placed.size() + sent.size());
}

bool Remote::is_one_of_many(Peer& peer, std::size_t bytes) const {
    if (!peer.is_remote() || bytes > kCollectedBytes || peer.departed) return false;
    const std::uint64_t look = looks_.load(std::memory_order_relaxed);
    if (peer.burst_look != look) {
        peer.burst_look = look;
        peer.burst = 0;
    }
    return ++peer.burst > kLeaveAtOnce && peer.ledger().credits(peer) > 0;
}

bool Remote::send_bulk(Peer& peer, velo_send* message) {
    if (!peer.is_remote() || message->bytes[1] < kLeastBulkBytes) return false;
    network_->send_bulk(peer.source(), view_of(*message), message);
    return true;
}

}  // namespace velo::engine
