#include "engine/large/shared_gets.h"

#include <utility>

namespace velo::engine {
namespace {

// How often a process looks whether its peer has done its part of the get before: the part is on its way,
// unless the peer is not running. With threads once, as others may wait for the mutex meanwhile.
constexpr int kPatience = 20000;

// Who begins with a get has its cell from one part of them or the other.
constexpr SharedGets::First first_of(std::uint32_t ticket) {
    return rma::cell_of(ticket) < fabric::shm::kGetCells ? SharedGets::First::kInitiator
                                                         : SharedGets::First::kPeer;
}

rma::Share share_of(rma::ShareCell* cell, std::uint32_t ticket, std::uint64_t bytes) {
    return {cell, rma::generation_of(ticket), bytes, first_of(ticket)};
}

}  // namespace

std::optional<std::uint32_t> SharedGets::open(std::size_t bytes, First first) {
    const auto cell = first == First::kInitiator
                          ? cells_.take(0, fabric::shm::kGetCells)
                          : cells_.take(fabric::shm::kGetCells, fabric::shm::kShareCells);
    if (!cell) return std::nullopt;
    const std::uint32_t ticket = rma::ticket_of(*cell, cells_.next_generation(*cell));
    share_of(cells_.at(*cell), ticket, bytes).open();
    return ticket;
}

rma::SharedGet SharedGets::get(std::uint32_t ticket, const Get& get, singlecopy::RemoteMemory* memory) const {
    const unsigned cell = rma::cell_of(ticket);
    return {cell,          share_of(cells_.at(cell), ticket, get.bytes),
            memory,        static_cast<std::byte*>(get.local),
            get.remote,    get.bytes,
            get.completion};
}

velo_status SharedGets::carry_out(Lock& lock, Peer& peer, rma::SharedGet get) {
    ++peer.copying;
    lock.unlock();
    {
        const Getting getting(getting_);
        get.copy_own_part();
    }
    await();
    std::lock_guard again(mutex_);
    --peer.copying;
    started_.push_back({&peer, get});
    idle_.want();
    return VELO_QUEUED;
}

void SharedGets::await() {
    {
        std::lock_guard lock(mutex_);
        if (started_.empty()) return;
        const int patience = mutex_.is_real() ? 1 : kPatience;
        for (int i = 0; i < patience && !started_.front().get.complete(); ++i) {
        }
    }
    finish();
}

// A peer that has ended in the middle of its part leaves the get without it.
void SharedGets::finish() {
    std::vector<rma::Completion> done;
    {
        std::lock_guard lock(mutex_);
        std::erase_if(started_, [&](Started& started) {
            const bool complete = started.get.complete();
            if (!complete && !started.peer->ending) return false;
            done.push_back(end(started, complete));
            return true;
        });
    }
    for (const rma::Completion& get : done) get.done(get.argument, get.status, 0);
}

rma::Completion SharedGets::end(const Started& started, bool complete) {
    cells_.give_back(started.get.cell);
    const bool failed = !complete || started.get.error != 0;
    if (failed) host_.failed(*started.peer, started.get.error);
    rma::Completion completion = started.get.completion;
    completion.status = failed ? VELO_ERR_REMOTE : VELO_OK;
    return completion;
}

void SharedGets::depart(Peer& peer, const singlecopy::RemoteMemory* memory,
                        std::vector<rma::Completion>* lost) {
    std::erase_if(started_, [&](Started& started) {
        if (started.peer != &peer) return false;
        lost->push_back(end(started, started.get.complete()));
        return true;
    });
    std::erase_if(helps_, [&](const rma::Help& help) {
        if (memory == nullptr || help.memory != memory) return false;
        if (help.completion.done == nullptr) return true;
        host_.failed(peer, 0);
        lost->push_back(help.completion);
        return true;
    });
}

rma::Help SharedGets::help(Peer& peer, std::uint32_t ticket, std::uint64_t bytes, const std::byte* data,
                           std::uint64_t remote, singlecopy::RemoteMemory& memory) {
    rma::ShareCell* const cell = peer.segment.header().shares + rma::cell_of(ticket);
    return {share_of(cell, ticket, bytes), &memory, data, remote};
}

void SharedGets::help_when_idle(const rma::Help& help) {
    helps_.push_back(help);
    idle_.want();
}

void SharedGets::help_now(Peer& peer, rma::Help& help, const rma::Share::Range& first) {
    {
        std::lock_guard lock(mutex_);
        ++peer.copying;
    }
    for (bool more = help.copy(first); more;) more = help.copy();
    std::lock_guard lock(mutex_);
    --peer.copying;
}

void SharedGets::give_no_help() {
    std::lock_guard lock(mutex_);
    std::erase_if(helps_, [](const rma::Help& help) { return help.completion.done != nullptr; });
}

int SharedGets::run(bool) {
    give_help();
    finish();
    return 0;
}

void SharedGets::give_help() {
    std::unique_lock lock(mutex_);
    while (!helps_.empty() && host_.is_quiet()) {
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

}  // namespace velo::engine
