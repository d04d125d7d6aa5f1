// What has not left: the queue of a peer, for want of credits or because a burst for another node leaves
// together, and what the network holds.
#include <utility>

#include "endpoint/engine.h"

namespace velo::endpoint {
namespace {

// To another node, where each message costs its sender a system call. This many of a burst leave at once: no
// less than a process sends to a neighbour before it computes. The next ones are collected, and leave when
// there are that many bytes of them, if the process has not looked at the network before.
constexpr std::uint32_t kLeaveAtOnce = 8;
constexpr std::size_t kCollectedBytes = std::size_t{32} * 1024;

// What is sent meanwhile leaves together.
class Series {
 public:
    Series(fabric::Network* network, flow::PeerIndex peer) : network_(network), peer_(peer) {
        if (network_ != nullptr) network_->begin_series(peer_);
    }
    ~Series() {
        if (network_ != nullptr) network_->end_series(peer_);
    }
    Series(const Series&) = delete;
    Series& operator=(const Series&) = delete;

 private:
    fabric::Network* network_;
    flow::PeerIndex peer_;
};

}  // namespace

void Engine::enqueue(Peer& peer, velo_send* send) {
    const bool first = peer.queue.empty();
    peer.queue.push(send);
    if (first) begin_stall(peer);
    if (first) want_credit(peer);
    // No credit will come to wake this peer.
    if (!peer.policy().limited()) look_again(peer);
}

// On each progress.
void Engine::look_again(Peer& peer) {
    if (peer.stalled) return;
    peer.stalled = true;
    stalled_.push_back(&peer);
    want_housekeeping();
}

// Whether a message is one of many since this process looked at the network, and credits are not what it
// would wait for.
bool Engine::is_one_of_many(Peer& peer, std::size_t bytes) const {
    if (peer.index < remote_first_ || bytes > kCollectedBytes || peer.departed || network_ == nullptr)
        return false;
    const std::uint64_t look = network_looks_.load(std::memory_order_relaxed);
    if (peer.burst_look != look) {
        peer.burst_look = look;
        peer.burst = 0;
    }
    return ++peer.burst > kLeaveAtOnce && peer.ledger().credits(peer) > 0;
}

// Whether a message may leave at a look at the network only.
bool Engine::needs_looks(Peer& peer, std::size_t bytes) const {
    return is_one_of_many(peer, bytes) || (peer.index >= remote_first_ && bytes > kCollectedBytes) ||
           peer.link.holds_some();
}

// Tells those whose messages have left the network too: they might compute meanwhile, and what it holds, as
// until the connection is made, leaves at a look only.
void Engine::report_left(Peer& peer) {
    if (peer.leaving.empty()) return;
    if (peer.link.holds_some()) {
        begin_stall(peer);
        look_again(peer);
        return;
    }
    for (SendQueue left = std::exchange(peer.leaving, SendQueue()); !left.empty();) {
        velo_send* const send = left.front();
        left.pop();
        report_sent(send);
    }
    if (peer.queue.empty()) end_stall(peer);
}

void Engine::collect(Peer& peer, velo_send* send) {
    peer.collects = true;
    peer.queue.push(send);
    if (peer.queue.bytes() >= kCollectedBytes && !flush(peer)) return;
    look_again(peer);
}

// True: something is left. Credits will wake it; where none are counted it has to be tried again.
bool Engine::flush(Peer& peer) {
    const bool left = peer.ledger().flush(peer);
    if (left && peer.policy().limited()) want_credit(peer);
    return left;
}

// The queue has become empty.
void Engine::emptied(Peer& peer) {
    peer.collects = false;
    if (peer.leaving.empty()) end_stall(peer);
}

// True: something is left.
bool Engine::send_queued(Peer& peer) {
    if (peer.queue.empty()) return false;
    bool left;
    {
        const Series series(peer.index >= remote_first_ ? network_.get() : nullptr, peer.source());
        left = push_queued(peer);
    }
    report_left(peer);
    return left;
}

bool Engine::push_queued(Peer& peer) {
    const bool marks = peer.ledger().marks_backlog() && !peer.collects;
    const wire::PacketKind kind = marks ? wire::PacketKind::kBackloggedData : wire::PacketKind::kData;
    while (!peer.queue.empty()) {
        if (!peer.collects && refer_several(peer, kind)) continue;
        velo_send* send = peer.queue.front();
        std::size_t before = send->sent;
        bool complete = push(peer, *send, kind);
        peer.queue.sent(send->sent - before);
        peer.stall.moved |= send->sent != before;
        if (!complete) {
            peer.collects = false;
            begin_stall(peer);
            return true;
        }
        peer.queue.pop();
        const bool may_be_held = peer.index >= remote_first_ && send->collectable;
        if (may_be_held) peer.leaving.push(send);
        if (peer.queue.empty()) emptied(peer);
        if (!may_be_held) report_sent(send);
    }
    return false;
}

// A message that has waited is on its way.
void Engine::report_sent(velo_send* send) {
    if (send->flags & wire::kInternal) {
        send->done(send, VELO_OK);
    } else {
        send->status = VELO_OK;
        completed_.push(send);
        want_housekeeping();
    }
}

}  // namespace velo::endpoint
