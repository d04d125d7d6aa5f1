#include "engine/large/large.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "engine/peers/sizing.h"
#include "platform/process_identity.h"
#include "types/log_line.h"

namespace velo::engine {

Large::Large(const Context& context)
    : with_(context),
      mutex_(with_.mutex),
      rma_(with_.mechanisms, with_.mailbox.directory_entries(), with_.poster),
      shared_gets_(*this, mutex_, with_.idle, with_.mailbox.header().shares, with_.mailbox.header().getting),
      deposits_(mutex_, with_.mailbox, with_.staging, with_.config, with_.idle),
      postponed_(*this, mutex_, with_.idle, with_.gate),
      single_copy_only_(shares_processors(with_.config) || with_.mechanisms.forced()) {
    with_.idle.when_wanted(deposits_);
    with_.idle.when_wanted(shared_gets_);
    with_.idle.when_wanted(postponed_);
}

// Whose own get is under way does not help: each copies for itself then, and no line changes hands twice.
bool Large::may_share(const Peer& peer, const Get& get) const {
    return get.by == CopyBy::kFastest && !single_copy_only_ && with_.routes.both_copy(peer, get.bytes) &&
           !SharedGets::is_getting(peer) && peer.queue.empty() && peer.ledger().credits(peer) > 0;
}

velo_status Large::get(Peer& peer, const Get& get) {
    std::unique_lock lock(mutex_);
    if (peer.departed) [[unlikely]]
        return refuse(peer);
    singlecopy::RemoteMemory* memory = rma_.memory_of(peer.index);
    if (memory == nullptr) return start(peer, rma::Direction::kGet, get);
    with_.counts.rma_single_copy_bytes += get.bytes;
    if (may_share(peer, get)) {
        if (const auto ticket = shared_gets_.open(get.bytes, SharedGets::First::kInitiator)) {
            rma_.ask_for_help(peer.index, get.local, get.remote, get.bytes, *ticket);
            return shared_gets_.carry_out(lock, peer, shared_gets_.get(*ticket, get, memory));
        }
    }
    ++peer.copying;
    lock.unlock();
    shared_gets_.await();
    return copy(peer, false, get, *memory);
}

velo_status Large::put(Peer& peer, const void* local, std::uint64_t remote, std::size_t bytes,
                       const rma::Completion& completion) {
    // It is only read.
    const Get put{const_cast<void*>(local), remote, bytes, completion};
    std::unique_lock lock(mutex_);
    if (peer.departed) [[unlikely]]
        return refuse(peer);
    singlecopy::RemoteMemory* memory = rma_.memory_of(peer.index);
    if (memory == nullptr) return start(peer, rma::Direction::kPut, put);
    with_.counts.rma_single_copy_bytes += bytes;
    ++peer.copying;
    lock.unlock();
    shared_gets_.await();
    return copy(peer, true, put, *memory);
}

// Through the mailbox.
velo_status Large::start(Peer& peer, rma::Direction direction, const Get& get) {
    with_.counts.rma_mailbox_bytes += get.bytes;
    rma_.start(direction, peer.index, get.local, get.remote, get.bytes, get.completion);
    return VELO_QUEUED;
}

velo_status Large::copy(Peer& peer, bool put, const Get& get, singlecopy::RemoteMemory& memory) {
    int error = 0;
    if (put) {
        error = memory.write(get.local, get.remote, get.bytes);
    } else {
        const Getting getting(with_.mailbox.header().getting);
        error = memory.read(get.local, get.remote, get.bytes);
    }
    {
        std::lock_guard lock(mutex_);
        --peer.copying;
    }
    if (error != 0) {
        failed(peer, error);
        return VELO_ERR_REMOTE;
    }
    get.completion.done(get.completion.argument, VELO_OK, 0);
    return VELO_OK;
}

// Whoever waits for it learns no more than that it has failed. Once: what the kernel refuses, it refuses
// always. Of a lost peer the log has told already.
void Large::failed(Peer& peer, int error) noexcept {
    if (peer.lost) return;
    std::array<char, 64> reason{};
    const bool ended = error == 0 || error == ESRCH || with_.peers.has_vanished(peer);
    if (ended && (peer.died || (peer.link && !with_.peers.has_closed(peer)))) return died(peer);
    if (failure_is_logged_.exchange(true, std::memory_order_relaxed)) return;
    log_line(with_.config, VELO_LOG_ONCE_A_NODE, "the transfer with %s has failed: %s",
             platform::here_array(peer.name).data(),
             ended ? "it has ended" : ::strerror_r(error, reason.data(), reason.size()));
}

void Large::died(Peer& peer) noexcept {
    if (peer.death_is_told.exchange(true, std::memory_order_relaxed)) return;
    log_line(with_.config, VELO_LOG_ONCE_A_NODE, "%s", platform::death_array(peer.name).data());
}

velo_status Large::refuse(Peer& peer) noexcept {
    if (peer.domain.kind != Domain::Kind::kNull) failed(peer, 0);
    return VELO_ERR_REMOTE;
}

std::optional<std::uint32_t> Large::announce(Peer& peer, std::size_t bytes) {
    std::lock_guard lock(mutex_);
    if (peer.departed || rma_.memory_of(peer.index) == nullptr) return std::nullopt;
    return shared_gets_.open(bytes, SharedGets::First::kPeer);
}

velo_status Large::get_announced(Peer& peer, std::uint32_t ticket, std::uint32_t deposit, const Get& get) {
    std::unique_lock lock(mutex_);
    singlecopy::RemoteMemory* memory = peer.departed ? nullptr : rma_.memory_of(peer.index);
    rma::SharedGet shared = shared_gets_.get(ticket, get, memory);
    if (memory == nullptr || shared.share.claim_all()) {
        shared_gets_.close(ticket);
        lock.unlock();
        return get_deposited(peer, deposit, get);
    }
    with_.counts.rma_single_copy_bytes += get.bytes;
    return shared_gets_.carry_out(lock, peer, shared);
}

bool Large::withdraw(Peer& peer, std::uint32_t ticket, std::size_t bytes, const rma::Completion& completion) {
    std::unique_lock lock(mutex_);
    rma::SharedGet shared = shared_gets_.get(ticket, {nullptr, 0, bytes, completion}, nullptr);
    if (shared.share.claim_all()) {
        shared_gets_.close(ticket);
        return true;
    }
    shared.error = ECANCELED;
    shared_gets_.carry_out(lock, peer, shared);
    return false;
}

std::optional<rma::Help> Large::helping(Peer& peer, std::uint32_t ticket, const std::byte* data,
                                        std::uint64_t remote, std::size_t bytes) {
    std::lock_guard lock(mutex_);
    singlecopy::RemoteMemory* memory = peer.departed ? nullptr : rma_.memory_of(peer.index);
    if (memory == nullptr) return std::nullopt;
    return SharedGets::help(peer, ticket, bytes, data, remote, *memory);
}

void Large::help_when_idle(const rma::Help& help) {
    std::lock_guard lock(mutex_);
    shared_gets_.help_when_idle(help);
}

void Large::finish(Peer& from, const rma::MessageHeader& header) {
    rma::Completion completion;
    {
        std::lock_guard lock(mutex_);
        if (header.operation == rma::Operation::kHelp)
            help(from.index, header);
        else
            completion = rma_.finish(from.index, header);
    }
    if (completion.done != nullptr)
        completion.done(completion.argument, completion.status, completion.result);
}

// A peer asks for help with its get.
void Large::help(flow::PeerIndex from, const rma::MessageHeader& request) {
    Peer& peer = with_.peers.reachable(from);
    singlecopy::RemoteMemory* memory = peer.departed ? nullptr : rma_.memory_of(from);
    if (memory == nullptr) return;
    shared_gets_.help_when_idle(
        SharedGets::help(peer, static_cast<std::uint32_t>(request.compare), request.bytes,
                         reinterpret_cast<const std::byte*>(request.address), request.position, *memory));
}

std::uint64_t Large::begin_deposit(Peer& peer, const void* data, std::size_t bytes) noexcept {
    std::lock_guard lock(mutex_);
    deposits_.announce(peer);
    if (!peer.is_local() || single_copy_only_ || peer.departed || !with_.staging.is_mapped_by(peer)) return 0;
    with_.routes.measure_distance(peer);
    if (!with_.routes.stages(peer, data, bytes) && rma_.memory_of(peer.index) != nullptr) return 0;
    return deposits_.begin(peer, data, bytes);
}

void Large::end_deposit(Peer& peer, std::uint64_t deposit) noexcept {
    std::lock_guard lock(mutex_);
    deposits_.end(peer, deposit);
}

velo_status Large::get_deposited(Peer& peer, std::uint32_t deposit, const Get& get) {
    {
        std::lock_guard lock(mutex_);
        if (peer.departed) return refuse(peer);
        if (postponed_.take(peer, deposit, get)) return VELO_QUEUED;
    }
    return get_now(peer, deposit, get);
}

// The number says where the data may have been staged. What is not there in time is got from the peer's
// memory.
velo_status Large::get_now(Peer& peer, std::uint32_t deposit, const Get& get) {
    const std::uint32_t number = VELO_DEPOSIT_NUMBER(deposit);
    std::size_t copied = 0;
    bool missed;
    {
        std::lock_guard lock(mutex_);
        if (peer.departed) return refuse(peer);
        missed = peer.staging_missed;
        peer.traffic.got(peer.to_be_got > 0);
        if (number != 0) ++peer.copying;
    }
    auto* const local = static_cast<std::byte*>(get.local);
    if (number != 0) {
        copied = deposits_.copy(peer.segment, number, missed, get.remote, local, get.bytes);
        std::lock_guard lock(mutex_);
        --peer.copying;
        peer.staging_missed = copied == 0;
        with_.counts.staged_gets += copied == get.bytes;
    }
    if (copied < get.bytes || number == 0)
        return this->get(peer,
                         {local + copied, get.remote + copied, get.bytes - copied, get.completion, get.by});
    get.completion.done(get.completion.argument, VELO_OK, 0);
    return VELO_OK;
}

velo_status Large::atomic(Peer& peer, velo_atomic operation, unsigned width, std::uint64_t remote,
                          std::uint64_t operand, std::uint64_t compare, const rma::Completion& completion) {
    std::lock_guard lock(mutex_);
    if (peer.departed) return refuse(peer);
    const velo_status status =
        rma_.start_atomic(peer.index, operation, width, remote, operand, compare, completion);
    with_.counts.atomics += status == VELO_QUEUED;
    return status;
}

void Large::introduced(const Peer& peer, const fabric::shm::Address& address) {
    rma_.connect(peer.index, {address.file.pid, address.probe, address.file.nonce, address.xpmem_segment});
}

void Large::attaching(Peer& peer) {
    if (with_.mechanisms.forced()) rma_.memory_of(peer.index);
}

void Large::attached(Peer& peer) {
    if (peer.is_remote()) rma_.connect_past_mailbox(peer.index);
}

void Large::departed(Peer& peer) {
    shared_gets_.depart(peer, rma_.known_memory(peer.index), &lost_);
    const std::size_t others = lost_.size();
    rma_.departed(peer.index, &lost_);
    if (lost_.size() > others) failed(peer, 0);
}

void Large::gone(Peer&) {
    for (const rma::Completion& lost : std::exchange(lost_, {}))
        lost.done(lost.argument, lost.status, lost.result);
}

void Large::vacated(Peer& peer) {
    deposits_.vacated(peer);
    peer.traffic = {};
}

}  // namespace velo::engine
