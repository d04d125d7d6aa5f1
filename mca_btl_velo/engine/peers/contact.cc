#include "engine/peers/contact.h"

#include <mutex>

#include "engine/peers/peer.h"
#include "platform/failure.h"
#include "platform/ticks.h"

namespace velo::engine {
namespace {

// Longer than a peer that looks at its mailbox takes to answer, also where processes share cores.
constexpr std::uint64_t kPatienceNs = 5'000'000;

}  // namespace

int Contact::run(bool) {
    const int handled = answer();
    if (idle_.is_wanted()) hurry();
    return handled;
}

int Contact::answer() {
    return doorbell_.answer([this](flow::PeerIndex index) {
        std::lock_guard lock(mutex_);
        Peer& peer = velo_.host.peer_at(index);
        if (!peer.ledger().control_retrieved(peer, wire::PacketKind::kHello, 0))
            throw Failure(VELO_ERR_PROTOCOL, "a doorbell was rung that no correct peer rings");
        if (peer.ledger().contact_pending()) idle_.want();
    });
}

void Contact::ended(Peer& peer) {
    if (peer.domain.kind == Domain::Kind::kVelo) doorbell_.silence(peer.source());
}

void Contact::hurry() {
    std::lock_guard lock(mutex_);
    if (!velo_.ledger.contact_pending() && !(remote_ && remote_->ledger.contact_pending())) {
        due_ns_ = 0;
        return;
    }
    const std::uint64_t now = platform::now_ns();
    if (due_ns_ != 0 && now < due_ns_) return;
    if (due_ns_ != 0) {
        velo_.ledger.contact_overdue();
        if (remote_) remote_->ledger.contact_overdue();
    }
    due_ns_ = now + kPatienceNs;
}

}  // namespace velo::engine
