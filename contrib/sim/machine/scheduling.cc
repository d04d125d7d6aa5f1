// Processes that run schedules: the executor of their runs.
#include "machine/scheduling.h"

#include <stdexcept>

#include "machine/simulation.h"

namespace velo::sim {

void Simulation::open_schedules() {
    if (workload_.program() == nullptr) return;
    scheduling_ = std::make_unique<Scheduling>();
    Scheduling& s = *scheduling_;
    s.program = workload_.program();
    s.exchanges.resize(workload_.iterations());
    s.sent_of.resize(pairs_.size());
    for (const goal::Schedule& schedule : s.program->schedules) {
        s.runs.emplace_back(schedule);
        for (goal::Vertex v = 0; v < schedule.count(); ++v) {
            const goal::Operation& o = schedule.operation(v);
            if (o.communicates() && o.bytes > UINT32_MAX / 2)
                throw std::runtime_error(s.program->place(schedule.rank(), v) +
                                         ": messages of this machine have 2 GiB at most");
        }
    }
}

// One operation. False: the run waits for an arrival.
bool Simulation::run_schedule(std::uint32_t p) {
    Process& process = processes_[p];
    goal::Run& run = scheduling_->runs[p];
    if (run.has_ready()) {
        goal::drain(run, *this, 1);
        return true;
    }
    if (process.finished || !run.done()) return false;
    take_notes(p);
    if (process.finished) return false;
    run.restart();
    return true;
}

void Simulation::send(goal::Run& run, goal::Vertex v, const goal::Operation& o) {
    const std::uint32_t p = actor_;
    ++totals_.messages;
    const goal::Exchange::Message message{p, o.tag, v, o.bytes};
    const auto bytes = static_cast<std::uint32_t>(o.bytes);
    if (o.peer == p) {
        clock_ += local_message_ + from_ns(machine_.costs.local_byte_ns * bytes);
        run.finished(v);
        return schedule_arrival(p, message, processes_[p].iteration);
    }
    note_sent(p, o.peer, message);
    const Step step{StepKind::kStart, o.peer, bytes};
    if (machine_.limic && network_.node_of(p) == network_.node_of(o.peer)) {
        run.finished(v);
        return send_locally(p, step);
    }
    // Of a rendezvous only the header goes now.
    send(p, step, o.bytes > machine_.eager_limit ? kNone : v);
}

void Simulation::receive(goal::Run&, goal::Vertex v, const goal::Operation& o) {
    const std::uint32_t p = actor_;
    goal::Exchange& exchange = scheduling_->exchanges[processes_[p].iteration];
    if (const auto message = exchange.receive(p, v, o.peer, o.tag)) schedule_match(p, v, *message);
}

void Simulation::work(goal::Run& run, goal::Vertex v, const goal::Operation& o) {
    const double each = o.kind == goal::Kind::kCalculate ? 1 : machine_.costs.local_byte_ns;
    clock_ = later(clock_, each * static_cast<double>(o.bytes));
    run.finished(v);
}

void Simulation::note_sent(std::uint32_t from, std::uint32_t to, const goal::Exchange::Message& message) {
    Scheduling& s = *scheduling_;
    std::uint32_t slot = s.free_sent;
    if (slot == kNone) {
        slot = static_cast<std::uint32_t>(s.sent.size());
        s.sent.emplace_back();
    } else {
        s.free_sent = s.sent[slot].next;
    }
    s.sent[slot] = {message, processes_[from].iteration, kNone};
    Scheduling::SentQueue& queue = s.sent_of[peers_.first(from) + peers_.index_of(from, to)];
    (queue.first == kNone ? queue.first : s.sent[queue.last].next) = slot;
    queue.last = slot;
}

// The oldest message of a peer has come to `p`.
void Simulation::schedule_arrival(std::uint32_t p, std::uint32_t index) {
    Scheduling& s = *scheduling_;
    const std::uint32_t from = peers_.process_at(p, index);
    Scheduling::SentQueue& queue = s.sent_of[peers_.first(from) + peers_.index_of(from, p)];
    const std::uint32_t slot = queue.first;
    const Scheduling::Sent sent = s.sent[slot];
    queue.first = sent.next;
    s.sent[slot].next = s.free_sent;
    s.free_sent = slot;
    schedule_arrival(p, sent.message, sent.iteration);
}

void Simulation::schedule_arrival(std::uint32_t p, const goal::Exchange::Message& message,
                                  std::uint32_t iteration) {
    const auto waiting = scheduling_->exchanges[iteration].arrive(p, message);
    if (waiting) schedule_match(p, *waiting, message);
}

void Simulation::schedule_match(std::uint32_t p, goal::Vertex v, const goal::Exchange::Message& message) {
    Scheduling& s = *scheduling_;
    if (s.runs[p].schedule().operation(v).bytes != message.bytes)
        fault_ = s.program->place(message.source, message.send) + " is received by " + s.program->place(p, v);
    const bool local =
        message.source == p || (machine_.limic && network_.node_of(p) == network_.node_of(message.source));
    if (message.bytes <= machine_.eager_limit || local) return s.runs[p].finished(v);
    std::uint32_t transfer;
    if (s.free_transfers.empty()) {
        transfer = static_cast<std::uint32_t>(s.transfers.size());
        s.transfers.emplace_back();
    } else {
        transfer = s.free_transfers.back();
        s.free_transfers.pop_back();
    }
    s.transfers[transfer] = {p, message.source, v, message.send};
    get(p, message.source, static_cast<std::uint32_t>(message.bytes), transfer);
}

// The data of a rendezvous is there: both may go on, the sender when it has been told.
void Simulation::transfer_ended(std::uint32_t transfer) {
    const Scheduling::Transfer& t = scheduling_->transfers[transfer];
    events_.push(events_.now() + poll_, kEnded, t.receiver, t.receive);
    events_.push(events_.now() + poll_ + network_.delay(t.receiver, t.sender), kEnded, t.sender, t.send);
    scheduling_->free_transfers.push_back(transfer);
}

void Simulation::operation_ended(std::uint32_t p, goal::Vertex v) {
    scheduling_->runs[p].finished(v);
    rouse(p);
}

}  // namespace velo::sim
