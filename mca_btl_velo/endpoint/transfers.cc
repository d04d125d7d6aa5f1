// RMA transfers: which way each takes, and the ones that two processes carry out together.
#include <mutex>

#include "endpoint/engine.h"
#include "platform/failure.h"
#include "platform/ticks.h"

namespace velo::endpoint {
namespace {

// How often a process looks whether its peer has done its part of the get before: the part is on its way,
// unless the peer is not running.
constexpr int kPatience = 20000;

}  // namespace

velo_status Engine::transfer(Peer& peer, rma::Direction direction, void* local, std::uint64_t remote,
                             std::size_t bytes, const rma::Completion& completion) {
    std::unique_lock lock(mutex_);
    if (peer.departed) [[unlikely]]
        return VELO_ERR_REMOTE;
    singlecopy::RemoteMemory* memory = rma_.memory_of(peer.index);
    auto route = rma::Route::kSingleCopy;
    if (memory == nullptr) {
        route = rma::Route::kMailbox;
    } else if (direction == rma::Direction::kGet && !single_copy_only_) {
        route = rma_.route(bytes, peer.distance.far());
    }
    if (route == rma::Route::kMailbox) {
        rma_.start(direction, peer.index, local, remote, bytes, completion);
        return VELO_QUEUED;
    }
    statistics_.rma_single_copy_bytes += bytes;
    ++peer.copying;
    if (route == rma::Route::kDualCopy && peer.queue.empty() && peer.ledger().credits(peer) > 0)
        return get_together(lock, peer, local, remote, bytes, completion, *memory);
    lock.unlock();
    await_shared_gets();
    return single_copy(peer, direction, local, remote, bytes, completion, *memory);
}

velo_status Engine::single_copy(Peer& peer, rma::Direction direction, void* local, std::uint64_t remote,
                                std::size_t bytes, const rma::Completion& completion,
                                singlecopy::RemoteMemory& memory) {
    std::uint64_t started = platform::ticks();
    int error = direction == rma::Direction::kGet ? memory.read(local, remote, bytes)
                                                  : memory.write(local, remote, bytes);
    {
        std::lock_guard lock(mutex_);
        --peer.copying;
        if (error == 0 && direction == rma::Direction::kGet) rma_.measured(bytes, started);
    }
    if (error != 0) return VELO_ERR_REMOTE;
    completion.done(completion.argument, VELO_OK, 0);
    return VELO_OK;
}

velo_status Engine::get_together(std::unique_lock<OptionalMutex>& lock, Peer& peer, void* local,
                                 std::uint64_t remote, std::size_t bytes, const rma::Completion& completion,
                                 singlecopy::RemoteMemory& memory) {
    std::optional<unsigned> cell = share_cells_.take();
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
    rma_.together_started(bytes);
    rma_.ask_for_help(peer.index, local, remote, bytes, *cell, generation);
    lock.unlock();

    get.copy_own_part();

    await_shared_gets();
    lock.lock();
    --peer.copying;
    shared_gets_.push_back(get);
    want_housekeeping();
    return VELO_QUEUED;
}

// The peer's part of a get is waited for after the own part of the next, so that neither waits for the other
// in a stream.
void Engine::await_shared_gets() {
    {
        std::lock_guard lock(mutex_);
        if (shared_gets_.empty()) return;
        for (int i = 0; i < kPatience && !shared_gets_.front().complete(); ++i) {
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
            rma_.together_completed(get.bytes);
            done.push_back(get.completion);
            done.back().status = complete && get.error == 0 ? VELO_OK : VELO_ERR_REMOTE;
            return true;
        });
    }
    for (const rma::Completion& get : done) get.done(get.argument, get.status, 0);
}

void Engine::help(flow::PeerIndex index, const rma::MessageHeader& request) {
    Peer& peer = reachable_peer(index);
    singlecopy::RemoteMemory* memory = rma_.memory_of(index);
    if (memory == nullptr) return;
    auto generation = static_cast<std::uint32_t>(request.compare >> 8);
    rma::ShareCell* cell = peer.segment.header().shares + (request.compare & 0xff);
    helps_.push_back(rma::Help{rma::Share(cell, generation, request.bytes), memory,
                               reinterpret_cast<std::byte*>(request.address), request.position});
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
        if (!more) helps_.pop_front();
    }
}

velo_status Engine::atomic(Peer& peer, velo_atomic operation, unsigned width, std::uint64_t remote,
                           std::uint64_t operand, std::uint64_t compare, const rma::Completion& completion) {
    std::lock_guard lock(mutex_);
    if (peer.departed) return VELO_ERR_REMOTE;
    return rma_.start_atomic(peer.index, operation, width, remote, operand, compare, completion);
}

}  // namespace velo::endpoint
