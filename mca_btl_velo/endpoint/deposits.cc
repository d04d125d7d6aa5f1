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

// The name of a deposit: what the peer is told is its number, from 1 on, or 0. Its owner knows which one it
// was there, which way it went, and whether its end tells something about that. A number stands for a chunk:
// the first so many for one each, in order, the next for the same ones, and so on. So a chunk may serve
// several deposits that the peer knows of, one after the other: the first has its first number.
constexpr std::uint32_t kTried = 1U << 8;
constexpr unsigned kTicketShift = 9;
constexpr std::uint32_t kMostNumbers = kTried - 1;
constexpr std::uint32_t number_of(std::uint32_t deposit) {
    return deposit & kMostNumbers;
}

std::uint32_t chunks_of(const flow::OutboxPlan& plan) {
    return plan.size(flow::OutboxPlan::kSizes - 1).count;
}

std::uint32_t place_by(const flow::OutboxPlan& plan, std::uint32_t number) {
    const std::uint32_t chunks = chunks_of(plan);
    return flow::OutboxPlan::place_of_large(number <= chunks ? number - 1 : (number - 1) % chunks);
}

rma::Deposit words_of(const fabric::shm::OutboxChunk& chunk) {
    return {&chunk.number, &chunk.deposited, &chunk.taken,
            reinterpret_cast<std::uintptr_t>(chunk.data) % rma::Deposit::kPage};
}

}  // namespace

Deposits::Deposits(OptionalMutex& mutex, const fabric::shm::Segment& mailbox, flow::Outbox& outbox,
                   bool tries, bool threads)
    : mutex_(mutex), mailbox_(mailbox), outbox_(outbox), tries_(tries), threads_(threads) {
    under_way_.reserve(chunks_of(outbox_.plan()));
    waiting_.reserve(kMostWaiting);
    last_number_ = chunks_of(outbox_.plan());
}

Deposits::Ways::Ticket Deposits::ticket_of(std::uint32_t name) {
    return name >> kTicketShift & ((1U << Ways::kTicketBits) - 1);
}

unsigned Deposits::way_of(std::uint32_t name) {
    return Ways::way_of(ticket_of(name));
}

Storing Deposits::storing_of(const Peer& peer, std::uint32_t name) {
    if (way_of(name) == kByString) return Storing::kString;
    return usual_storing(peer.distance.far() != (way_of(name) == kOtherwise));
}

// The next number of a chunk that the peer will have read when it comes to what it is about to be told, since
// it was told of all that is there before that. 0: none.
std::uint32_t Deposits::await_chunk(const Peer& peer) {
    const flow::OutboxPlan& plan = outbox_.plan();
    if (threads_ || under_way_.empty() || waiting_.size() == kMostWaiting) return 0;
    for (const UnderWay& deposit : under_way_)
        if (deposit.peer != &peer) return 0;
    for (std::uint32_t tries = 0; tries < chunks_of(plan); ++tries) {
        last_number_ = last_number_ < kMostNumbers ? last_number_ + 1 : chunks_of(plan) + 1;
        if (last_number_ > kMostNumbers) break;
        const std::uint32_t place = place_by(plan, last_number_);
        const auto is_there = [place](const UnderWay& deposit) { return deposit.place == place; };
        const auto has_it = [this](const UnderWay& deposit) {
            return number_of(deposit.name) == last_number_;
        };
        if (std::none_of(under_way_.begin(), under_way_.end(), is_there)) continue;
        if (std::any_of(under_way_.begin(), under_way_.end(), has_it)) break;
        if (std::any_of(waiting_.begin(), waiting_.end(), has_it)) break;
        return last_number_;
    }
    return 0;
}

void Deposits::open(const UnderWay& deposit) const {
    const fabric::shm::OutboxChunk there = mailbox_.chunk(deposit.place);
    there.unread.store(1, std::memory_order_relaxed);  // published, as the rest, with the number
    there.address = reinterpret_cast<std::uint64_t>(deposit.data);
    words_of(there).open(number_of(deposit.name));
}

// Of the largest chunks, which REFs need only of messages that are longer than usual.
std::uint32_t Deposits::begin(Peer& peer, const void* data, std::size_t bytes) {
    if (bytes <= outbox_.plan().size(1).room() || bytes > kMost) return 0;
    std::uint32_t tried = 0;
    if (tries_) {
        tried = kTried | contest_.begin(bytes, platform::ticks) << kTicketShift;
        if (way_of(tried) == kElsewhere) return tried;
    }
    const Storing by = storing_of(peer, tried);
    flow::Outbox::Chunk chunk = take(bytes, by);
    if (chunk.room == 0 && end_read()) chunk = take(bytes, by);
    const bool waits = chunk.room == 0;
    const std::uint32_t number =
        waits ? await_chunk(peer) : 1 + flow::OutboxPlan::number_of_large(chunk.place);
    if (number == 0) return tried;
    if (number > kMostNumbers || (!waits && chunk.room < rma::Deposit::kRing)) {
        outbox_.give_back(chunk);
        return tried;
    }
    const std::uint32_t name = (++begun_ << (kTicketShift + Ways::kTicketBits)) | tried | number;
    std::vector<UnderWay>& list = waits ? waiting_ : under_way_;
    list.push_back({&peer, name, waits ? place_by(outbox_.plan(), number) : chunk.place, by, false,
                    static_cast<const std::byte*>(data), bytes, 0, waits});
    if (waits)
        ++feeding_;
    else
        open(list.back());
    return name;
}

