// Arrivals, and a process that takes them out of its mailbox.
#include <algorithm>
#include <bit>
#include <utility>

#include "machine/simulation.h"

namespace velo::sim {

void Simulation::arrive(std::uint32_t index) {
    Train& train = trains_[index];
    if (train.kind == TrainKind::kRmaRequest) return serve_rma(index);
    if (train.kind == TrainKind::kEnclosed) return published(index);
    Process& process = processes_[train.to];
    if (train.kind == TrainKind::kRmaData) {
        // The back-pressure ends with the first packet, as everywhere; the notification comes with the last.
        network_.accepted(train.from, std::exchange(train.count, 0));
        if (events_.now() < train.done) return events_.push(train.done, kArrive, 0, index);
        if (train.chunk == kNone && scheduling_) transfer_ended(train.landing);
        if (train.chunk == kNone && !scheduling_) --process.fetching;
    }
    if (refusing_ && !admit(index)) return;
    if (train.takes_slot() && flow_.finite_mailbox && !process.policy->limited()) {
        const std::uint32_t capacity = process.policy->config().mailbox_slots();
        const bool room = process.slots_used == 0 || process.slots_used + train.count <= capacity;
        if (!process.refused.empty() || !room) return process.refused.push(trains_, index);
    }
    accept(index);
}

void Simulation::accept(std::uint32_t index) {
    Train& train = trains_[index];
    const std::uint32_t to = train.to;
    Process& process = processes_[to];
    if (train.kind != TrainKind::kLocal) network_.accepted(train.from, train.count);
    if (train.kind == TrainKind::kRmaData && train.chunk != kNone) give_back(train);
    if (train.kind == TrainKind::kRmaData) {
        trains_.remove(index);
    } else {
        if (train.takes_slot()) process.slots_used += train.count;
        process.slots_high_water = std::max(process.slots_high_water, process.slots_used);
        if (process.slots_used > process.capacity)
            fault_ = "the mailbox of process " + std::to_string(to) + " overflows";
        process.mailbox.push(trains_, index);
    }
    if (process.state != State::kIdle) return;
    process.state = State::kBusy;
    events_.push(events_.now() + poll_, kWake, to, 0);
}

// A get request at the node of the data, answered by the interface alone.
void Simulation::serve_rma(std::uint32_t index) {
    network_.accepted(trains_[index].from, 1);
    Train answer;
    answer.kind = TrainKind::kRmaData;
    answer.from = trains_[index].to;
    answer.to = trains_[index].from;
    answer.chunk = trains_[index].chunk;
    answer.bytes = trains_[index].bytes;
    answer.landing = trains_[index].landing;
    answer.last = trains_[index].last;
    const double packet_bytes = machine_.costs.rma_packet_bytes;
    answer.count = static_cast<std::uint32_t>(trains_[index].value / packet_bytes) + 1;
    trains_.remove(index);
    network_.submit(trains_.add(answer));
}

bool Simulation::receive(std::uint32_t p, const Step& step) {
    Process& process = processes_[p];
    if (step.kind == StepKind::kReceiveAny) {
        if (process.unmatched < step.bytes) return false;
        process.unmatched -= step.bytes;
        return true;
    }
    Pair& from = pair(p, peers_.index_of(p, step.peer));
    if (from.unmatched == 0) return false;
    --from.unmatched;
    --process.unmatched;
    const bool local = machine_.limic && network_.node_of(p) == network_.node_of(step.peer);
    if (step.bytes <= machine_.eager_limit || local) return true;
    // Rendezvous: the receiver gets the data.
    ++process.fetching;
    get(p, step.peer, step.bytes, kNone);
    return true;
}

void Simulation::get(std::uint32_t p, std::uint32_t from, std::uint32_t bytes, std::uint32_t landing) {
    Train request;
    request.kind = TrainKind::kRmaRequest;
    request.from = p;
    request.to = from;
    request.count = 1;
    request.value = bytes;
    request.landing = landing;
    clock_ += send_packet_;
    submit(request);
}

// Takes the oldest train out of the mailbox.
void Simulation::retrieve(std::uint32_t p) {
    Process& process = processes_[p];
    const std::uint32_t position = process.mailbox.pop(trains_);
    const Train train = trains_[position];
    trains_.remove(position);
    const std::uint32_t index = peers_.index_of(p, train.from);
    digest_ =
        std::rotl(digest_ ^ (events_.now() + train.from * 0x9e3779b97f4a7c15 + train.to), 23) * 0x100000001b3;
    if (train.takes_slot()) {
        process.slots_used -= train.count;
        while (!process.refused.empty() &&
               (process.slots_used == 0 || process.slots_used + trains_[process.refused.head].count <=
                                               process.policy->config().mailbox_slots()))
            accept(process.refused.pop(trains_));
    }
    switch (train.kind) {
        case TrainKind::kData:
        case TrainKind::kResentData:
            return retrieve_data(p, index, train);
        case TrainKind::kCredit:
        case TrainKind::kRequest:
        case TrainKind::kResponse:
        case TrainKind::kHello:
        case TrainKind::kBye:
        case TrainKind::kRelease:
        case TrainKind::kLeave:
        case TrainKind::kDoorbell:
            clock_ += receive_packet_ + credit_packet_;
            if (!process.ledger->control_retrieved(pair(p, index).account, packet_kind(train.kind),
                                                   train.value))
                fault_ = "process " + std::to_string(p) + " has a control packet that no correct peer sends";
            if (on_demand_) watch_patience(p);
            return;
        case TrainKind::kLocal:
            clock_ += local_message_ + from_ns(machine_.costs.local_byte_ns * train.value);
            return message_arrived(p, index);
        case TrainKind::kReferred:
            return landed(p, index, train);
        case TrainKind::kRmaRequest:
        case TrainKind::kRmaData:
        case TrainKind::kEnclosed:
            return;
    }
}

void Simulation::retrieve_data(std::uint32_t p, std::uint32_t index, const Train& train) {
    Process& process = processes_[p];
    Pair& from = pair(p, index);
    const Time each = receive_packet_ + (process.policy->limited() ? account_ : 0);
    std::uint32_t left = train.count;
    Time owed = 0;
    if (batches_) {
        (void)read_batch(p, index);
        Batch& batch = batches_of_[peers_.first(p) + index];
        if (batch.follows)
            fault_ = "process " + std::to_string(p) + " has got a packet before the end of a batch";
        batch.awaits_answer = false;
    }
    if (refusing_) --links_[peers_.first(p) + index].unretrieved;
    // Each packet has a header, and is looked for by itself. One that is still on its way is waited for: the
    // train's packets come gap by gap.
    const auto pass = [&](std::uint32_t count, bool due) {
        clock_ += std::exchange(owed, due ? watching_ : 0);
        if (count == 0) return;
        process.ledger->look();
        left -= count;
        clock_ = std::max(clock_ + each * count, train.done - network_.gap() * left + each);
    };
    if (!process.ledger->data_retrieved(from.account, train.count, train.backlogged, train.value, pass))
        fault_ = "process " + std::to_string(p) + " has got more packets than it gave credits for";
    if (train.batch) return follow(p, index);
    if (train.chunk != kNone) return fetch(p, index, train);
    if (!train.last) return;
    clock_ += receive_message_;
    if (!refers_ || !lands_later(p, index)) message_arrived(p, index);
}

void Simulation::message_arrived(std::uint32_t p, std::uint32_t index) {
    if (scheduling_) return schedule_arrival(p, index);
    ++pair(p, index).unmatched;
    ++processes_[p].unmatched;
}

}  // namespace velo::sim
