#include "engine/large/deposits.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "engine/staging/filling.h"
#include "platform/copy.h"

namespace velo::engine {
namespace {

// How often the reader looks for the next step of the owner, which is on its way unless the owner is not
// running.
constexpr int kLooks = 2000;

// The name of a deposit: its number, which the peer is told, and which deposit of that number it is.
constexpr unsigned kNumberBits = 8;
constexpr std::uint32_t number_of(std::uint64_t deposit) {
    return VELO_DEPOSIT_NUMBER(deposit);
}

rma::Deposit words_of(fabric::shm::DepositHeader& header, std::size_t ring, const std::byte* data) {
    return {&header.number, &header.stored, &header.taken, ring,
            reinterpret_cast<std::uintptr_t>(data) % rma::Deposit::kPage};
}

}  // namespace

Deposits::Deposits(platform::OptionalMutex& mutex, fabric::shm::Segment& mailbox, Staging& staging,
                   const velo_config& config, Idle& idle)
    : mutex_(mutex),
      mailbox_(mailbox),
      staging_(staging),
      rings_(mailbox.deposit_plan(), staging.rotating()),
      config_(config),
      idle_(idle) {
    if (rings_.plan().none()) return;
    under_way_.reserve(flow::DepositPlan::kRings);
    waiting_.reserve(flow::DepositPlan::kRings);
}

// Queues a deposit behind earlier ones of the same peer. The peer reads deposits in the order in which it was
// told of them, so a ring will have room by the time it comes to this one. Returns the ring's number; 0:
// none.
std::uint32_t Deposits::await_room(const Peer& peer) {
    if (config_.threads || under_way_.empty()) return 0;
    for (const UnderWay& deposit : under_way_)
        if (deposit.peer != &peer) return 0;
    const std::uint32_t ring = rings_.reserve();
    if (ring == flow::DepositPlan::kRings) return 0;
    mailbox_.deposit_header(ring).number.store(0, std::memory_order_relaxed);
    return flow::DepositPlan::number_of(ring);
}

void Deposits::open(const UnderWay& deposit) const {
    fabric::shm::DepositHeader& header = mailbox_.deposit_header(deposit.ring);
    const flow::DepositRings::Ring& ring = rings_.ring(deposit.ring);
    mailbox_.fault_rotating(ring.place + std::size_t{ring.bytes});
    // Published with the number.
    header.address = reinterpret_cast<std::uint64_t>(deposit.data);
    header.place = ring.place;
    header.ring = ring.bytes;
    words_of(header, ring.bytes, nullptr).open(number_of(deposit.name));
}

std::uint64_t Deposits::begin(Peer& peer, const void* data, std::size_t bytes) {
    if (bytes < kLeastDeposited || bytes > kMost || !staging_.has_rotating()) return 0;
    const platform::Copying by = peer.copy_by;
    flow::DepositRings::Ring ring = take(bytes, by);
    if (ring.none() && end_read()) ring = take(bytes, by);
    const bool waits = ring.none();
    const std::uint32_t number = waits ? await_room(peer) : flow::DepositPlan::number_of(ring.index);
    if (number == 0) return 0;
    const std::uint64_t name = ++begun_ << kNumberBits | number;
    std::vector<UnderWay>& list = waits ? waiting_ : under_way_;
    list.push_back({&peer, name, flow::DepositPlan::ring_of(number), by, false,
                    static_cast<const std::byte*>(data), bytes, 0, waits});
    if (waits) {
        ++unfinished_;
        idle_.want();
    } else {
        open(list.back());
    }
    return name;
}

flow::DepositRings::Ring Deposits::take(std::size_t bytes, platform::Copying by) {
    const std::uint32_t index = rings_.reserve();
    if (index == flow::DepositPlan::kRings) return {};
    if (cut(index, bytes, by)) return rings_.ring(index);
    rings_.give_back(index);
    return {};
}

// The outbox hears of what has been read when it needs a chunk itself.
bool Deposits::cut(std::uint32_t ring, std::size_t bytes, platform::Copying by) {
    const bool streams = by != platform::Copying::kVectors;
    const bool first = rings_.cut(ring, bytes, streams);
    if (first && rings_.ring(ring).place >= std::exchange(last_place_, rings_.ring(ring).place)) return true;
    staging_.sweep();
    return first || rings_.cut(ring, bytes, streams);
}

std::size_t Deposits::store(const UnderWay& deposit) const {
    const flow::DepositRings::Ring& ring = rings_.ring(deposit.ring);
    std::byte* const there = mailbox_.ring_data(ring.place);
    const fabric::MessageView all{{deposit.data, nullptr}, {deposit.bytes, 0}};
    const auto pieces = deposit.by == platform::Copying::kVectors ? rma::Deposit::Pieces::kPages
                                                                  : rma::Deposit::Pieces::kLong;
    return words_of(mailbox_.deposit_header(deposit.ring), ring.bytes, there)
        .fill(deposit.stored, deposit.bytes, pieces,
              [&](std::size_t place, std::size_t at, std::size_t step) {
                  fill(there + place, all, at, step, deposit.by);
              });
}

void Deposits::store(std::uint64_t name) {
    UnderWay deposit{};
    {
        std::lock_guard lock(mutex_);
        const auto found = find(name);
        if (found == under_way_.end() || found->continues) return;  // it waits, or has waited, for its ring
        found->storing = true;
        deposit = *found;
    }
    deposit.stored = store(deposit);
    std::lock_guard lock(mutex_);
    const auto found = find(name);
    found->stored = deposit.stored;
    found->storing = false;
    if (deposit.peer->ending) return forget(found);
    if (found->stored < found->bytes && !config_.threads) {
        ++unfinished_;
        found->continues = true;
        idle_.want();
    }
}

void Deposits::continue_staging() {
    if (!waiting_.empty()) {
        end_read();
        give_room();  // a chunk of the outbox may have been in its way
    }
    for (UnderWay& deposit : under_way_) {
        if (!deposit.continues) continue;
        deposit.stored = store(deposit);
        if (deposit.stored == deposit.bytes) stop_staging(deposit);
    }
}

void Deposits::stop_staging(UnderWay& deposit) {
    if (std::exchange(deposit.continues, false)) --unfinished_;
}

Deposits::Place Deposits::find(std::uint64_t name) {
    return std::find_if(under_way_.begin(), under_way_.end(),
                        [name](const UnderWay& deposit) { return deposit.name == name; });
}

// Its room goes to those that wait for some.
void Deposits::forget(Place deposit) {
    stop_staging(*deposit);
    rings_.give_back(deposit->ring);
    under_way_.erase(deposit);
    give_room();
}

void Deposits::give_room() {
    while (!waiting_.empty() && cut(waiting_.front().ring, waiting_.front().bytes, waiting_.front().by)) {
        under_way_.push_back(waiting_.front());
        open(under_way_.back());
        waiting_.erase(waiting_.begin());
    }
}

void Deposits::end(Peer& peer, std::uint64_t name) {
    if (peer.to_be_got > 0) --peer.to_be_got;  // not those of a process that was in its place
    if (number_of(name) == 0) return;
    if (const auto found = find(name); found != under_way_.end()) return forget(found);
    end_waiting([name](const UnderWay& deposit) { return deposit.name == name; });
}

template <class Ended>
void Deposits::end_waiting(Ended&& ended) {
    unfinished_ -= static_cast<std::uint32_t>(std::erase_if(waiting_, [&](const UnderWay& waits) {
        if (!ended(waits)) return false;
        rings_.give_back(waits.ring);
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

void Deposits::vacated(Peer& peer) {
    peer.to_be_got = 0;
    peer.staging_missed = false;
}

void Deposits::ended(Peer& peer) {
    const auto its = [&](const UnderWay& deposit) { return deposit.peer == &peer; };
    end_waiting(its);
    end_if(its);
}

// Of two processes that send to each other each stores for the other before it reads, and while it waits.
std::size_t Deposits::copy(const fabric::shm::Segment& segment, std::uint32_t number, bool missed,
                           std::uint64_t remote, std::byte* to, std::size_t bytes) {
    const std::uint32_t index = flow::DepositPlan::ring_of(number);
    const flow::DepositPlan& plan = segment.deposit_plan();
    if (plan.none() || index == flow::DepositPlan::kRings) return 0;
    fabric::shm::DepositHeader& header = segment.deposit_header(index);
    if (unfinished_ > 0) continue_others();
    for (int looks = missed ? 1 : kLooks; !words_of(header, 0, nullptr).is_open(number);) {
        if (--looks == 0) return 0;
        if (unfinished_ > 0) continue_others();
    }
    const std::uint32_t place = header.place, ring = header.ring;
    if (!plan.holds(place, ring)) return 0;
    segment.fault_rotating(place + std::size_t{ring});
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
        if (unfinished_ > 0 && copied < bytes) continue_others();
    }
    return copied;
}

const char* Deposits::violation() const {
    const auto continues = [](const UnderWay& deposit) { return deposit.continues; };
    const auto feeding = std::count_if(under_way_.begin(), under_way_.end(), continues) +
                         std::count_if(waiting_.begin(), waiting_.end(), continues);
    if (feeding != unfinished_) return "deposits that are fed are miscounted";
    for (const UnderWay& waits : waiting_) {
        const auto has_its_number = [&](const UnderWay& deposit) {
            return &deposit != &waits && number_of(deposit.name) == number_of(waits.name);
        };
        if (!rings_.ring(waits.ring).none() || !rings_.is_allocated(waits.ring))
            return "a deposit that waits for room has some, or no ring";
        if (std::any_of(under_way_.begin(), under_way_.end(), has_its_number) ||
            std::any_of(waiting_.begin(), waiting_.end(), has_its_number))
            return "two deposits have one number";
    }
    return "";
}

void Deposits::continue_others() {
    std::lock_guard lock(mutex_);
    continue_staging();
}

int Deposits::run(bool) {
    continue_others();
    return 0;
}

}  // namespace velo::engine