flow::Outbox::Chunk Deposits::take(std::size_t bytes, Storing by) {
    return outbox_.take_at_hand(
        lent_, bytes, flow::Outbox::Reading::kInAnyOrder, [](std::uint32_t) { return false; },
        by == Storing::kPastCaches ? flow::Outbox::Pick::kNext : flow::Outbox::Pick::kFirst);
}

std::size_t Deposits::store(const UnderWay& deposit) const {
    const fabric::shm::OutboxChunk there = mailbox_.chunk(deposit.place);
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
        if (found == under_way_.end() || found->feeds) return;  // it waits, or has waited, for its chunk
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
    if (!waiting_.empty()) end_read();
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

// Its chunk goes to the first one that waits for it.
void Deposits::forget(Place deposit) {
    stop_feeding(*deposit);
    const auto next = std::find_if(waiting_.begin(), waiting_.end(),
                                   [&](const UnderWay& waits) { return waits.place == deposit->place; });
    if (next == waiting_.end()) {
        outbox_.give_back_at(deposit->place);
        under_way_.erase(deposit);
    } else {
        *deposit = *next;
        waiting_.erase(next);
        open(*deposit);
    }
}

void Deposits::end(Peer& peer, std::uint32_t name, std::size_t bytes) {
    if (peer.to_be_got > 0) --peer.to_be_got;  // not those of a process that was in its place
    if ((name & kTried) != 0) contest_.ended(bytes, ticket_of(name), platform::ticks);
    if (number_of(name) == 0) return;
    if (const auto found = find(name); found != under_way_.end()) return forget(found);
    end_waiting([name](const UnderWay& deposit) { return deposit.name == name; });
}

template <class Ended>
void Deposits::end_waiting(Ended&& ended) {
    if (waiting_.empty()) return;
    feeding_ -= static_cast<std::uint32_t>(std::erase_if(waiting_, ended));
}

template <class Ended>
bool Deposits::end_if(Ended&& ended) {
    const std::size_t before = under_way_.size();
    for (auto at = under_way_.begin(); at != under_way_.end();)
        if (!at->storing && ended(*at))
            forget(at);  // another one is in its place
        else
            ++at;
    return under_way_.size() < before;
}

std::size_t Deposits::taken_of(const UnderWay& deposit) const {
    return words_of(mailbox_.chunk(deposit.place)).taken(deposit.bytes);
}

bool Deposits::end_read() {
    return end_if([this](const UnderWay& deposit) {
        return deposit.stored == deposit.bytes && taken_of(deposit) == deposit.bytes;
    });
}

void Deposits::end_all_of(const Peer& peer) {
    const auto its = [&](const UnderWay& deposit) { return deposit.peer == &peer; };
    end_waiting(its);
    end_if(its);
}

// Where two send to each other, each stores for the other before it reads, and while it waits.
std::size_t Deposits::copy(const fabric::shm::Segment& segment, std::uint32_t number, bool late,
                           std::uint64_t remote, std::byte* to, std::size_t bytes) {
    const flow::OutboxPlan& plan = segment.outbox_plan();
    if (chunks_of(plan) == 0) return 0;
    const fabric::shm::OutboxChunk chunk = segment.chunk(place_by(plan, number));
    if (chunk.unread.load(std::memory_order_acquire) == 0) return 0;
    rma::Deposit words = words_of(chunk);
    if (feeding_ > 0) feed_others();
    for (int looks = late ? 1 : kLooks; !words.is_open(number);) {
        if (--looks == 0) return 0;
        if (feeding_ > 0) feed_others();
    }
    // A deposit is read once: what was behind its beginning may lie there now.
    if (chunk.address != remote || words.taken(bytes) != 0) return 0;
    std::size_t copied = 0;
    for (int looks = 0; looks < kLooks && copied < bytes; ++looks) {
        const std::size_t before = copied;
        copied = words.take(copied, bytes, [&](std::size_t from, std::size_t at, std::size_t step) {
            platform::copy(to + at, chunk.data + from, step);
        });
        if (copied != before) looks = 0;
        if (feeding_ > 0 && copied < bytes) feed_others();
    }
    return copied;
}

const char* Deposits::violation() const {
    const auto feeds = [](const UnderWay& deposit) { return deposit.feeds; };
    const auto feeding = std::count_if(under_way_.begin(), under_way_.end(), feeds) +
                         std::count_if(waiting_.begin(), waiting_.end(), feeds);
    if (feeding != feeding_) return "deposits that are fed are miscounted";
    for (const UnderWay& waits : waiting_) {
        const auto is_before = [&](const UnderWay& deposit) {
            return deposit.place == waits.place && deposit.peer == waits.peer;
        };
        const auto has_its_number = [&](const UnderWay& deposit) {
            return &deposit != &waits && number_of(deposit.name) == number_of(waits.name);
        };
        if (std::none_of(under_way_.begin(), under_way_.end(), is_before))
            return "a deposit waits for a chunk that is not of its peer";
        if (std::any_of(under_way_.begin(), under_way_.end(), has_its_number) ||
            std::any_of(waiting_.begin(), waiting_.end(), has_its_number))
            return "two deposits have one number";
    }
    return "";
}

void Deposits::feed_others() {
    std::lock_guard lock(mutex_);
    feed();
}

}  // namespace velo::endpoint
