// Batches (wire/batch.h), where what goes by reference is read in place: the rule of the plugin's engine.
// What is appended is there for the receiver at once, whatever the network does; the batch's REF takes its
// turn.
#include "flow/batching.h"

#include <algorithm>

#include "machine/simulation.h"
#include "wire/batch.h"

namespace velo::sim {
namespace {

// As the plugin's engine.
constexpr std::uint64_t kRestPolls = 3;

}  // namespace

void Simulation::open_batches() {
    batches_ = true;
    batches_of_.resize(pairs_.size());
    polling_.resize(processes_.size());
}

bool Simulation::rested(std::uint32_t p, const Batch& to) const {
    return polling_[p].polls - to.polls_at_send >= kRestPolls;
}

bool Simulation::batch_holds(const Batch& open, std::uint32_t bytes) {
    return open.room > 0 && open.used + wire::enclosed_bytes(bytes) + sizeof(wire::Enclosed) <= open.room;
}

// Before a message that would find no credit: those that lie at the head of the mailbox.
void Simulation::take_credits(std::uint32_t p, const Pair& to, std::uint32_t bytes) {
    Process& process = processes_[p];
    const Batch& batch = batches_of_[peers_.first(p) + to.account.peer];
    if (to.head != kNone || bytes > flow::kMostBatchedBytes) return;
    if (!rested(p, batch) && batch_holds(batch, bytes)) return;
    if (process.ledger->credits(to.account) > 0) return;
    while (!process.mailbox.empty() && trains_[process.mailbox.head].kind == TrainKind::kCredit) {
        process.ledger->look();
        retrieve(p);
    }
}

// True: the message lies in a batch.
bool Simulation::send_in_batch(std::uint32_t p, Pair& to, const Pending& message, std::uint32_t credits) {
    if (message.begun) return false;
    const std::size_t pair = peers_.first(p) + to.account.peer;
    Batch& batch = batches_of_[pair];
    if (batch.room > 0) {
        if (!rested(p, batch) && batch_holds(batch, message.bytes)) {
            append(p, to, message.bytes);
            return true;
        }
        close(p, to.account.peer);
    }
    if (goes_plainly(p, message, credits) || message.bytes > flow::kMostBatchedBytes ||
        !flow::opens_batch({.packets = wire::packets_in_run(message.bytes),
                            .allowed = std::min(credits, most_packets_),
                            .counted = processes_[p].ledger->policy().limited(),
                            .bursts = !rested(p, batch) && batch.awaits_answer,
                            .others_wait = message.waited && message.next != kNone}))
        return false;
    const std::size_t least = wire::batch_bytes(message.bytes);
    const flow::Outbox::Chunk chunk = outboxes_[p].take(shares_[pair], flow::kBatchChunkBytes, look());
    if (chunk.room < least) {
        if (chunk.room > 0) outboxes_[p].give_back(chunk);
        return false;
    }
    ++shares_[pair].sent;
    batch.used = 0;
    batch.room = chunk.room;
    polling_[p].open.push_back(to.account.peer);
    append(p, to, message.bytes);
    ++totals_.batches;
    Train reference;
    reference.count = 1;
    reference.chunk = chunk.place;
    reference.batch = true;
    reference.value = processes_[p].ledger->attach(to.account);
    reference.backlogged = marks_backlog_ && message.waited;
    send_train(p, to, reference);
    return true;
}

// The engine's quick way, which comes before batches and leaves the last credits to them.
bool Simulation::goes_plainly(std::uint32_t p, const Pending& message, std::uint32_t credits) const {
    const flow::Ledger& ledger = *processes_[p].ledger;
    if (message.waited || !ledger.policy().limited() || !ledger.delays()) return false;
    if (message.packets < 2) return credits >> flow::kBatchShift > 0;
    return refers_anyway(message) ? credits > 0 : message.packets <= credits >> reference_shift_;
}

void Simulation::append(std::uint32_t p, Pair& to, std::uint32_t bytes) {
    clock_ += from_ns(machine_.costs.local_byte_ns * bytes);
    Batch& batch = batches_of_[peers_.first(p) + to.account.peer];
    batch.used += static_cast<std::uint32_t>(wire::enclosed_bytes(bytes));
    note_sent_to(p, to.account.peer);
    ++totals_.batched_messages;
    publish(p, to.account.peer, bytes, true);
}

void Simulation::close(std::uint32_t p, std::uint32_t index) {
    batches_of_[peers_.first(p) + index].room = 0;
    std::erase(polling_[p].open, index);
    publish(p, index, 0, false);
}

// A message, or the end.
void Simulation::publish(std::uint32_t p, std::uint32_t index, std::uint32_t bytes, bool message) {
    Train train;
    train.kind = TrainKind::kEnclosed;
    train.from = p;
    train.to = peers_.process_at(p, index);
    train.bytes = bytes;
    train.last = message;
    events_.push(clock_, kArrive, 0, trains_.add(train));
}

void Simulation::note_sent_to(std::uint32_t p, std::uint32_t index) {
    Batch& batch = batches_of_[peers_.first(p) + index];
    batch.polls_at_send = polling_[p].polls;
    batch.awaits_answer = true;
}

// What has been appended is there for the receiver.
void Simulation::published(std::uint32_t index) {
    const Train& train = trains_[index];
    Batch& batch = batches_of_[peers_.first(train.to) + peers_.index_of(train.to, train.from)];
    batch.arrived.push(trains_, index);
    Process& process = processes_[train.to];
    if (!batch.follows || process.state != State::kIdle) return;
    process.state = State::kBusy;
    events_.push(events_.now() + poll_, kWake, train.to, 0);
}

void Simulation::follow(std::uint32_t p, std::uint32_t index) {
    Batch& batch = batches_of_[peers_.first(p) + index];
    batch.follows = true;
    polling_[p].followed.push_back(index);
}

// True: something was there of the batch of that peer.
bool Simulation::read_batch(std::uint32_t p, std::uint32_t index) {
    Batch& batch = batches_of_[peers_.first(p) + index];
    bool any = false;
    while (batch.follows && !batch.arrived.empty()) {
        const std::uint32_t position = batch.arrived.pop(trains_);
        const Train what = trains_[position];
        trains_.remove(position);
        any = true;
        if (what.last) {
            batch.awaits_answer = false;
            clock_ += from_ns(machine_.costs.local_byte_ns * what.bytes) + receive_message_;
            message_arrived(p, index);
        } else {
            count_read(what.from, p);
            batch.follows = false;
            std::erase(polling_[p].followed, index);
        }
    }
    return any;
}

bool Simulation::read_batches(std::uint32_t p) {
    bool any = false;
    const std::vector<std::uint32_t>& followed = polling_[p].followed;
    for (std::size_t i = followed.size(); i-- > 0;) any |= read_batch(p, followed[i]);
    return any;
}

// It has looked in vain, and goes on looking until something comes.
void Simulation::begin_polling(std::uint32_t p) {
    Polling& polling = polling_[p];
    ++polling.polls;
    polling.since = clock_;
    polling.idle = true;
    if (!polling.open.empty()) events_.push(clock_ + poll_ * kRestPolls, kRested, p, 0);
}

void Simulation::end_polling(std::uint32_t p) {
    Polling& polling = polling_[p];
    if (!polling.idle) return;
    polling.idle = false;
    if (events_.now() > polling.since && poll_ > 0) polling.polls += (events_.now() - polling.since) / poll_;
}

// Who has polled a few times, and sent nothing, closes its batches.
void Simulation::close_rested(std::uint32_t p) {
    Polling& polling = polling_[p];
    if (!polling.idle) return;
    end_polling(p);
    polling.idle = true;
    polling.since = clock_ = events_.now();
    actor_ = p;
    for (std::size_t i = polling.open.size(); i-- > 0;)
        if (const std::uint32_t index = polling.open[i]; rested(p, batches_of_[peers_.first(p) + index]))
            close(p, index);
}

}  // namespace velo::sim
