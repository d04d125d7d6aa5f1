// What the engine itself prepares for a peer, and clears up after one that has ended.
#include <mutex>
#include <utility>

#include "endpoint/engine.h"

namespace velo::endpoint {

void Engine::attached(Peer& peer) {
    peer.link.intercept(interceptor_);
    if (peer.is_local()) routes_.set_of(peer);
    const bool plain = peer.link.is_direct() && peer.domain.limited && peer.ledger().delays() &&
                       !config_.threads && !sends_are_followed_ && !peer.dozes && config_.packet_trains;
    peer.may_be_plain = plain;
    peer.plain.store(plain, std::memory_order_relaxed);
    observer_.connected(peer);
}

void Engine::ended(Peer& peer) {
    if (peer.is_local()) outbox_.free_all(peer.lent);
    peer.maps_us = false;
    // Nobody reads its ring any more, and no credits of it have to come back: what is sent to it is lost.
    if (peer.domain.kind == Domain::Kind::kLimic) peer.link.close();
}

void Engine::departed(Peer& peer) {
    outbox_.free_all(peer.lent);  // what it was lent since it ended
    peer.maps_us = false;
    peer.forget_references();
    peer.plain.store(false, std::memory_order_relaxed);
    Incoming& incoming = peer.incoming;
    if (peer.arriving == Incoming::State::kMessage) buffers_.give_back(std::move(incoming.buffer));
    peer.arriving = Incoming::State::kIdle;
    drop_queue(peer);
    assert_invariants();
}

void Engine::gone(Peer& peer) {
    if (listener_ != nullptr) listener_->departed(peer);
    if (peer.stranger && config_.gone != nullptr)
        config_.gone(config_.context, peer.index, mailbox_.sender_name(peer.index));
}

// As messages in the mailbox of an ended process: they have been sent, and nobody reads them.
void Engine::drop_queue(Peer& peer) {
    if (peer.queue.empty()) return;
    while (!peer.queue.empty()) {
        velo_send* send = peer.queue.front();
        peer.queue.sent(send->bytes[0] + send->bytes[1] - send->sent);
        peer.queue.pop();
        completions_.add(send);
    }
    emptied(peer);
}

}  // namespace velo::endpoint
