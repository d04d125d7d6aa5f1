#include "engine/pending_sends.h"

#include <mutex>
#include <utility>

#include "platform/ticks.h"

namespace velo::engine {

void PendingSends::enqueue(Peer& peer, velo_send* send) {
    const bool first = peer.queue.empty();
    peer.queue.push(send);
    if (first) observer_.stalled(peer);
    if (first) want_credit(peer);
    // No credit will come to wake this peer.
    if (!peer.policy().limited()) flush_later(peer);
}

// Something waits for this peer, and it has no credit. A policy on demand is told.
void PendingSends::want_credit(Peer& peer) {
    peer.ledger().queued(peer);
    if (peer.ledger().contact_pending()) idle_.want();
}

// At each poll.
void PendingSends::flush_later(Peer& peer) {
    if (peer.stalled) return;
    peer.stalled = true;
    stalled_.push_back(&peer);
    idle_.want();
}

bool PendingSends::leaves_at_look(Peer& peer, std::size_t bytes) const {
    return remote_.is_one_of_many(peer, bytes) || (peer.is_remote() && bytes > Remote::kCollectedBytes) ||
           peer.link.holds_some();
}

void PendingSends::await_network(Peer& peer, velo_send* send) {
    peer.leaving.push(send);
    report_left(peer);
}

// Tells those whose messages have left the network too: they might compute meanwhile, and what it holds, as
// until the connection is made, leaves at a look only.
void PendingSends::report_left(Peer& peer) {
    if (peer.leaving.empty()) return;
    if (peer.link.holds_some()) {
        observer_.stalled(peer);
        flush_later(peer);
        return;
    }
    for (SendQueue left = std::exchange(peer.leaving, SendQueue()); !left.empty();) {
        velo_send* const send = left.front();
        left.pop();
        note_left(send);
    }
    if (peer.queue.empty()) observer_.resumed(peer);
}

void PendingSends::collect(Peer& peer, velo_send* send) {
    peer.collects = true;
    peer.queue.push(send);
    if (peer.queue.bytes() >= Remote::kCollectedBytes && !flush(peer)) return;
    flush_later(peer);
}

// Credits will wake what is left; where none are counted it has to be tried again.
bool PendingSends::flush(Peer& peer) {
    const bool left = peer.ledger().flush(peer);
    if (left && peer.policy().limited()) want_credit(peer);
    return left;
}

void PendingSends::flush_all() {
    std::erase_if(stalled_, [this](Peer* peer) {
        report_left(*peer);
        const flow::Refusal* refusal = peer->domain.refusal;
        if (refusal != nullptr && platform::now_ns() < refusal->retry_at_ns(peer->source())) return false;
        peer->stalled = (flush(*peer) && !peer->policy().limited()) || !peer->leaving.empty();
        return !peer->stalled;
    });
}

// The engine's own are done at once.
void PendingSends::note_left(velo_send* send) {
    if (send->flags & wire::kInternal) return send->done(send, VELO_OK);
    send->status = VELO_OK;
    due_.push(send);
    idle_.want();
}

void PendingSends::call_back() {
    SendQueue due;
    {
        std::lock_guard lock(mutex_);
        due = std::exchange(due_, SendQueue());
    }
    while (!due.empty()) {
        velo_send* send = due.front();
        due.pop();
        send->done(send, send->status);
    }
}

// The queue has become empty.
void PendingSends::emptied(Peer& peer) {
    peer.collects = false;
    if (peer.leaving.empty()) observer_.resumed(peer);
}

bool PendingSends::send(Peer& peer) {
    if (peer.queue.empty()) return false;
    bool left;
    {
        const Remote::Series series(remote_, peer);
        left = send_all(peer);
    }
    report_left(peer);
    return left;
}

bool PendingSends::send_all(Peer& peer) {
    const bool marks = peer.ledger().marks_backlog() && !peer.collects;
    const wire::PacketKind kind = marks ? wire::PacketKind::kBackloggedData : wire::PacketKind::kData;
    while (!peer.queue.empty()) {
        velo_send* send = peer.queue.front();
        std::size_t before = send->sent;
        bool complete = host_.push(peer, *send, kind);
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
        if (!may_be_held) note_left(send);
    }
    return false;
}

// As messages in the mailbox of an ended process: they have been sent, and nobody reads them.
void PendingSends::departed(Peer& peer) {
    if (peer.queue.empty()) return;
    while (!peer.queue.empty()) {
        velo_send* send = peer.queue.front();
        peer.queue.sent(send->bytes[0] + send->bytes[1] - send->sent);
        peer.queue.pop();
        note_left(send);
    }
    emptied(peer);
}

}  // namespace velo::engine
