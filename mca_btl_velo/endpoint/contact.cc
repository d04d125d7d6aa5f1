// What the engine owes to a policy that opens windows on demand; see design/adding-a-policy.md.
#include <mutex>

#include "endpoint/engine.h"
#include "platform/failure.h"
#include "platform/ticks.h"

namespace velo::endpoint {
namespace {

// Longer than a peer that looks at its mailbox takes to answer, also where processes share cores.
constexpr std::uint64_t kPatienceNs = 5'000'000;

}  // namespace

// Something waits for this peer, and it has no credit.
void Engine::want_credit(Peer& peer) {
    peer.ledger().queued(peer);
    if (peer.ledger().contact_pending()) want_housekeeping();
}

int Engine::answer_doorbell() {
    return doorbell_->answer([this](flow::PeerIndex index) {
        std::lock_guard lock(mutex_);
        Peer& peer = peer_at(index);
        if (!peer.ledger().control_retrieved(peer, wire::PacketKind::kHello, 0))
            throw Failure(VELO_ERR_PROTOCOL, "a doorbell was rung that no correct peer rings");
        if (peer.ledger().contact_pending()) want_housekeeping();
        assert_invariants();
    });
}

bool Engine::contact_pending() const {
    return velo_.ledger.contact_pending() || (remote_ && remote_->ledger.contact_pending());
}

// Whoever was asked to give way may be computing: asks one more from time to time.
void Engine::hurry_contact() {
    if (!contact_pending()) {
        contact_due_ns_ = 0;
        return;
    }
    const std::uint64_t now = platform::now_ns();
    if (contact_due_ns_ != 0 && now < contact_due_ns_) return;
    if (contact_due_ns_ != 0) {
        velo_.ledger.contact_overdue();
        if (remote_) remote_->ledger.contact_overdue();
        assert_invariants();
    }
    contact_due_ns_ = now + kPatienceNs;
}

}  // namespace velo::endpoint
