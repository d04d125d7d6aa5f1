#include "engine/peers/departures.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "flow/policies.h"

namespace velo::engine {
namespace {

// So often some peers are looked at in turn, and one of them for a system call.
constexpr std::uint64_t kBetweenLooksNs = 1'000'000;
constexpr std::size_t kPeersPerLook = 16;

}  // namespace

void Departures::open_null_peer(DomainHost& host, const mailbox::Reader<>& box, flow::PeerIndex index) {
    flow::PolicyConfig one{};
    one.peers = one.data_slots = 1;
    null_domain_.emplace(host, Domain::Kind::kNull, flow::make_policy("none", one, nullptr), false, box,
                         index, &lost_packets_, &lost_packets_);
    null_peer_ = std::make_unique<Peer>(index, *null_domain_);
    null_peer_->departed = true;
}

void Departures::look(std::uint64_t now_ns) {
    if (now_ns < next_look_ns_) return;
    next_look_ns_ = now_ns + kBetweenLooksNs;
    poll(kPeersPerLook, 1);
    reap();
}

void Departures::look_at_all() {
    poll(SIZE_MAX, SIZE_MAX);
    reap();
}

// Asks so many peers in turn whether they have closed, and so many whether they have vanished.
void Departures::poll(std::size_t closed, std::size_t vanished) {
    std::lock_guard lock(mutex_);
    const std::vector<Peer*>& met = host_.met();
    for (std::size_t i = std::min(closed, met.size()); i > 0; --i) {
        Peer& peer = *met[next_closed_++ % met.size()];
        if (!peer.ending && host_.has_closed(peer)) mark_ended(peer);
    }
    for (std::size_t i = std::min(vanished, met.size()); i > 0; --i) {
        Peer& peer = *met[next_vanished_++ % met.size()];
        if (!peer.ending && host_.has_vanished(peer)) mark_ended(peer);
    }
}

// On the LiMIC-like path no credits are held, and no place is for another job: its peers never depart.
void Departures::mark_ended(Peer& peer) {
    peer.ending = true;
    units_.ended(peer);
    if (peer.domain.kind == Domain::Kind::kLimic) return;
    peer.last_packet = peer.domain.reader.position() + peer.domain.reader.occupancy();
    ending_.push_back(&peer);
}

void Departures::reap() {
    for (Peer* peer : std::exchange(ending_, {})) {
        const bool done = (peer->departed || finalize(*peer)) && (!peer->stranger || vacate(*peer));
        if (!done) ending_.push_back(peer);
    }
}

// False: it is too early.
bool Departures::finalize(Peer& peer) {
    {
        std::lock_guard lock(mutex_);
        if (!reclaim(peer)) return false;
    }
    units_.gone(peer);
    return true;
}

// False, and nothing has changed: some of what it sent is in the mailbox, a unit needs it, or the policy
// cannot take back yet what it held.
bool Departures::reclaim(Peer& peer) {
    const bool retrieved = peer.domain.reader.position() >= peer.last_packet;
    if (!retrieved || !units_.may_depart(peer) || !peer.ledger().departed(peer)) return false;
    peer.departed = true;
    const bool killed = !peer.stranger && !peer.is_remote() && peer.link && !host_.has_closed(peer);
    if (killed) deaths_.note(peer, platform::now_ns());
    if (killed || peer.lost) peer.died.store(true, std::memory_order_relaxed);
    units_.departed(peer);
    return true;
}

bool Departures::vacate(Peer& peer) {
    std::lock_guard lock(mutex_);
    if (!host_.release_slot(peer)) return false;
    units_.vacated(peer);
    peer.left = peer.ending = peer.departed = false;
    return true;
}

}  // namespace velo::engine
