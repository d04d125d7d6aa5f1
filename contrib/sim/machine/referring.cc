// By reference (flow/outbox.h): a message that would take more packets than its credits allow leaves as one,
// a REF, and stays in the outbox of its sender until a get has brought it to the receiver. The network
// interface of the sender answers alone, as in a rendezvous, but nobody waits: the sender has its message
// away, the receiver goes on with its mailbox, and later messages of the pair are matched in their turn.
#include <algorithm>

#include "machine/simulation.h"
#include "wire/packet.h"

namespace velo::sim {
namespace {

// As the plugin's engine: what is read in place goes by reference from here on, whatever the credits.
constexpr std::uint32_t kReferFrom = 512;

}  // namespace

void Simulation::open_outboxes() {
    refers_ = true;
    reference_shift_ = flow_.by_reference == ByReference::kAlways ? 31 : 1;
    const flow::OutboxPlan plan(flow_.outbox);
    outboxes_.assign(processes_.size(), flow::Outbox(plan));
    shares_.resize(pairs_.size());
    read_.resize(pairs_.size());
    landings_of_.resize(pairs_.size());
    if (flow_.most_gets == 0) open_batches();
}

// Whatever the credits.
bool Simulation::refers_anyway(const Pending& message) const {
    return flow_.most_gets == 0 && message.bytes >= kReferFrom;
}

// The rule of the plugin's engine. True: what the outbox had room for has left.
bool Simulation::refer(std::uint32_t p, Pair& to, Pending& message, std::uint32_t credits) {
    const std::uint32_t allowed = std::min(credits, most_packets_);
    if (message.packets < 2 || allowed == 0) return false;
    if (message.packets <= allowed >> reference_shift_ && !refers_anyway(message)) return false;
    flow::OutboxShare& share = shares_[peers_.first(p) + to.account.peer];
    const flow::Outbox::Chunk chunk = outboxes_[p].take(share, message.bytes, look());
    if (chunk.room == 0) return false;
    ++share.sent;
    Train train;
    train.count = 1;
    train.chunk = chunk.place;
    train.bytes = std::min(message.bytes, chunk.room);
    train.last = train.bytes == message.bytes;
    train.value = processes_[p].ledger->attach(to.account);
    train.backlogged = marks_backlog_ && message.waited;
    totals_.messages_by_reference += train.last;
    message.begun = true;
    message.bytes -= train.bytes;
    message.packets =
        train.last ? 0 : static_cast<std::uint32_t>(wire::kClassicFraming.packets_for(message.bytes));
    clock_ += from_ns(machine_.costs.local_byte_ns * train.bytes);
    send_train(p, to, train);
    return true;
}

// Its sender learns of it when it looks.
void Simulation::count_read(std::uint32_t sender, std::uint32_t reader) {
    ++read_[peers_.first(sender) + peers_.index_of(sender, reader)];
}

// The receiver has come to a REF.
void Simulation::fetch(std::uint32_t p, std::uint32_t index, const Train& reference) {
    if (flow_.most_gets == 0) return read_in_place(p, index, reference);
    std::uint32_t slot = free_landing_;
    if (slot == kNone) {
        slot = static_cast<std::uint32_t>(landings_.size());
        landings_.emplace_back();
    } else {
        free_landing_ = landings_[slot].next;
        landings_[slot] = {};
    }
    landings_[slot].ends_message = reference.last;
    Landings& of = landings_of_[peers_.first(p) + index];
    (of.first == kNone ? of.first : landings_[of.last].next) = slot;
    of.last = slot;

    Train request;
    request.kind = TrainKind::kRmaRequest;
    request.from = p;
    request.to = reference.from;
    request.count = 1;
    request.value = request.bytes = reference.bytes;
    request.chunk = reference.chunk;
    request.landing = slot;
    request.last = reference.last;
    processes_[p].pulls.push(trains_, trains_.add(request));
    pull(p);
}

void Simulation::read_in_place(std::uint32_t p, std::uint32_t index, const Train& reference) {
    clock_ += from_ns(machine_.costs.local_byte_ns * reference.bytes);
    count_read(reference.from, p);
    if (!reference.last) return;
    clock_ += receive_message_;
    message_arrived(p, index);
}

// No more gets at a time than keep the interface busy: a receiver that asked for all would meet its data in
// the queues of its senders, and others' behind it.
void Simulation::pull(std::uint32_t p) {
    Process& process = processes_[p];
    while (process.pulling < flow_.most_gets && !process.pulls.empty()) {
        const std::uint32_t request = process.pulls.pop(trains_);
        ++process.pulling;
        clock_ += send_packet_;
        events_.push(clock_, kSubmit, 0, request);
    }
}

// A message has ended whose packets carried it. True: it comes after one whose data is under way.
bool Simulation::lands_later(std::uint32_t p, std::uint32_t index) {
    const Landings& of = landings_of_[peers_.first(p) + index];
    if (of.first == kNone) return false;
    ++landings_[of.last].behind;
    return true;
}

// The get is done: the chunk is free, and the receiver finds the data when it looks next.
void Simulation::give_back(Train& data) {
    count_read(data.from, data.to);
    data.kind = TrainKind::kReferred;
}

void Simulation::landed(std::uint32_t p, std::uint32_t index, const Train& data) {
    clock_ += from_ns(machine_.costs.local_byte_ns * data.bytes) + (data.last ? receive_message_ : 0);
    landings_[data.landing].landed = true;
    --processes_[p].pulling;
    pull(p);
    Landings& of = landings_of_[peers_.first(p) + index];
    while (of.first != kNone && landings_[of.first].landed) {
        const std::uint32_t slot = of.first;
        Landing& first = landings_[slot];
        for (std::uint32_t i = first.ends_message + first.behind; i > 0; --i) message_arrived(p, index);
        of.first = first.next;
        first.next = free_landing_;
        free_landing_ = slot;
    }
}

}  // namespace velo::sim
