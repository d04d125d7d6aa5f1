// Peers: expected, met, connected to when something has to be sent, and found to be gone.
#include <mutex>
#include <utility>

#include "endpoint/engine.h"
#include "endpoint/sizing.h"
#include "parameters/agreement.h"
#include "platform/failure.h"
#include "platform/process_identity.h"

namespace velo::endpoint {

Peer& Engine::add_peer(flow::PeerIndex index) {
    bool remote = index >= remote_first_;
    bool local = limic_ && index >= limic_->first_peer;
    Domain& domain = remote ? *remote_ : local ? *limic_ : velo_;
    auto made = std::make_unique<Peer>(index, domain);
    Peer& peer = *made;
    if (!remote)
        if (const auto address = mailbox_.introduced(index)) introduce_to_rma(peer, *address);
    if (!remote) met_.push_back(&peer);
    peers_.add(std::move(made));
    return peer;
}

flow::PeerIndex Engine::expect(const fabric::shm::Address& address) {
    std::unique_lock lock(mutex_);
    const flow::PeerIndex index = place_for(address.process_name, lock);
    const Peer* known = peers_.find(index);
    if (known != nullptr && (known->link || is_same_departed(*known, address))) return index;
    if (may_wait(index, address) && (known == nullptr || !known->departed)) {
        mailbox_.introduce(index, address);
        if (known != nullptr) introduce_to_rma(*known, address);
    } else {
        attach_expected(peer_at(index), address);
    }
    return index;
}

// Whoever has no place for this process is out of reach, and keeps the one here until it ends: it may yet
// find one.
void Engine::attach_expected(Peer& peer, const fabric::shm::Address& address) {
    try {
        attach(peer, address);
    } catch (const Failure&) {
        place_patience_ = {};
        if (is_stranger(peer)) mailbox_.introduce(peer.index, address);
        throw;
    }
}

bool Engine::is_same_departed(const Peer& peer, const fabric::shm::Address& address) {
    return peer.departed && peer.segment.address().file.nonce == address.file.nonce;
}

Peer* Engine::peer(flow::PeerIndex index) {
    std::lock_guard lock(mutex_);
    return &peer_at(index);
}

// Under a policy whose windows open with the first packet, so does the connection: a peer that is never
// spoken to is not mapped, and is no more than its entry in the directory. What can only fail now, fails now;
// the report needs the counters of all.
bool Engine::may_wait(flow::PeerIndex index, const fabric::shm::Address& address) const {
    const bool by_velo = !limic_ || index < limic_->first_peer;
    return by_velo && velo_.ledger.on_demand() && !reports() && !mechanisms_.forced() &&
           address.magic == fabric::shm::Address::kMagic &&
           address.agreement == mailbox_.address().agreement && platform::openable_by_pid(address.file);
}

void Engine::introduce_to_rma(const Peer& peer, const fabric::shm::Address& address) {
    rma_.connect(peer.index, {address.file.pid, address.probe, address.file.nonce, address.xpmem_segment});
}

// Where this process cannot look into the other, the other cannot look into this one either, most of the
// time: both give their mailboxes names.
fabric::shm::Segment Engine::open_segment(const Peer& peer, const fabric::shm::Address& address) {
    // Of many peers most are spoken to late or never, and all pages of all segments are many.
    const bool at_once = config_.node_peer_count <= kFewPeers;
    if (platform::openable_by_pid(address.file)) return fabric::shm::Segment::attach(address, at_once);
    mailbox_.file().publish();
    awaited_.push_back(peer.index);
    want_housekeeping();
    try {
        return fabric::shm::Segment::attach(address, at_once);
    } catch (const Failure&) {
        std::erase(awaited_, peer.index);
        withdraw_name();
        throw;
    }
}

void Engine::attach(Peer& peer, const fabric::shm::Address& address) {
    fabric::shm::Segment segment = open_segment(peer, address);
    std::string reason = parameters::difference(mailbox_.header().agreement, segment.header().agreement);
    if (!reason.empty()) throw Failure(VELO_ERR_MISMATCH, reason);

    introduce_to_rma(peer, address);
    if (mechanisms_.forced()) rma_.memory_of(peer.index);
    flow::PeerIndex here = segment.claim(config_.process_name, static_cast<int>(place_patience_.count()));
    if ((here >= segment.flow().total_peers()) != (&peer.domain != &velo_))
        throw Failure(VELO_ERR_MISMATCH,
                      "btl_velo_limic or btl_velo_ranks_per_node differ between processes");
    segment.introduce(here, mailbox_.address());
    if (segment.outbox_plan().bytes() > 0)
        segment.will_read(here);
    else if (segment.header().outbox_bytes > 0 && !std::exchange(outboxes_are_missing_, true))
        log_missing_outbox(segment);
    peer.segment = std::move(segment);
    peer.name = address.process_name;
    peer.left = peer.ending = peer.departed = false;
    peer.dozes = peer.segment.header().may_doze != 0;
    if (&peer.domain == &velo_) {
        peer.ledger().open(peer, flow::initial_credit(peer.policy().name(), peer.segment.flow(), here));
        fabric::shm::ShmLink& link = peer.link.open(peer.segment.writer(), here);
        if (peer.domain.refusal != nullptr)
            link.refuse_beyond({peer.domain.refusal->refusal_limit(), &peer.segment.retrieved(here)});
        if (doorbell_) link.use(peer.segment.doorbell());
    } else {
        peer.link.open(peer.segment.limic_writer(), here - peer.segment.flow().total_peers());
    }
    peer.link.intercept(interceptor_);
    peer.refer_from = routes_.reference_from(peer);
    const bool plain = peer.link.is_direct() && peer.domain.limited && peer.ledger().delays() &&
                       !config_.threads && !sends_are_followed_ && !peer.dozes && config_.packet_trains;
    peer.plain.store(plain, std::memory_order_relaxed);
    log_connection(peer, address);
    trace_.connected(peer);
}

void Engine::log_missing_outbox(const fabric::shm::Segment& segment) const {
    const std::string line = "no address space for the outbox of process " +
                             platform::process_text(segment.header().owner) + ", " +
                             std::to_string(segment.header().outbox_bytes) +
                             " bytes: messages of several packets come in packets. Check ulimit -v.";
    config_.log(config_.context, 5, line.c_str());
}

void Engine::log_connection(const Peer& peer, const fabric::shm::Address& address) const {
    const std::string line = "connected to process " + platform::process_text(address.process_name) +
                             ": NUMA node " + std::to_string(peer.segment.header().numa_node) + ", ours " +
                             std::to_string(mailbox_.header().numa_node) + "; " +
                             (&peer.domain == &velo_ ? "VELO packets" : "LiMIC-like path");
    config_.log(config_.context, 20, line.c_str());
}

// The peer, connected: a sender that this process never connected to has left its address in the directory.
Peer& Engine::reachable_peer(flow::PeerIndex index) {
    Peer& peer = peer_at(index);
    if (!peer.link && index >= remote_first_) attach_remote(peer);
    if (!peer.link) {
        const auto address = mailbox_.introduced(index);
        if (!address) throw Failure(VELO_ERR_PROTOCOL, "a sender did not leave its address");
        attach(peer, *address);
    }
    return peer;
}

bool Engine::has_left(Peer& peer) {
    if (peer.link || peer.left || peer.index >= remote_first_) return peer.left;
    const auto address = mailbox_.introduced(peer.index);
    peer.left = address && platform::closed_by_owner(address->file);
    return peer.left;
}

// A process may have ended by the time that it is answered for the first time, or end while its mailbox is
// opened for that: its question came with the last of its messages, and nobody waits for the answer.
bool Engine::may_be_answered(Peer& peer) {
    if (peer.link) return true;
    if (has_left(peer)) return false;
    try {
        reachable_peer(peer.index);
    } catch (const Failure&) {
        if (!has_left(peer)) throw;
        return false;
    }
    return true;
}

void Engine::reach(Peer& peer) {
    std::lock_guard lock(mutex_);
    if (!peer.departed) (void)may_be_answered(peer);
}

}  // namespace velo::endpoint
