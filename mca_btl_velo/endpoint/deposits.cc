#include "endpoint/deposits.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "platform/copy.h"
#include "platform/ticks.h"

namespace velo::endpoint {
namespace {

// How often either side looks for a step of the other, which is on its way unless the other is not running.
constexpr int kLooks = 2000;

// The name of a deposit: what the peer is told is the number of the chunk, from 1 on, or 0. Its owner knows
// which one it was there, which way it went, and whether its end tells something about that.
constexpr std::uint32_t kTried = 1U << 8;
constexpr unsigned kTicketShift = 9;
constexpr std::uint32_t number_of(std::uint32_t deposit) {
    return deposit & (kTried - 1);
}

rma::Deposit words_of(const fabric::shm::OutboxChunk& chunk) {
    return {&chunk.deposited, &chunk.taken,
            reinterpret_cast<std::uintptr_t>(chunk.data) % rma::Deposit::kPage};
}

}  // namespace

Deposits::Deposits(OptionalMutex& mutex, const fabric::shm::Segment& mailbox, flow::Outbox& outbox,
                   bool tries, bool threads)
    : mutex_(mutex), mailbox_(mailbox), outbox_(outbox), tries_(tries), threads_(threads) {
    under_way_.reserve(outbox_.plan().size(flow::OutboxPlan::kSizes - 1).count);
}

Deposits::Ways::Ticket Deposits::ticket_of(std::uint32_t name) {
    return name >> kTicketShift & ((1U << Ways::kTicketBits) - 1);
}

unsigned Deposits::way_of(std::uint32_t name) {
    return Ways::way_of(ticket_of(name));
}

std::optional<std::uint32_t> Deposits::place_of(std::uint32_t name) {
    if (number_of(name) == 0) return std::nullopt;
    return flow::OutboxPlan::place_of_large(number_of(name) - 1);
}

// Of the largest chunks, which REFs need only of messages that are longer than usual.
std::uint32_t Deposits::begin(Peer& peer, const void* data, std::size_t bytes) {
    if (bytes <= outbox_.plan().size(1).room() || bytes > kMost) return 0;
    std::uint32_t tried = 0;
    if (tries_) {
        tried = kTried | contest_.begin(bytes, platform::ticks) << kTicketShift;
        if (way_of(tried) == kElsewhere) return tried;
    }
    flow::Outbox::Chunk chunk = take(bytes);
    if (chunk.room == 0 && await_room(peer)) chunk = take(bytes);
    if (chunk.room == 0) return tried;
    const std::uint32_t number = 1 + flow::OutboxPlan::number_of_large(chunk.place);
    if (number_of(number) != number || chunk.room < rma::Deposit::kRing) {
        outbox_.give_back(chunk);
        return tried;
    }
    const fabric::shm::OutboxChunk there = mailbox_.chunk(chunk.place);
    there.unread.store(1, std::memory_order_relaxed);  // published, as the rest, with the number
    there.address = reinterpret_cast<std::uint64_t>(data);
    words_of(there).open();
    const std::uint32_t name = (++begun_ << (kTicketShift + Ways::kTicketBits)) | tried | number;
    const Storing by = way_of(tried) == kByString ? Storing::kString : usual_storing(peer.distance.far());
    under_way_.push_back({&peer, name, by, false, static_cast<const std::byte*>(data), bytes, 0});
    return name;
}

flow::Outbox::Chunk Deposits::take(std::size_t bytes) {
    return outbox_.take_at_hand(lent_, bytes, flow::Outbox::Reading::kInAnyOrder,
                                [](std::uint32_t) { return false; });
}

std::size_t Deposits::store(const UnderWay& deposit) const {
    const fabric::shm::OutboxChunk there = mailbox_.chunk(*place_of(deposit.name));
    const fabric::MessageView all{{deposit.data, nullptr}, {deposit.bytes, 0}};
    const auto pieces =
        deposit.by == Storing::kVectors ? rma::Deposit::Pieces::kPages : rma::Deposit::Pieces::kLong;
    return words_of(there).fill(deposit.stored, deposit.bytes, pieces,
                                [&](std::size_t place, std::size_t at, std::size_t step) {
                                    fill(there.data + place, all, at, step, deposit.by);
                                });
}

void Deposits::store(std::uint32_t name) {
    UnderWay deposit{};
    int patience = kLooks;
    {
        std::lock_guard lock(mutex_);
        const auto found = find(name);
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
    const auto found = find(name);
    found->stored = deposit.stored;
    found->storing = false;
    if (deposit.peer->ending) return forget(found);
    if (found->stored < found->bytes && !threads_) {
        ++feeding_;
        found->feeds = true;
    }
}

void Deposits::feed() {
    for (UnderWay& deposit : under_way_) {
        if (!deposit.feeds) continue;
        deposit.stored = store(deposit);
        if (deposit.stored == deposit.bytes) stop_feeding(deposit);
    }
}

void Deposits::stop_feeding(UnderWay& deposit) {
    if (std::exchange(deposit.feeds, false)) --feeding_;
}

Deposits::Place Deposits::find(std::uint32_t name) {
    return std::find_if(under_way_.begin(), under_way_.end(),
                        [name](const UnderWay& deposit) { return deposit.name == name; });
}

void Deposits::forget(Place deposit) {
    stop_feeding(*deposit);
    outbox_.give_back_at(*place_of(deposit->name));
    under_way_.erase(deposit);
}

void Deposits::end(Peer& peer, std::uint32_t name, std::size_t bytes) {
    if (peer.to_be_got > 0) --peer.to_be_got;  // not those of a process that was in its place
    if ((name & kTried) != 0) contest_.ended(bytes, ticket_of(name), platform::ticks);
    if (number_of(name) == 0) return;
    if (const auto found = find(name); found != under_way_.end()) forget(found);
}

template <class Ended>
bool Deposits::end_if(Ended&& ended) {
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
bool Deposits::await_room(const Peer& peer) {
    if (std::none_of(under_way_.begin(), under_way_.end(),
                     [&](const UnderWay& deposit) { return deposit.peer == &peer; }))
        return false;
    std::size_t before = 0;
    for (int looks = 0; looks < kLooks; ++looks) {
        if (end_read()) return true;
        if (peer.crossing || threads_) return false;
        if (feeding_ > 0) feed();
        std::size_t taken = 0;
        for (const UnderWay& deposit : under_way_)
            if (deposit.peer == &peer) taken += taken_of(deposit);
        if (taken != before) looks = 0;
        before = taken;
    }
    return false;
}

std::size_t Deposits::taken_of(const UnderWay& deposit) const {
    return words_of(mailbox_.chunk(*place_of(deposit.name))).taken(deposit.bytes);
}

bool Deposits::end_read() {
    return end_if([this](const UnderWay& deposit) {
        return deposit.stored == deposit.bytes && taken_of(deposit) == deposit.bytes;
    });
}

void Deposits::end_all_of(const Peer& peer) {
    end_if([&](const UnderWay& deposit) { return deposit.peer == &peer; });
}

// Where two send to each other, each stores for the other while it waits.
std::size_t Deposits::copy(const fabric::shm::Segment& segment, std::uint32_t place, std::uint64_t remote,
                           std::byte* to, std::size_t bytes) {
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
            feed();
        }
    }
    return copied;
}

}  // namespace velo::endpoint
