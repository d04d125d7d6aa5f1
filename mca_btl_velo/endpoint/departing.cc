// Peers that end while this process goes on: what they held goes back to the others, and the place of a
// process of another job to the next one.
//
// Open MPI says nothing when a process of another job has been disconnected, so the engine looks: whether a
// peer has closed, and whether it has vanished; who is on another node takes leave. From then on nothing more
// can come of it but what is in the mailbox already. When that has been retrieved, the policy takes back what
// it held; who knows it is told; and only then, when nothing of it is left in either direction, may another
// process claim the place.
#include <algorithm>
#include <chrono>
#include <mutex>
#include <thread>
#include <utility>

#include "endpoint/engine.h"
#include "platform/ticks.h"

namespace velo::endpoint {
namespace {

// So often it is looked at so many peers in turn. Whether one has vanished costs a system call: one of them.
constexpr std::uint64_t kBetweenLooksNs = 1'000'000;
constexpr std::size_t kPeersPerLook = 16;

bool has_closed(const Peer& peer) {
    return peer.link && peer.segment.header().statistics_final.load(std::memory_order_acquire) != 0;
}

}  // namespace

bool Engine::has_vanished(Peer& peer) {
    return peer.link ? platform::closed_by_owner(peer.segment.address().file) : has_left(peer);
}

void Engine::look_for_departed() {
    const std::uint64_t now = platform::now_ns();
    if (now < next_look_for_departed_ns_) return;
    next_look_for_departed_ns_ = now + kBetweenLooksNs;
    notice_ended(kPeersPerLook, 1);
    clear_up();
}

// Looks at so many peers in turn whether they have closed, and at so many whether they have vanished.
void Engine::notice_ended(std::size_t closed, std::size_t vanished) {
    std::lock_guard lock(mutex_);
    for (std::size_t i = std::min(closed, met_.size()); i > 0; --i) {
        Peer& peer = *met_[looked_at_++ % met_.size()];
        if (!peer.ending && has_closed(peer)) note_end(peer);
    }
    for (std::size_t i = std::min(vanished, met_.size()); i > 0; --i) {
        Peer& peer = *met_[looked_for_++ % met_.size()];
        if (!peer.ending && has_vanished(peer)) note_end(peer);
    }
}

// On the LiMIC-like path no credits are held, and no place is for another job: only gets are given up. What a
// peer on another node was lent comes back from the network.
void Engine::note_end(Peer& peer) {
    peer.ending = true;
    deposits_.end_all_of(peer);
    const bool here = peer.index < remote_first_;
    if (here) outbox_.free_all(peer.lent);
    peer.maps_us = false;
    if (here && &peer.domain != &velo_) return;
    peer.last_packet = peer.domain.reader.position() + peer.domain.reader.occupancy();
    ending_.push_back(&peer);
}

void Engine::clear_up() {
    if (!ending_.empty()) finish_shared_gets();
    for (Peer* peer : std::exchange(ending_, {})) {
        const bool done = (peer->departed || bury(*peer)) && (!is_stranger(*peer) || vacate(*peer));
        if (!done) ending_.push_back(peer);
    }
}

// False: it is too early.
bool Engine::bury(Peer& peer) {
    std::vector<rma::Completion> transfers;
    {
        std::lock_guard lock(mutex_);
        const bool gets = std::any_of(shared_gets_.begin(), shared_gets_.end(),
                                      [&](const rma::SharedGet& get) { return get.peer == peer.index; });
        if (peer.domain.reader.position() < peer.last_packet || peer.copying > 0 || gets || !take_back(peer))
            return false;
        transfers = give_up_transfers(peer);
        drop_queue(peer);
        assert_invariants();
    }
    if (!transfers.empty()) tell_failed(peer, 0);
    for (const rma::Completion& transfer : transfers)
        transfer.done(transfer.argument, transfer.status, transfer.result);
    if (listener_ != nullptr) listener_->departed(peer);
    if (is_stranger(peer) && config_.gone != nullptr)
        config_.gone(config_.context, peer.index, mailbox_.sender_name(peer.index));
    return true;
}

// Under the mutex. False, and nothing has changed, if the policy cannot yet.
bool Engine::take_back(Peer& peer) {
    // What rang before the end is not answered any more.
    if (doorbell_ && peer.index < remote_first_) doorbell_->silence(peer.source());
    if (!peer.ledger().departed(peer)) return false;
    peer.departed = true;
    peer.forget_references();
    peer.generation.fetch_add(1, std::memory_order_relaxed);
    peer.link.close();
    peer.plain.store(false, std::memory_order_relaxed);
    peer.dozes = false;
    Incoming& incoming = peer.incoming;
    if (peer.arriving == Incoming::State::kMessage) buffers_.give_back(std::move(incoming.buffer));
    peer.arriving = Incoming::State::kIdle;
    return true;
}

// As messages in the mailbox of an ended process: they have been sent, and nobody reads them.
void Engine::drop_queue(Peer& peer) {
    if (peer.queue.empty()) return;
    while (!peer.queue.empty()) {
        velo_send* send = peer.queue.front();
        peer.queue.sent(send->bytes[0] + send->bytes[1] - send->sent);
        peer.queue.pop();
        report_sent(send);
    }
    emptied(peer);
}

// What this process wanted to read from or write to the memory of the peer, alone.
std::vector<rma::Completion> Engine::give_up_transfers(Peer& peer) {
    std::vector<rma::Completion> lost;
    if (const singlecopy::RemoteMemory* memory = rma_.known_memory(peer.index))
        std::erase_if(helps_, [&](const rma::Help& help) {
            if (help.memory != memory) return false;
            if (help.completion.done != nullptr) lost.push_back(help.completion);
            return true;
        });
    rma_.departed(peer.index, &lost);
    return lost;
}

// The place is free for the next process; false while others are looking for one.
bool Engine::vacate(Peer& peer) {
    std::lock_guard lock(mutex_);
    if (!mailbox_.vacate(peer.index)) return false;
    place_patience_ = kPlacePatience;
    std::erase(awaited_, peer.index);
    if (reports()) segments_of_departed_.push_back(std::move(peer.segment));
    peer.segment = fabric::shm::Segment();
    peer.name = 0;
    peer.left = peer.ending = peer.departed = peer.late = false;
    peer.crossing = {};
    peer.to_be_got = 0;
    return true;
}

// The own entry for a process; the mutex is free meanwhile. Whoever ended may not have been noticed.
flow::PeerIndex Engine::place_for(std::uint64_t name, std::unique_lock<OptionalMutex>& lock) {
    const auto deadline = std::chrono::steady_clock::now() + place_patience_;
    for (;;) {
        if (const auto place = mailbox_.find_place(name)) return *place;
        if (std::chrono::steady_clock::now() >= deadline) {
            place_patience_ = {};
            mailbox_.fail_to_claim(name);
        }
        lock.unlock();
        if (gate_.try_enter()) {
            notice_ended(SIZE_MAX, SIZE_MAX);
            clear_up();
            gate_.leave();
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        lock.lock();
    }
}

}  // namespace velo::endpoint
