// A process that acts: its steps and its sends.
#include <algorithm>
#include <bit>

#include "machine/simulation.h"
#include "wire/packet.h"

namespace velo::sim {
void Simulation::wake(std::uint32_t p) {
    Process& process = processes_[p];
    actor_ = p;
    clock_ = events_.now();
    if (batches_) end_polling(p);
    if (has_timers_ && attend(p)) return rest(p);
    for (;;) {
        const Time before = clock_;
        const bool must_wait = process.waits_for != kNone || process.finished || process.fetching > 0;
        if (must_wait || !next_step(p)) {
            process.ledger->look();
            if (!process.mailbox.empty()) {
                retrieve(p);
            } else if (batches_ && read_batches(p)) {
                // As from the mailbox.
            } else if (clock_ == before) {
                process.state = State::kIdle;
                if (batches_) begin_polling(p);
                return;
            }
        }
        // What took time lets others act; what took none goes on.
        if (clock_ != before || process.in_interface > 0) return rest(p);
    }
}

void Simulation::rest(std::uint32_t p) {
    Process& process = processes_[p];
    process.busy_until = clock_;
    if (process.in_interface > 0) {
        process.state = State::kStalled;
        return;
    }
    process.state = State::kBusy;
    events_.push(clock_, kWake, p, 0);
}

// Performs the next step. False: it waits for an arrival.
bool Simulation::next_step(std::uint32_t p) {
    if (scheduling_) return run_schedule(p);
    Process& process = processes_[p];
    while (process.step == process.steps.size()) {
        if (!process.steps.empty() || process.iteration > 0) take_notes(p);
        if (process.finished) return false;
        process.steps.clear();
        process.step = 0;
        workload_.steps(p, process.iteration, process.steps);
        if (process.steps.empty()) process.steps.push_back({StepKind::kCompute, 0, 0});
    }
    const Step& step = process.steps[process.step];
    if (waits(p, step)) return false;
    ++process.step;
    perform(p, step);
    return true;
}

bool Simulation::waits(std::uint32_t p, const Step& step) {
    switch (step.kind) {
        case StepKind::kReceive:
        case StepKind::kReceiveAny:
            return !receive(p, step);
        case StepKind::kFinish:
            return processes_[p].queued > 0;
        case StepKind::kSynchronise:
            return !synchronised(p);
        case StepKind::kSend:
        case StepKind::kStart:
            return machine_.progress_before_send && !processes_[p].mailbox.empty();
        case StepKind::kCompute:
            return false;
    }
    return false;
}

// The last one to arrive lets all go on.
bool Simulation::synchronised(std::uint32_t p) {
    Process& process = processes_[p];
    if (process.released) {
        process.synchronising = process.released = false;
        return true;
    }
    if (process.synchronising) return false;
    process.synchronising = true;
    if (++synchronising_ < peers_.processes()) return false;
    synchronising_ = 0;
    const Time released =
        clock_ + from_ns(machine_.costs.barrier_ns) * std::bit_width(peers_.processes() - 1);
    for (std::uint32_t q = 0; q < peers_.processes(); ++q) events_.push(released + skew(), kRelease, q, 0);
    return false;
}

void Simulation::release(std::uint32_t p) {
    Process& process = processes_[p];
    process.released = true;
    rouse(p);
}

void Simulation::rouse(std::uint32_t p) {
    Process& process = processes_[p];
    if (process.state != State::kIdle) return;
    process.state = State::kBusy;
    events_.push(events_.now(), kWake, p, 0);
}

// What a timer has left to the process. True: that took time.
bool Simulation::attend(std::uint32_t p) {
    const Time before = clock_;
    if (on_demand_ && contacts_[p].overdue) ask_another(p);
    if (refusing_) {
        for (const std::uint32_t index : due_[p]) processes_[p].ledger->flush(pair(p, index).account);
        due_[p].clear();
    }
    return clock_ != before;
}

// An iteration has ended.
void Simulation::take_notes(std::uint32_t p) {
    Process& process = processes_[p];
    Time& end = iteration_end_[process.iteration];
    end = std::max(end, clock_);
    if (p == 0 && on_iteration_) on_iteration_(process.iteration);
    if (++process.iteration < workload_.iterations()) return;
    process.finished = true;
    --unfinished_;
    std::vector<Step>().swap(process.steps);
    process.step = 0;
}

void Simulation::perform(std::uint32_t p, const Step& step) {
    if (step.kind == StepKind::kCompute) clock_ = later(clock_, static_cast<double>(step.bytes));
    if (step.kind != StepKind::kSend && step.kind != StepKind::kStart) return;
    ++totals_.messages;
    if (machine_.limic && network_.node_of(p) == network_.node_of(step.peer)) return send_locally(p, step);
    send(p, step);
}

void Simulation::send_locally(std::uint32_t p, const Step& step) {
    clock_ += local_message_;
    Train train;
    train.from = p;
    train.to = step.peer;
    train.count = 1;
    train.kind = TrainKind::kLocal;
    train.last = true;
    train.value = step.bytes;
    train.done = clock_;
    events_.push(clock_, kArrive, 0, trains_.add(train));
}

void Simulation::send(std::uint32_t p, const Step& step, goal::Vertex ends) {
    Process& process = processes_[p];
    const std::uint32_t index = peers_.index_of(p, step.peer);
    Pair& to = pair(p, index);
    clock_ += send_message_;

    Pending message;
    const bool rendezvous = step.bytes > machine_.eager_limit;
    message.bytes = machine_.header_bytes + (rendezvous ? 0 : step.bytes);
    message.packets = static_cast<std::uint32_t>(wire::kClassicFraming.packets_for(message.bytes));
    message.ends = ends;
    if (batches_) take_credits(p, to, message.bytes);

    std::uint32_t slot = free_pending_;
    if (slot == kNone) {
        slot = static_cast<std::uint32_t>(pendings_.size());
        pendings_.push_back(message);
    } else {
        free_pending_ = pendings_[slot].next;
        pendings_[slot] = message;
    }
    const bool first = to.head == kNone;
    (first ? to.head : pendings_[to.tail].next) = slot;
    to.tail = slot;
    ++process.queued;
    if (!process.ledger->flush(to.account)) return;
    ++totals_.messages_delayed;
    ++process.delayed;
    pendings_[to.tail].waited = true;
    if (first) process.ledger->queued(to.account);
    if (on_demand_) watch_patience(p);
    if (step.kind == StepKind::kSend) process.waits_for = index;
}

bool Simulation::send_queued(flow::Account& account) {
    const std::uint32_t p = actor_;
    Process& process = processes_[p];
    Pair& to = pair(p, account.peer);
    if (refusing_ && holds(p, account.peer)) return to.head != kNone;
    while (to.head != kNone) {
        const std::uint32_t slot = to.head;
        const std::uint32_t credits = process.ledger->credits(account);
        if (batches_ && send_in_batch(p, to, pendings_[slot], credits)) {
            pendings_[slot].packets = 0;
        } else if (!refers_ || !refer(p, to, pendings_[slot], credits)) {
            std::uint32_t count = std::min(pendings_[slot].packets, credits);
            if (machine_.max_train > 0) count = std::min(count, machine_.max_train);
            if (count == 0) return true;
            send_packets(p, to, pendings_[slot], count);
        }
        if (pendings_[slot].packets > 0) continue;
        if (refers_) shares_[peers_.first(p) + account.peer].missed = false;
        to.head = pendings_[slot].next;
        if (to.head == kNone) to.tail = kNone;
        if (pendings_[slot].ends != goal::kNoVertex) scheduling_->runs[p].finished(pendings_[slot].ends);
        pendings_[slot].next = free_pending_;
        free_pending_ = slot;
        --process.queued;
    }
    if (process.waits_for == account.peer) process.waits_for = kNone;
    return false;
}

void Simulation::send_packets(std::uint32_t p, Pair& to, Pending& message, std::uint32_t count) {
    Train train;
    train.count = count;
    train.last = count == message.packets;
    const std::uint32_t room = count * wire::kPayloadBytes;
    if (train.last && room - message.bytes >= wire::kPiggybackBytes)
        train.value = processes_[p].ledger->attach(to.account);
    train.backlogged = marks_backlog_ && message.waited;
    message.begun = true;
    message.packets -= count;
    message.bytes -= std::min(message.bytes, room);
    send_train(p, to, train);
}

// DATA: the slots and credits of `train.count` packets.
void Simulation::send_train(std::uint32_t p, Pair& to, Train train) {
    flow::Ledger& ledger = *processes_[p].ledger;
    const std::uint32_t index = to.account.peer;
    const std::uint32_t count = train.count;
    train.from = p;
    train.to = peers_.process_at(p, index);
    if (refusing_) train.sequence = links_[peers_.first(p) + index].sequence++;
    totals_.data_packets += count;
    if (batches_) note_sent_to(p, index);
    ++processes_[p].in_interface;
    // The interface takes the first packet while the process writes the others.
    const Time first = clock_ + send_packet_;
    clock_ += (send_packet_ + (ledger.policy().limited() ? account_ : 0)) * count;
    const Time end = clock_;
    clock_ = first;
    submit(train);
    clock_ = end;
    ledger.sent(to.account, count);
}

// At the actor's clock.
void Simulation::submit(Train train) {
    events_.push(clock_, kSubmit, 0, trains_.add(train));
}

void Simulation::carry(flow::Account& to, wire::PacketKind kind, std::uint32_t value) {
    Train train;
    train.from = actor_;
    train.to = peers_.process_at(actor_, to.peer);
    train.count = 1;
    train.value = value;
    const bool rings = kind == wire::PacketKind::kHello && flow_.own.lazy_doorbell;
    train.kind = rings ? TrainKind::kDoorbell : train_kind(kind);
    clock_ += credit_packet_ + send_packet_;
    submit(train);
}

}  // namespace velo::sim
