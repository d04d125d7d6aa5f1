// Deposits (rma/deposit.h): data of gets that their owner stores in its outbox without being asked.
#include <algorithm>
#include <mutex>
#include <utility>

#include "endpoint/engine.h"
#include "endpoint/filling.h"
#include "platform/copy.h"
#include "rma/deposit.h"

namespace velo::endpoint {
namespace {

// How often either side looks for a step of the other, which is on its way unless the other is not running.
constexpr int kLooks = 2000;

// The name of a deposit: what the peer is told is the number of the chunk, from 1 on, or 0. Its owner knows
// which one it was there, and whether its end tells something about the way that it went.
constexpr std::uint32_t kTried = 1U << 8, kElsewhere = 1U << 9, kNext = 1U << 10;
constexpr std::uint32_t number_of(std::uint32_t deposit) {
    return deposit & (kTried - 1);
}
std::uint32_t place_of(std::uint32_t deposit) {
    return flow::OutboxPlan::place_of_large(number_of(deposit) - 1);
}

rma::Deposit words_of(const fabric::shm::OutboxChunk& chunk) {
    return {&chunk.deposited, &chunk.taken,
            reinterpret_cast<std::uintptr_t>(chunk.data) % rma::Deposit::kPiece};
}

}  // namespace

// Of the largest chunks, which REFs need only of messages that are longer than usual.
std::uint32_t Engine::begin_deposit(Peer& peer, const void* data, std::size_t bytes) noexcept {
    std::lock_guard lock(mutex_);
    ++peer.to_be_got;
    if (bytes <= outbox_.plan().size(1).room() || bytes > (peer.crossing ? kMostCrossing : kMostDeposited) ||
        peer.index >= remote_first_ || single_copy_only_ || peer.departed || !may_refer(peer))
        return 0;
    std::uint32_t tried = 0;
    if (measures_ways()) {
        tried = kTried;
        if (depositing_.begin(bytes, platform::ticks) != 0) return kTried | kElsewhere;
    }
    const auto unread = [](std::uint32_t) { return false; };
    const auto take = [&] {
        return outbox_.take_at_hand(deposits_, bytes, flow::Outbox::Reading::kInAnyOrder, unread);
    };
    flow::Outbox::Chunk chunk = take();
    if (chunk.room == 0 && await_room(peer)) chunk = take();
    if (chunk.room == 0) return tried;
    const std::uint32_t number = 1 + flow::OutboxPlan::number_of_large(chunk.place);
    if (number_of(number) != number || chunk.room < rma::Deposit::kRing) {
        outbox_.give_back(chunk);
        return tried;
    }
    statistics_.outbox_high_water = outbox_.counters().high_water;
    const fabric::shm::OutboxChunk there = mailbox_.chunk(chunk.place);
    there.unread.store(1, std::memory_order_relaxed);  // published, as the rest, with the number
    there.address = reinterpret_cast<std::uint64_t>(data);
    words_of(there).open();
    const std::uint32_t deposit = (deposits_begun_ += kNext) | tried | number;
    under_way_.push_back(
        {&peer, deposit, peer.distance.far(), false, static_cast<const std::byte*>(data), bytes, 0});
    return deposit;
}

std::size_t Engine::store(const UnderWay& deposit) const {
    const fabric::shm::OutboxChunk there = mailbox_.chunk(place_of(deposit.name));
    const fabric::MessageView all{{deposit.data, nullptr}, {deposit.bytes, 0}};
    return words_of(there).fill(deposit.stored, deposit.bytes,
                                [&](std::size_t place, std::size_t at, std::size_t step) {
                                    if (deposit.far) return fill(there.data + place, all, at, step, true);
                                    platform::copy(there.data + place, deposit.data + at, step);
                                });
}

// As much as the peer takes while it is stored. The rest is stored in progress, as the peer goes on to take
// it; with threads it is left to the get, as the memory may be gone once that is over.
void Engine::store_deposit(std::uint32_t name) noexcept {
    UnderWay deposit{};
    int patience = kLooks;
    {
        std::lock_guard lock(mutex_);
        const auto found = find_deposit(name);
        if (found == under_way_.end()) return;
        found->storing = true;
        deposit = *found;
        if (deposit.peer->crossing) patience = 1;  // it may be here, too
    }
    for (int looks = 0; looks < patience; ++looks) {
        const std::size_t before = deposit.stored;
        deposit.stored = store(deposit);
        if (deposit.stored == deposit.bytes) break;
        if (deposit.stored == before) continue;
        looks = 0;
        if (deposit.stored > rma::Deposit::kRing) patience = kLooks;
    }
    std::lock_guard lock(mutex_);
    const auto found = find_deposit(name);
    found->stored = deposit.stored;
    found->storing = false;
    if (deposit.peer->ending) return forget(found);
    if (found->stored < found->bytes && !config_.threads) {
        ++feeding_;
        found->feeds = true;
        want_housekeeping();
    }
}

// What is to be stored yet of deposits, as far as there is room.
void Engine::feed_deposits() {
    for (UnderWay& deposit : under_way_) {
        if (!deposit.feeds) continue;
        deposit.stored = store(deposit);
        if (deposit.stored == deposit.bytes) stop_feeding(deposit);
    }
}

void Engine::stop_feeding(UnderWay& deposit) {
    if (std::exchange(deposit.feeds, false)) --feeding_;
}

std::vector<Engine::UnderWay>::iterator Engine::find_deposit(std::uint32_t name) {
    return std::find_if(under_way_.begin(), under_way_.end(),
                        [name](const UnderWay& deposit) { return deposit.name == name; });
}

void Engine::forget(std::vector<UnderWay>::iterator deposit) {
    stop_feeding(*deposit);
    outbox_.give_back_at(place_of(deposit->name));
    under_way_.erase(deposit);
}

// Of one that its peer has read, and whose chunk serves another since, nothing is left.
void Engine::end_deposit(Peer& peer, std::uint32_t name, std::size_t bytes) noexcept {
    std::lock_guard lock(mutex_);
    if (peer.to_be_got > 0) --peer.to_be_got;  // not those of a process that was in its place
    if ((name & kTried) != 0 && depositing_.first(bytes) == ((name & kElsewhere) == 0))
        depositing_.went(bytes, platform::ticks);
    if (number_of(name) == 0) return;
    if (const auto found = find_deposit(name); found != under_way_.end()) forget(found);
}

template <class Ended>
bool Engine::end_deposits_if(Ended&& ended) {
    const std::size_t before = under_way_.size();
    for (auto at = under_way_.begin(); at != under_way_.end();)
        if (!at->storing && ended(*at))
            forget(at);  // the next one is in its place
        else
            ++at;
    return under_way_.size() < before;
}

// A peer that takes what was stored before will be done with a chunk soon; meanwhile it is stored what it
// makes room for.
bool Engine::await_room(const Peer& peer) {
    if (std::none_of(under_way_.begin(), under_way_.end(),
                     [&](const UnderWay& deposit) { return deposit.peer == &peer; }))
        return false;
    std::size_t before = 0;
    for (int looks = 0; looks < kLooks; ++looks) {
        if (end_read_deposits()) return true;
        if (peer.crossing || config_.threads) return false;
        if (feeding_ > 0) feed_deposits();
        std::size_t taken = 0;
        for (const UnderWay& deposit : under_way_)
            if (deposit.peer == &peer) taken += taken_of(deposit);
        if (taken != before) looks = 0;
        before = taken;
    }
    return false;
}

std::size_t Engine::taken_of(const UnderWay& deposit) const {
    return words_of(mailbox_.chunk(place_of(deposit.name))).taken(deposit.bytes);
}

bool Engine::end_read_deposits() {
    return end_deposits_if([this](const UnderWay& deposit) {
        return deposit.stored == deposit.bytes && taken_of(deposit) == deposit.bytes;
    });
}

void Engine::end_deposits_of(const Peer& peer) {
    end_deposits_if([&](const UnderWay& deposit) { return deposit.peer == &peer; });
}

// The number only says where to look: what it does not lead to is got from the peer's memory.
velo_status Engine::transfer_deposited(Peer& peer, std::uint32_t deposit, void* local, std::uint64_t remote,
                                       std::size_t bytes, const rma::Completion& completion, By by) {
    const bool is_there = number_of(deposit) != 0;
    std::size_t copied = 0;
    {
        std::lock_guard lock(mutex_);
        if (peer.departed) return VELO_ERR_REMOTE;
        peer.crossing = peer.to_be_got > 0;
        if (is_there) ++peer.copying;
    }
    if (is_there) {
        copied =
            copy_deposited(peer.segment, place_of(deposit), remote, static_cast<std::byte*>(local), bytes);
        std::lock_guard lock(mutex_);
        --peer.copying;
        statistics_.deposits_read += copied == bytes;
    }
    if (copied < bytes || !is_there)
        return transfer(peer, rma::Direction::kGet, static_cast<std::byte*>(local) + copied, remote + copied,
                        bytes - copied, completion, by);
    completion.done(completion.argument, VELO_OK, 0);
    return VELO_OK;
}

// Returns how much of the peer's data was there, from the beginning, before the patience with it was lost.
// Where two send to each other, each stores for the other while it waits.
std::size_t Engine::copy_deposited(const fabric::shm::Segment& segment, std::uint32_t place,
                                   std::uint64_t remote, std::byte* to, std::size_t bytes) {
    if (!is_lent(segment, {place, rma::Deposit::kRing, 0})) return 0;
    const fabric::shm::OutboxChunk chunk = segment.chunk(place);
    rma::Deposit words = words_of(chunk);
    // A deposit is read once: what was behind its beginning may lie there now.
    if (chunk.address != remote || words.taken(bytes) != 0) return 0;
    std::size_t copied = 0;
    for (int looks = 0; looks < kLooks && copied < bytes; ++looks) {
        const std::size_t before = copied;
        copied = words.take(copied, bytes, [&](std::size_t from, std::size_t at, std::size_t step) {
            platform::copy(to + at, chunk.data + from, step);
        });
        if (copied != before) looks = 0;
        if (feeding_ > 0 && copied < bytes) {
            std::lock_guard lock(mutex_);
            feed_deposits();
        }
    }
    return copied;
}

}  // namespace velo::endpoint
