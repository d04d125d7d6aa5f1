#include "endpoint/deposits.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <utility>

#include "endpoint/telling.h"
#include "platform/copy.h"
#include "platform/ticks.h"

namespace velo::endpoint {
namespace {

// How often either side looks for a step of the other, which is on its way unless the other is not running.
constexpr int kLooks = 2000;

// The name of a deposit: what the peer is told is its number, or 0. Its owner knows which one it was there,
// which way it went, and whether its end tells something about that.
constexpr std::uint32_t kTried = 1U << 8;
constexpr unsigned kTicketShift = 9;
constexpr std::uint32_t number_of(std::uint64_t deposit) {
    return VELO_DEPOSIT_NUMBER(deposit);
}

rma::Deposit words_of(fabric::shm::DepositHeader& header, std::size_t ring, const std::byte* data) {
    return {&header.number, &header.stored, &header.taken, ring,
            reinterpret_cast<std::uintptr_t>(data) % rma::Deposit::kPage};
}

}  // namespace

Deposits::Deposits(OptionalMutex& mutex, fabric::shm::Segment& mailbox, flow::InTurn& in_turn,
                   flow::Outbox& outbox, bool tries, const velo_config& config)
    : mutex_(mutex),
      mailbox_(mailbox),
      outbox_(outbox),
      rings_(mailbox.deposit_plan(), in_turn),
      tries_(tries),
      config_(config) {
    if (rings_.plan().none()) return;
    contest_.settles(kInTurn, in_turn.bytes());
    under_way_.reserve(flow::DepositPlan::kRings);
    waiting_.reserve(kMostWaiting);
}

Deposits::Ways::Ticket Deposits::ticket_of(std::uint64_t name) {
    return static_cast<Ways::Ticket>(name >> kTicketShift) & ((1U << Ways::kTicketBits) - 1);
}

unsigned Deposits::way_of(std::uint64_t name) {
    return Ways::way_of(ticket_of(name));
}

Deposits::Kind Deposits::kind_of(std::uint64_t name) {
    return way_of(name) == kInTurn ? Kind::kInTurn : Kind::kAtHand;
}

Storing Deposits::storing_of(const Peer& peer, std::uint64_t name) {
    const unsigned way = way_of(name);
    return storing_for(peer.distance.far() != (way == kOtherwise), way == kByString);
}

// Unless somebody has named its size, a process that sends little does without the memory: to zero the pages
// and to map them, here and at the peer, takes as long as to get some ten times as many bytes.
bool Deposits::is_worth(std::size_t bytes) {
    constexpr std::uint64_t kTimes = 8;
    sent_bytes_ += bytes;
    return !tries_ || config_.deposit_bytes != 0 || sent_bytes_ >= kTimes * rings_.plan().bytes();
}

// Rings have memory when the first of their kind is needed.
bool Deposits::have_memory(Kind kind) {
    if (memory_[kind] != Memory::kNotYet) return memory_[kind] == Memory::kThere;
    try {
        mailbox_.provide(kind);
        memory_[kind] = Memory::kThere;
        return true;
    } catch (const std::exception& failure) {
        memory_[kind] = Memory::kRefused;
        tell(config_, 5, "no memory for storing long messages ahead: %s", failure.what());
        return false;
    }
}

// For one that waits for others of its peer, which will have read them when it comes to what it is about to
// be told, since it was told of them before that. 0: none.
std::uint32_t Deposits::await_ring(Kind kind, const Peer& peer) {
    if (config_.threads || waiting_.size() == kMostWaiting) return 0;
    bool others = false;
    for (const UnderWay& deposit : under_way_) {
        if (kind_of(deposit.name) != kind) continue;
        if (deposit.peer != &peer) return 0;
        others = true;
    }
    if (!others) return 0;
    return kind == Kind::kAtHand ? next_turn() : await_room();
}

// The next number of a ring at hand.
std::uint32_t Deposits::next_turn() {
    constexpr const flow::DepositPlan::Numbers& kIts = flow::DepositPlan::kNumbers[Kind::kAtHand];
    for (std::uint32_t tries = 0; tries < kIts.rings; ++tries) {
        last_turn_ = last_turn_ + 1 < kIts.end ? last_turn_ + 1 : kIts.again();
        if (!rings_.is_lent(flow::DepositPlan::ring_of(last_turn_))) continue;
        const auto has_it = [this](const UnderWay& deposit) { return number_of(deposit.name) == last_turn_; };
        if (std::any_of(under_way_.begin(), under_way_.end(), has_it)) break;
        if (std::any_of(waiting_.begin(), waiting_.end(), has_it)) break;
        return last_turn_;
    }
    return 0;
}

// Until it has room, nothing is there.
std::uint32_t Deposits::await_room() {
    const std::uint32_t ring = rings_.reserve_in_turn();
    if (ring == flow::DepositPlan::kRings) return 0;
    mailbox_.deposit_header(ring).number.store(0, std::memory_order_relaxed);
    return flow::DepositPlan::first_number_of(ring);
}

void Deposits::open(const UnderWay& deposit) const {
    fabric::shm::DepositHeader& header = mailbox_.deposit_header(deposit.ring);
    const flow::DepositRings::Ring& ring = rings_.ring(deposit.ring);
    // Published with the number.
    header.address = reinterpret_cast<std::uint64_t>(deposit.data);
    header.place = ring.place;
    header.ring = ring.bytes;
    words_of(header, ring.bytes, nullptr).open(number_of(deposit.name));
}

// Of two that send to each other as much, one leads, and the other stores as it does: each trial is of both
// ways together, and what the trials of two would do to each other is not in it.
std::uint32_t Deposits::follow_or_try(Peer& peer, std::size_t bytes) {
    const unsigned size = Ways::index_of(bytes);
    const std::size_t crossing = peer.crossing.bytes();
    peer.crossing.pass();
    const bool crosses = crossing >= kLeast && Ways::index_of(crossing) == size;
    if (crosses && peer.name < config_.process_name) {
        const unsigned told = peer.segment.header().storing[size].load(std::memory_order_relaxed);
        if (told != 0 && told <= kWays) return Ways::other(told - 1) << kTicketShift;
    }
    const bool far = peer.distance.far();
    const std::size_t least = !crosses ? kLeastFar : far ? kLeastCrossingFar : kLeastCrossing;
    if ((crosses || far) && bytes >= least) contest_.expect(bytes, kElsewhere);
    const Ways::Ticket ticket = contest_.begin(bytes, platform::ticks);
    const auto tells = static_cast<std::uint8_t>(1 + Ways::way_of(ticket));
    std::atomic<std::uint8_t>& told = mailbox_.header().storing[size];
    if (told.load(std::memory_order_relaxed) != tells) told.store(tells, std::memory_order_relaxed);
    return kTried | ticket << kTicketShift;
}

void Deposits::tell_way(std::size_t bytes) const {
    constexpr const char* kTexts[kWays] = {"are stored ahead in turn", "are stored ahead at hand",
                                           "are stored ahead at hand, as for peers at the other distance",
                                           "are stored ahead at hand, by the string instruction",
                                           "are left to gets"};
    tell_choice(config_, "messages by rendezvous", bytes, kTexts[contest_.way(bytes)]);
}

std::uint64_t Deposits::begin(Peer& peer, const void* data, std::size_t bytes) {
    if (bytes < kLeastDeposited || bytes > kMost || rings_.plan().none() || !is_worth(bytes)) return 0;
    std::uint32_t tried = Ways::other(kUsual) << kTicketShift;
    if (tries_) {
        tried = follow_or_try(peer, bytes);
        if (way_of(tried) == kElsewhere) return tried;
    }
    const Kind kind = kind_of(tried);
    if (!have_memory(kind)) return tried;
    const Storing by = storing_of(peer, tried);
    flow::DepositRings::Ring ring = take(kind, bytes, by);
    if (ring.none() && end_read()) ring = take(kind, bytes, by);
    const bool waits = ring.none();
    const std::uint32_t number =
        waits ? await_ring(kind, peer) : flow::DepositPlan::first_number_of(ring.index);
    if (number == 0) return tried;
    const std::uint64_t name = (++begun_ << (kTicketShift + Ways::kTicketBits)) | tried | number;
    std::vector<UnderWay>& list = waits ? waiting_ : under_way_;
    list.push_back({&peer, name, flow::DepositPlan::ring_of(number), by, false,
                    static_cast<const std::byte*>(data), bytes, 0, waits});
    if (waits)
        ++feeding_;
    else
        open(list.back());
    return name;
}

flow::DepositRings::Ring Deposits::take(Kind kind, std::size_t bytes, Storing by) {
    using Pick = flow::DepositRings::Pick;
    if (kind == Kind::kInTurn) {
        const std::uint32_t index = rings_.reserve_in_turn();
        if (index == flow::DepositPlan::kRings) return {};
        if (cut(index, bytes)) return rings_.ring(index);
        rings_.give_back(index);
        return {};
    }
    return rings_.take_at_hand(by == Storing::kPastCaches ? Pick::kNext : Pick::kFirst);
}

// The outbox hears of what has been read when it needs a chunk itself.
bool Deposits::cut(std::uint32_t ring, std::size_t bytes) {
    const bool first = rings_.cut(ring, bytes);
    if (first && rings_.ring(ring).place >= std::exchange(last_place_, rings_.ring(ring).place)) return true;
    outbox_.sweep([this](std::uint32_t place) { return mailbox_.is_read(place); });
    return first || rings_.cut(ring, bytes);
}

std::size_t Deposits::store(const UnderWay& deposit) const {
    const flow::DepositRings::Ring& ring = rings_.ring(deposit.ring);
    std::byte* const there = mailbox_.ring_data(ring.place);
    const fabric::MessageView all{{deposit.data, nullptr}, {deposit.bytes, 0}};
    const auto pieces =
        deposit.by == Storing::kVectors ? rma::Deposit::Pieces::kPages : rma::Deposit::Pieces::kLong;
    return words_of(mailbox_.deposit_header(deposit.ring), ring.bytes, there)
        .fill(deposit.stored, deposit.bytes, pieces,
              [&](std::size_t place, std::size_t at, std::size_t step) {
                  fill(there + place, all, at, step, deposit.by);
              });
}

void Deposits::store(std::uint64_t name) {
    UnderWay deposit{};
    int patience = kLooks;
    {
        std::lock_guard lock(mutex_);
        const auto found = find(name);
        if (found == under_way_.end() || found->feeds) return;  // it waits, or has waited, for its ring
        found->storing = true;
        deposit = *found;
        if (deposit.peer->crossing.bytes() > 0) patience = 1;  // it may be here, too
    }
    for (int looks = 0; looks < patience; ++looks) {
        const std::size_t before = deposit.stored;
        deposit.stored = store(deposit);
        if (deposit.stored == deposit.bytes) break;
        if (deposit.stored == before) continue;
        looks = 0;
        if (deposit.stored > rings_.ring(deposit.ring).bytes) patience = kLooks;
    }
    std::lock_guard lock(mutex_);
    const auto found = find(name);
    found->stored = deposit.stored;
    found->storing = false;
    if (deposit.peer->ending) return forget(found);
    if (found->stored < found->bytes && !config_.threads) {
        ++feeding_;
        found->feeds = true;
    }
}

void Deposits::feed() {
    if (!waiting_.empty()) {
        end_read();
        give_room();  // a chunk of the outbox may have been in its way
    }
    for (UnderWay& deposit : under_way_) {
        if (!deposit.feeds) continue;
        deposit.stored = store(deposit);
        if (deposit.stored == deposit.bytes) stop_feeding(deposit);
    }
}

void Deposits::stop_feeding(UnderWay& deposit) {
    if (std::exchange(deposit.feeds, false)) --feeding_;
}

Deposits::Place Deposits::find(std::uint64_t name) {
    return std::find_if(under_way_.begin(), under_way_.end(),
                        [name](const UnderWay& deposit) { return deposit.name == name; });
}

// Its ring, or its room, goes to the first one that waits for it.
void Deposits::forget(Place deposit) {
    stop_feeding(*deposit);
    const bool in_turn = kind_of(deposit->name) == Kind::kInTurn;
    const auto next = std::find_if(waiting_.begin(), waiting_.end(),
                                   [&](const UnderWay& waits) { return waits.ring == deposit->ring; });
    if (next != waiting_.end()) {
        *deposit = *next;
        waiting_.erase(next);
        return open(*deposit);
    }
    rings_.give_back(deposit->ring);
    under_way_.erase(deposit);
    if (in_turn) give_room();
}

void Deposits::give_room() {
    for (auto waits = waiting_.begin(); waits != waiting_.end();) {
        if (kind_of(waits->name) != Kind::kInTurn) {
            ++waits;
            continue;
        }
        if (!cut(waits->ring, waits->bytes)) return;
        under_way_.push_back(*waits);
        open(under_way_.back());
        waits = waiting_.erase(waits);
    }
}

void Deposits::end(Peer& peer, std::uint64_t name, std::size_t bytes) {
    if (peer.to_be_got > 0) --peer.to_be_got;  // not those of a process that was in its place
    if ((name & kTried) != 0 && contest_.ended(bytes, ticket_of(name), platform::ticks)) tell_way(bytes);
    if (number_of(name) == 0) return;
    if (const auto found = find(name); found != under_way_.end()) return forget(found);
    end_waiting([name](const UnderWay& deposit) { return deposit.name == name; });
}

template <class Ended>
void Deposits::end_waiting(Ended&& ended) {
    feeding_ -= static_cast<std::uint32_t>(std::erase_if(waiting_, [&](const UnderWay& waits) {
        if (!ended(waits)) return false;
        if (kind_of(waits.name) == Kind::kInTurn) rings_.give_back(waits.ring);
        return true;
    }));
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
    return words_of(mailbox_.deposit_header(deposit.ring), 0, nullptr).taken(deposit.bytes);
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
    const std::uint32_t index = flow::DepositPlan::ring_of(number);
    const flow::DepositPlan& plan = segment.deposit_plan();
    if (plan.none() || index == flow::DepositPlan::kRings) return 0;
    fabric::shm::DepositHeader& header = segment.deposit_header(index);
    if (feeding_ > 0) feed_others();
    for (int looks = late ? 1 : kLooks; !words_of(header, 0, nullptr).is_open(number);) {
        if (--looks == 0) return 0;
        if (feeding_ > 0) feed_others();
    }
    const std::uint32_t place = header.place, ring = header.ring;
    if (!plan.holds(place, ring)) return 0;
    if (place >= plan.begin_of(Kind::kInTurn)) segment.fault_in_turn();
    const std::byte* const data = segment.ring_data(place);
    rma::Deposit words = words_of(header, ring, data);
    // A deposit is read once: what was behind its beginning may lie there now.
    if (header.address != remote || words.taken(bytes) != 0) return 0;
    std::size_t copied = 0;
    for (int looks = 0; looks < kLooks && copied < bytes; ++looks) {
        const std::size_t before = copied;
        copied = words.take(copied, bytes, [&](std::size_t from, std::size_t at, std::size_t step) {
            platform::copy(to + at, data + from, step);
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
            return deposit.ring == waits.ring && deposit.peer == waits.peer;
        };
        const auto has_its_number = [&](const UnderWay& deposit) {
            return &deposit != &waits && number_of(deposit.name) == number_of(waits.name);
        };
        if (kind_of(waits.name) == Kind::kInTurn
                ? !rings_.ring(waits.ring).none() || !rings_.is_lent(waits.ring)
                : std::none_of(under_way_.begin(), under_way_.end(), is_before))
            return "a deposit waits for a ring that is not of its peer";
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
