// Peers on other nodes: a domain of its own, whose packets a network brings, and data that goes past the
// mailbox.
#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

#include "endpoint/engine.h"
#include "endpoint/sizing.h"
#include "platform/failure.h"

namespace velo::endpoint {
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

}  // namespace

void Engine::open_remote(const flow::PolicyConfig& flow) {
    remote_first_ = mailbox_.directory_entries();
    if (config_.remote_peer_count == 0 && config_.network != std::string_view("always")) return;
    std::string reason;
    auto policy = open_policy(config_.flow_control, flow);
    fabric::NetworkConfig network{};
    network.process_name = config_.process_name;
    network.peers = config_.remote_peers;
    network.flow = flow;
    network.agreement = mailbox_.header().agreement;
    network.limited = policy->limited();
    const flow::Refusal* refusal = policy->extensions().refusal;
    network.refusal_limit = refusal != nullptr ? refusal->refusal_limit() : UINT32_MAX;
    network.threads = config_.threads;
    network.patience_ms = 1000 * config_.network_timeout;
    network_ = fabric::open_network(network, *this, &reason);
    if (network_ == nullptr) {
        config_.log(config_.context, 5, ("processes on other nodes are out of reach: " + reason).c_str());
        return;
    }
    sleep_us_ = std::min(sleep_us_, kMostSleepUs);
    remote_.emplace(*this, std::move(policy), config_.delay_credits, network_->reader(), remote_first_,
                    &statistics_.network_packets, &statistics_.network_high_water);
    remote_->framing = &kNetworkFraming;
    sends_are_followed_ = true;
    housekeeping_ = Housekeeping::kListen;
    const auto& own = network_->address();
    address_.insert(address_.end(), own.begin(), own.end());
    peers_.resize(remote_first_ + flow.total_peers());
    rma_.grow(static_cast<std::uint32_t>(peers_.size()));
}

flow::PeerIndex Engine::expect_remote(std::span<const std::byte> address) {
    if (network_ == nullptr)
        throw Failure(VELO_ERR_UNSUPPORTED, "this process has no network to other nodes");
    if (address.empty())
        throw Failure(VELO_ERR_UNREACHABLE, "a process on another node has no network that Velo can use");
    std::lock_guard lock(mutex_);
    Peer& peer = peer_at(remote_first_ + network_->claim(address));
    if (!peer.link) attach_remote(peer);
    return peer.index;
}

void Engine::attach_remote(Peer& peer) {
    flow::PolicyConfig there;
    flow::PeerIndex place;
    peer.link.open(network_->open(peer.source(), &there, &place));
    peer.link.intercept(interceptor_);
    peer.ledger().open(peer, flow::initial_credit(peer.policy().name(), there, place));
    rma_.connect_past_mailbox(peer.index);
    peer.name = network_->name_of(peer.source());
    trace_.connected(peer);
}

int Engine::progress_remote(bool busy) {
    network_looks_.store(network_looks_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    local_quiet_ = busy ? 0 : local_quiet_ + 1;
    bool others = local_quiet_ < kQuietAfter && network_quiet_ >= kQuietAfter;
    if (others && ++network_skipped_ < kQuietPolls) return 0;
    network_skipped_ = 0;
    bool moved, completed;
    {
        std::lock_guard lock(mutex_);
        moved = network_->progress();
        completed = network_->has_completed();
    }
    int handled = std::exchange(taken_, 0);
    if (remote_->reader.poll() != 0) handled += drain_other(*remote_);
    if (completed) handled += finish_bulk();
    network_quiet_ = moved || handled > 0 ? 0 : network_quiet_ + 1;
    return handled;
}

// Under the mutex.
std::byte* Engine::place(flow::PeerIndex from, std::span<const std::byte> header, std::uint64_t bytes) {
    rma::MessageHeader message;
    if (header.size() != sizeof message) return nullptr;
    std::memcpy(&message, header.data(), sizeof message);
    rma::Placement placement;
    if (!rma_.begin(remote_first_ + from, message, &placement) || placement.bytes != bytes) return nullptr;
    return placement.data;
}

int Engine::finish_bulk() {
    std::unique_lock lock(mutex_);
    const std::vector<fabric::Placed> placed = network_->placed();
    const std::vector<void*> sent = network_->sent_bulk();
    for (const flow::PeerIndex peer : network_->left()) note_end(peer_at(remote_first_ + peer));
    for (void* context : sent) {
        auto* message = static_cast<velo_send*>(context);
        message->done(message, VELO_OK);
    }
    lock.unlock();
    for (const fabric::Placed& arrival : placed) {
        rma::MessageHeader header;
        std::memcpy(&header, arrival.header.data(), sizeof header);
        deliver_rma(sender_at(remote_first_ + arrival.from), header);
    }
    return static_cast<int>(placed.size() + sent.size());
}

bool Engine::goes_past_mailbox(const Peer& peer, const velo_send& message) const {
    return network_ != nullptr && peer.index >= remote_first_ && message.bytes[1] >= kLeastBulkBytes;
}

}  // namespace velo::endpoint
