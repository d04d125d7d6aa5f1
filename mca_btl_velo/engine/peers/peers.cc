#include "engine/peers/peers.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "engine/peers/sizing.h"
#include "flow/policies.h"
#include "parameters/agreement.h"
#include "platform/failure.h"
#include "platform/process_identity.h"

namespace velo::engine {

Peers::Peers(PeersHost& host, platform::OptionalMutex& mutex, Idle& idle, PeerEvents& units,
             const velo_config& config, fabric::shm::Segment& mailbox, bool forced)
    : host_(host),
      mutex_(mutex),
      idle_(idle),
      units_(units),
      config_(config),
      mailbox_(mailbox),
      forced_(forced),
      first_node_peer_(config.node_peer_count > 0 ? config.node_peers[0] : config.process_name),
      table_(mailbox.directory_entries()) {
    const fabric::shm::Address& own = mailbox.address();
    address_.resize(sizeof own);
    std::memcpy(address_.data(), &own, sizeof own);
}

Peer& Peers::add(flow::PeerIndex index) {
    auto made = std::make_unique<Peer>(index, host_.domain_of(index));
    Peer& peer = *made;
    if (peer.is_local()) {
        if (const auto address = mailbox_.senders().introduced(index)) units_.introduced(peer, *address);
        met_.push_back(&peer);
    }
    table_.add(std::move(made));
    return peer;
}

flow::PeerIndex Peers::expect(const fabric::shm::Address& address) {
    std::unique_lock lock(mutex_);
    const flow::PeerIndex index = place_for(address.process_name, lock);
    const Peer* known = find(index);
    if (known != nullptr && (known->link || is_same_departed(*known, address))) return index;
    if (may_wait(index, address) && (known == nullptr || !known->departed)) {
        mailbox_.senders().introduce(index, address);
        if (known != nullptr) units_.introduced(*known, address);
    } else {
        attach_expected(at(index), address);
    }
    return index;
}

// Whoever has no place for this process is out of reach, and keeps the one here until it ends: it may yet
// find one.
void Peers::attach_expected(Peer& peer, const fabric::shm::Address& address) {
    try {
        attach(peer, address);
    } catch (const Failure&) {
        patience_ = {};
        if (peer.stranger) mailbox_.senders().introduce(peer.index, address);
        throw;
    }
}

// It has ended, and is as it was when it was met: nothing can be sent to it.
bool Peers::is_same_departed(const Peer& peer, const fabric::shm::Address& address) {
    return peer.departed && peer.segment.address().file.nonce == address.file.nonce;
}

Peer* Peers::get(flow::PeerIndex index) {
    std::lock_guard lock(mutex_);
    return &at(index);
}

// Under a policy whose windows open with the first packet, so does the connection: a peer that is never
// spoken to is not mapped, and is no more than its entry in the directory. What can only fail now, fails now;
// the report needs the counters of all.
bool Peers::may_wait(flow::PeerIndex index, const fabric::shm::Address& address) {
    const Domain& domain = host_.domain_of(index);
    return domain.kind == Domain::Kind::kVelo && domain.ledger.on_demand() && !reports() && !forced_ &&
           address.magic == fabric::shm::Address::kMagic &&
           address.agreement == mailbox_.address().agreement && platform::openable_by_pid(address.file);
}

// Where this process cannot look into the other, the other cannot look into this one either, most of the
// time: both give their mailboxes names.
fabric::shm::Segment Peers::open_segment(const Peer& peer, const fabric::shm::Address& address) {
    // Of many peers most are spoken to late or never, and all pages of all segments are many.
    const bool at_once = config_.node_peer_count <= kFewPeers;
    if (platform::openable_by_pid(address.file)) return fabric::shm::Segment::attach(address, at_once);
    mailbox_.file().publish();
    awaited_.push_back(peer.index);
    idle_.want();
    try {
        return fabric::shm::Segment::attach(address, at_once);
    } catch (const Failure&) {
        std::erase(awaited_, peer.index);
        withdraw_name();
        throw;
    }
}

int Peers::run(bool) {
    std::lock_guard lock(mutex_);
    withdraw_name();
    return 0;
}

// Takes the mailbox's name away once every peer that needed it has attached.
void Peers::withdraw_name() {
    std::erase_if(awaited_,
                  [this](flow::PeerIndex index) { return mailbox_.senders().is_introduced(index); });
    if (awaited_.empty()) mailbox_.file().unpublish();
}

void Peers::attach(Peer& peer, const fabric::shm::Address& address) {
    fabric::shm::Segment segment = open_segment(peer, address);
    std::string reason = parameters::difference(mailbox_.header().agreement, segment.header().agreement);
    if (!reason.empty()) throw Failure(VELO_ERR_MISMATCH, reason);

    units_.introduced(peer, address);
    units_.attaching(peer);
    flow::PeerIndex here = segment.senders().claim(config_.process_name, static_cast<int>(patience_.count()));
    const bool its_path = here >= segment.flow().total_peers();
    if (its_path != (peer.domain.kind == Domain::Kind::kLimic))
        throw Failure(VELO_ERR_MISMATCH,
                      "btl_velo_limic or btl_velo_ranks_per_node differ between processes");
    segment.senders().introduce(here, mailbox_.address());
    if (segment.outbox_plan().bytes() > 0)
        segment.senders().will_read(here);
    else if (segment.header().outbox_bytes > 0 && !std::exchange(outboxes_are_missing_, true))
        log_missing_outbox(segment);
    peer.segment = std::move(segment);
    peer.name = address.process_name;
    peer.left = peer.ending = peer.departed = false;
    peer.dozes = peer.segment.header().may_doze != 0;
    open_link(peer, here);
    log_connection(peer);
    units_.attached(peer);
}

// `here`: the place of this process there.
void Peers::open_link(Peer& peer, flow::PeerIndex here) {
    const fabric::shm::Segment& segment = peer.segment;
    peer.sent_references.follow(segment.references_read(here));
    if (peer.domain.kind == Domain::Kind::kLimic) {
        peer.link.open(segment.limic_writer(), here - segment.flow().total_peers());
        return;
    }
    peer.ledger().open(peer, flow::initial_credit(peer.policy().name(), segment.flow(), here));
    fabric::shm::ShmLink& link = peer.link.open(segment.writer(), here);
    if (peer.domain.refusal != nullptr)
        link.refuse_beyond({peer.domain.refusal->refusal_limit(), &segment.retrieved(here)});
    if (peer.ledger().on_demand()) link.use(segment.doorbell());
}

void Peers::log_missing_outbox(const fabric::shm::Segment& segment) const {
    const std::string line = "no address space for the outbox of " +
                             platform::process_here(segment.header().owner) + ", " +
                             std::to_string(segment.header().outbox_bytes) +
                             " bytes: messages of several packets come in packets. Check ulimit -v.";
    config_.log(config_.context, 5, line.c_str());
}

void Peers::log_connection(const Peer& peer) const {
    const bool velo = peer.domain.kind == Domain::Kind::kVelo;
    const std::string line = "connected to " + platform::process_text(peer.name) + ": NUMA node " +
                             std::to_string(peer.segment.header().numa_node) + ", ours " +
                             std::to_string(mailbox_.header().numa_node) + "; " +
                             (velo ? "VELO packets" : "LiMIC-like path");
    config_.log(config_.context, 20, line.c_str());
}

Peer& Peers::reachable(flow::PeerIndex index) {
    Peer& peer = at(index);
    if (peer.link) return peer;
    if (peer.is_remote()) {
        host_.attach_remote(peer);
        return peer;
    }
    const auto address = mailbox_.senders().introduced(index);
    if (!address) throw Failure(VELO_ERR_PROTOCOL, "a sender did not leave its address");
    attach(peer, *address);
    return peer;
}

bool Peers::has_left(Peer& peer) {
    if (peer.link || peer.left || !peer.is_local()) return peer.left;
    const auto address = mailbox_.senders().introduced(peer.index);
    peer.left = address && platform::closed_by_owner(address->file);
    return peer.left;
}

// A process may have ended by the time that it is answered for the first time, or end while its mailbox is
// opened for that: its question came with the last of its messages.
bool Peers::may_be_answered(Peer& peer) {
    if (peer.link) return true;
    if (has_left(peer)) return false;
    try {
        reachable(peer.index);
    } catch (const Failure&) {
        if (!has_left(peer)) throw;
        return false;
    }
    return true;
}

void Peers::reach(Peer& peer) {
    std::lock_guard lock(mutex_);
    if (!peer.departed) (void)may_be_answered(peer);
}

bool Peers::has_closed(const Peer& peer) {
    return peer.link && peer.segment.header().statistics_final.load(std::memory_order_acquire) != 0;
}

bool Peers::has_vanished(Peer& peer) {
    return peer.link ? platform::closed_by_owner(peer.segment.address().file) : has_left(peer);
}

bool Peers::release_slot(Peer& peer) {
    return mailbox_.senders().vacate(peer.index);
}

// On the LiMIC-like path nobody reads the ring any more, and no credits have to come back: what is sent is
// lost.
void Peers::ended(Peer& peer) {
    if (peer.domain.kind == Domain::Kind::kLimic) peer.link.close();
}

void Peers::departed(Peer& peer) {
    peer.generation.fetch_add(1, std::memory_order_relaxed);
    peer.link.close(peer.died);
    peer.dozes = false;
}

void Peers::vacated(Peer& peer) {
    patience_ = kPatience;
    std::erase(awaited_, peer.index);
    if (reports()) segments_of_departed_.push_back(std::move(peer.segment));
    peer.segment = fabric::shm::Segment();
    peer.name = 0;
}

// The own entry for a process; the mutex is free meanwhile. Whoever ended may not have been noticed.
flow::PeerIndex Peers::place_for(std::uint64_t name, std::unique_lock<platform::OptionalMutex>& lock) {
    const auto deadline = std::chrono::steady_clock::now() + patience_;
    for (;;) {
        if (const auto place = mailbox_.senders().find_place(name)) return *place;
        if (std::chrono::steady_clock::now() >= deadline) {
            patience_ = {};
            mailbox_.senders().fail_to_claim(name);
        }
        lock.unlock();
        host_.look_for_departed();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        lock.lock();
    }
}

std::vector<const fabric::shm::SegmentHeader*> Peers::segments() const {
    std::vector<const fabric::shm::SegmentHeader*> segments{&mailbox_.header()};
    table_.for_each([&](const Peer& peer) {
        if (peer.segment.bytes() > 0) segments.push_back(&peer.segment.header());
    });
    for (const fabric::shm::Segment& segment : segments_of_departed_) segments.push_back(&segment.header());
    std::sort(segments.begin(), segments.end(), [](auto* a, auto* b) { return a->owner < b->owner; });
    return segments;
}

}  // namespace velo::engine
