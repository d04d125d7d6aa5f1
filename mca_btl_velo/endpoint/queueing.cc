// What has not left: the queue of a peer, for want of credits or because a burst for another node leaves
// together, and what the network holds.
#include <utility>

#include "endpoint/engine.h"

namespace velo::endpoint {

void Engine::enqueue(Peer& peer, velo_send* send) {
    const bool first = peer.queue.empty();
    peer.queue.push(send);
    if (first) observer_.stalled(peer);
    if (first) want_credit(peer);
    // No credit will come to wake this peer.
    if (!peer.policy().limited()) look_again(peer);
}

// Something waits for this peer, and it has no credit.
void Engine::want_credit(Peer& peer) {
    peer.ledger().queued(peer);
    if (peer.ledger().contact_pending()) idle_.want();
}

// On each progress.
void Engine::look_again(Peer& peer) {
    if (peer.stalled) return;
    peer.stalled = true;
    stalled_.push_back(&peer);
    idle_.want();
}

// Whether a message may leave at a look at the network only.
bool Engine::needs_looks(Peer& peer, std::size_t bytes) const {
    return remote_.is_one_of_many(peer, bytes) || (peer.is_remote() && bytes > Remote::kCollectedBytes) ||
           peer.link.holds_some();
}

// Tells those whose messages have left the network too: they might compute meanwhile, and what it holds, as
// until the connection is made, leaves at a look only.
void Engine::report_left(Peer& peer) {
    if (peer.leaving.empty()) return;
    if (peer.link.holds_some()) {
        observer_.stalled(peer);
        look_again(peer);
        return;
    }
    for (SendQueue left = std::exchange(peer.leaving, SendQueue()); !left.empty();) {
        velo_send* const send = left.front();
        left.pop();
        completions_.add(send);
    }
    if (peer.queue.empty()) observer_.resumed(peer);
}

void Engine::collect(Peer& peer, velo_send* send) {
    peer.collects = true;
    peer.queue.push(send);
    if (peer.queue.bytes() >= Remote::kCollectedBytes && !flush(peer)) return;
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
    if (peer.leaving.empty()) observer_.resumed(peer);
}

// True: something is left.
bool Engine::send_queued(Peer& peer) {
    if (peer.queue.empty()) return false;
    bool left;
    {
        const Remote::Series series(remote_, peer);
        left = push_queued(peer);
    }
    report_left(peer);
    return left;
}

bool Engine::push_queued(Peer& peer) {
    const bool marks = peer.ledger().marks_backlog() && !peer.collects;
    const wire::PacketKind kind = marks ? wire::PacketKind::kBackloggedData : wire::PacketKind::kData;
    while (!peer.queue.empty()) {
        velo_send* send = peer.queue.front();
        std::size_t before = send->sent;
        bool complete = push(peer, *send, kind);
        peer.queue.sent(send->sent - before);
        peer.stall.moved |= send->sent != before;
        if (!complete) {
            peer.collects = false;
            observer_.stalled(peer);
            return true;
        }
        peer.queue.pop();
        const bool may_be_held = peer.is_remote() && send->collectable;
        if (may_be_held) peer.leaving.push(send);
        if (peer.queue.empty()) emptied(peer);
        if (!may_be_held) completions_.add(send);
    }
    return false;
}

}  // namespace velo::endpoint
