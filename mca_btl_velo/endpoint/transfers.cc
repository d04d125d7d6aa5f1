// RMA transfers: which way each takes, and the ones that two processes carry out together.
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <mutex>

#include "endpoint/engine.h"
#include "endpoint/telling.h"
#include "platform/failure.h"
#include "platform/process_identity.h"

namespace velo::endpoint {
namespace {

// How often a process looks whether its peer has done its part of the get before: the part is on its way,
// unless the peer is not running. With threads once, as others may wait for the mutex meanwhile.
constexpr int kPatience = 20000;

// Tells the peers that this process copies what it gets.
class Getting {
 public:
    explicit Getting(std::atomic<std::uint32_t>& count) : count_(count) {
        count_.fetch_add(1, std::memory_order_relaxed);
    }
    ~Getting() { count_.fetch_sub(1, std::memory_order_relaxed); }
    Getting(const Getting&) = delete;
    Getting& operator=(const Getting&) = delete;

 private:
    std::atomic<std::uint32_t>& count_;
};

}  // namespace

velo_status Engine::transfer(Peer& peer, rma::Direction direction, void* local, std::uint64_t remote,
                             std::size_t bytes, rma::Completion completion, By by) {
    std::unique_lock lock(mutex_);
    if (peer.departed) [[unlikely]]
        return to_departed(peer);
    singlecopy::RemoteMemory* memory = rma_.memory_of(peer.index);
    if (memory == nullptr) {
        rma_.start(direction, peer.index, local, remote, bytes, completion);
        return VELO_QUEUED;
    }
    statistics_.rma_single_copy_bytes += bytes;
    ++peer.copying;
    // Whose own get is under way does not help: each copies for itself then, and no line changes hands twice.
    if (direction == rma::Direction::kGet && by == By::kFastest && !single_copy_only_ &&
        routes_.both_copy(peer, bytes) && !is_getting(peer) && peer.queue.empty() &&
        peer.ledger().credits(peer) > 0)
        return get_together(lock, peer, local, remote, bytes, completion, *memory);
    lock.unlock();
    await_shared_gets();
    return single_copy(peer, direction, local, remote, bytes, completion, *memory);
}

bool Engine::is_getting(const Peer& peer) {
    return peer.segment.header().getting.load(std::memory_order_relaxed) != 0;
}

velo_status Engine::single_copy(Peer& peer, rma::Direction direction, void* local, std::uint64_t remote,
                                std::size_t bytes, const rma::Completion& completion,
                                singlecopy::RemoteMemory& memory) {
    int error = 0;
    if (direction == rma::Direction::kGet) {
        const Getting getting(mailbox_.header().getting);
        error = memory.read(local, remote, bytes);
    } else {
        error = memory.write(local, remote, bytes);
    }
    {
        std::lock_guard lock(mutex_);
        --peer.copying;
    }
    if (error != 0) {
        tell_failed(peer, error);
        return VELO_ERR_REMOTE;
    }
    completion.done(completion.argument, VELO_OK, 0);
    return VELO_OK;
}

// Whoever waits for it learns no more than that it has failed. Once: of a process that has ended, all fail.
void Engine::tell_failed(Peer& peer, int error) noexcept {
    if (failures_told_.exchange(true, std::memory_order_relaxed)) return;
    std::array<char, 64> host{}, reason{};
    (void)::gethostname(host.data(), host.size() - 1);
    const bool ended = error == 0 || error == ESRCH || has_vanished(peer);
    tell(config_, 0, "the transfer with process %s (rank %u of its job, on %s) has failed: %s",
         platform::process_array(peer.name).data(), static_cast<unsigned>(peer.name), host.data(),
         ended ? "it has ended" : ::strerror_r(error, reason.data(), reason.size()));
}

velo_status Engine::to_departed(Peer& peer) noexcept {
    if (&peer != nobody_.get()) tell_failed(peer, 0);
    return VELO_ERR_REMOTE;
}

velo_status Engine::get_together(std::unique_lock<OptionalMutex>& lock, Peer& peer, void* local,
                                 std::uint64_t remote, std::size_t bytes, const rma::Completion& completion,
                                 singlecopy::RemoteMemory& memory) {
    std::optional<unsigned> cell = share_cells_.take(0, fabric::shm::kGetCells);
    if (!cell) {
        lock.unlock();
        return single_copy(peer, rma::Direction::kGet, local, remote, bytes, completion, memory);
    }
    std::uint32_t generation = share_cells_.next_generation(*cell);
    rma::SharedGet get{*cell,      rma::Share(share_cells_.at(*cell), generation, bytes),
                       &memory,    static_cast<std::byte*>(local),
                       remote,     bytes,
                       completion, peer.index};
    get.share.open();
    rma_.ask_for_help(peer.index, local, remote, bytes, *cell, generation);
    return share(lock, get, peer);
}

// The own part; the peer's is waited for in progress.
velo_status Engine::share(std::unique_lock<OptionalMutex>& lock, rma::SharedGet& get, Peer& peer) {
    lock.unlock();
    {
        const Getting getting(mailbox_.header().getting);
        get.copy_own_part();
    }
    await_shared_gets();
    lock.lock();
    --peer.copying;
    shared_gets_.push_back(get);
    want_housekeeping();
    return VELO_QUEUED;
}

std::optional<std::uint32_t> Engine::announce(Peer& peer, std::size_t bytes) {
    std::lock_guard lock(mutex_);
    if (peer.departed || rma_.memory_of(peer.index) == nullptr) return std::nullopt;
    const auto cell = share_cells_.take(fabric::shm::kGetCells, fabric::shm::kShareCells);
    if (!cell) return std::nullopt;
    const std::uint32_t generation = share_cells_.next_generation(*cell);
    rma::Share(share_cells_.at(*cell), generation, bytes, rma::Share::First::kPeer).open();
    return rma::ticket_of(*cell, generation);
}

rma::SharedGet Engine::announced(const Peer& peer, std::uint32_t ticket, std::size_t bytes,
                                 const rma::Completion& completion) {
    const unsigned cell = rma::cell_of(ticket);
    return {cell,
            rma::Share(share_cells_.at(cell), rma::generation_of(ticket), bytes, rma::Share::First::kPeer),
            nullptr,
            nullptr,
            0,
            bytes,
            completion,
            peer.index,
            true};
}

velo_status Engine::transfer_announced(Peer& peer, std::uint32_t ticket, std::uint32_t deposit, void* local,
                                       std::uint64_t remote, std::size_t bytes,
                                       const rma::Completion& completion, By by) {
    std::unique_lock lock(mutex_);
    rma::SharedGet get = announced(peer, ticket, bytes, completion);
    get.memory = peer.departed ? nullptr : rma_.memory_of(peer.index);
    if (get.memory == nullptr || get.share.claim_all()) {
        share_cells_.give_back(get.cell);
        lock.unlock();
        return transfer_deposited(peer, deposit, local, remote, bytes, completion, by);
    }
    get.local = static_cast<std::byte*>(local);
    get.remote = remote;
    statistics_.rma_single_copy_bytes += bytes;
    ++peer.copying;
    return share(lock, get, peer);
}

bool Engine::withdraw(Peer& peer, std::uint32_t ticket, std::size_t bytes,
                      const rma::Completion& completion) {
    std::unique_lock lock(mutex_);
    rma::SharedGet get = announced(peer, ticket, bytes, completion);
    if (get.share.claim_all()) {
        share_cells_.give_back(get.cell);
        return true;
    }
    get.error = ECANCELED;
    ++peer.copying;
    share(lock, get, peer);
    return false;
}

std::optional<rma::Help> Engine::helping(Peer& peer, std::uint32_t ticket, const std::byte* data,
                                         std::uint64_t remote, std::size_t bytes) {
    std::lock_guard lock(mutex_);
    return help_with(peer, ticket, bytes, data, remote, rma::Share::First::kPeer);
}

std::optional<rma::Help> Engine::help_with(Peer& peer, std::uint32_t ticket, std::uint64_t bytes,
                                           const std::byte* data, std::uint64_t remote,
                                           rma::Share::First first) {
    singlecopy::RemoteMemory* memory = peer.departed ? nullptr : rma_.memory_of(peer.index);
    if (memory == nullptr) return std::nullopt;
    rma::ShareCell* cell = peer.segment.header().shares + rma::cell_of(ticket);
    return rma::Help{rma::Share(cell, rma::generation_of(ticket), bytes, first), memory, data, remote};
}

void Engine::help_now(Peer& peer, rma::Help& help, const rma::Share::Range& first) {
    {
        std::lock_guard lock(mutex_);
        ++peer.copying;
    }
    for (bool more = help.copy(first); more;) more = help.copy();
    std::lock_guard lock(mutex_);
    --peer.copying;
}

void Engine::help_when_idle(const rma::Help& help) {
    std::lock_guard lock(mutex_);
    helps_.push_back(help);
    want_housekeeping();
}

void Engine::give_no_help() {
    std::lock_guard lock(mutex_);
    std::erase_if(helps_, [](const rma::Help& help) { return help.completion.done != nullptr; });
}

// The peer's part of a get is waited for after the own part of the next, so that neither waits for the other
// in a stream.
void Engine::await_shared_gets() {
    {
        std::lock_guard lock(mutex_);
        if (shared_gets_.empty()) return;
        const int patience = config_.threads ? 1 : kPatience;
        for (int i = 0; i < patience && !shared_gets_.front().complete(); ++i) {
        }
    }
    finish_shared_gets();
}

// A peer that has ended in the middle of its part leaves the get without it.
void Engine::finish_shared_gets() {
    std::vector<rma::Completion> done;
    {
        std::lock_guard lock(mutex_);
        std::erase_if(shared_gets_, [&](rma::SharedGet& get) {
            const bool complete = get.complete();
            if (!complete && !peers_.find(get.peer)->ending) return false;
            share_cells_.give_back(get.cell);
            if (!complete || get.error != 0) tell_failed(*peers_.find(get.peer), get.error);
            done.push_back(get.completion);
            done.back().status = complete && get.error == 0 ? VELO_OK : VELO_ERR_REMOTE;
            return true;
        });
    }
    for (const rma::Completion& get : done) get.done(get.argument, get.status, 0);
}

void Engine::help(flow::PeerIndex index, const rma::MessageHeader& request) {
    const auto help = help_with(reachable_peer(index), static_cast<std::uint32_t>(request.compare),
                                request.bytes, reinterpret_cast<const std::byte*>(request.address),
                                request.position, rma::Share::First::kInitiator);
    if (!help) return;
    helps_.push_back(*help);
    want_housekeeping();
}

// Own work comes first: a peer is helped as long as nothing waits in the mailbox.
void Engine::give_help() {
    std::unique_lock lock(mutex_);
    while (!helps_.empty() && idle()) {
        rma::Help help = helps_.front();
        lock.unlock();
        bool more = help.copy();
        lock.lock();
        helps_.front().completion = help.completion;
        if (more) continue;
        helps_.pop_front();
        if (help.completion.done == nullptr) continue;
        lock.unlock();
        help.completion.done(help.completion.argument, VELO_OK, help.completion.result);
        lock.lock();
    }
}

std::uint64_t Engine::begin_deposit(Peer& peer, const void* data, std::size_t bytes) noexcept {
    std::lock_guard lock(mutex_);
    deposits_.announce(peer);
    if (peer.index >= remote_first_ || single_copy_only_ || peer.departed || !may_refer(peer)) return 0;
    if (peer.distance.due()) look_at_distance(peer);
    if (!routes_.stages(peer, data, bytes) && rma_.memory_of(peer.index) != nullptr) return 0;
    return deposits_.begin(peer, data, bytes);
}

void Engine::store_deposit(std::uint64_t deposit) noexcept {
    deposits_.store(deposit);
    if (deposits_.feeds()) want_housekeeping();
}

void Engine::end_deposit(Peer& peer, std::uint64_t deposit) noexcept {
    std::lock_guard lock(mutex_);
    deposits_.end(peer, deposit);
}

// The number only says where to look: what it does not lead to is got from the peer's memory.
velo_status Engine::transfer_deposited(Peer& peer, std::uint32_t deposit, void* local, std::uint64_t remote,
                                       std::size_t bytes, const rma::Completion& completion, By by) {
    const std::uint32_t number = VELO_DEPOSIT_NUMBER(deposit);
    std::size_t copied = 0;
    bool late;
    {
        std::lock_guard lock(mutex_);
        if (peer.departed) return to_departed(peer);
        late = peer.late;
        peer.crossing.got(peer.to_be_got > 0);
        if (number != 0) ++peer.copying;
    }
    if (number != 0) {
        copied = deposits_.copy(peer.segment, number, late, remote, static_cast<std::byte*>(local), bytes);
        std::lock_guard lock(mutex_);
        --peer.copying;
        peer.late = copied == 0;
        statistics_.deposits_read += copied == bytes;
    }
    if (copied < bytes || number == 0)
        return transfer(peer, rma::Direction::kGet, static_cast<std::byte*>(local) + copied, remote + copied,
                        bytes - copied, completion, by);
    completion.done(completion.argument, VELO_OK, 0);
    return VELO_OK;
}

velo_status Engine::atomic(Peer& peer, velo_atomic operation, unsigned width, std::uint64_t remote,
                           std::uint64_t operand, std::uint64_t compare, const rma::Completion& completion) {
    std::lock_guard lock(mutex_);
    if (peer.departed) return to_departed(peer);
    return rma_.start_atomic(peer.index, operation, width, remote, operand, compare, completion);
}

}  // namespace velo::endpoint
