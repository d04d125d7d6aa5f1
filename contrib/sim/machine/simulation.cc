#include "machine/simulation.h"

#include <algorithm>
#include <ctime>
#include <limits>
#include <stdexcept>

#include "flow/policies.h"

namespace velo::sim {
namespace {

// Of this thread: other work on the machine does not count.
double processor_seconds() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

}  // namespace

double Outcome::iteration_us(std::uint32_t warm_up) const {
    if (iteration_end.size() <= warm_up) return std::numeric_limits<double>::quiet_NaN();
    const Time begin = warm_up > 0 ? iteration_end[warm_up - 1] : 0;
    return to_us(iteration_end.back() - begin) / static_cast<double>(iteration_end.size() - warm_up);
}

Simulation::Simulation(const Machine& machine, const FlowOptions& flow, const Workload& workload,
                       const PolicyMaker& make)
    : machine_(machine),
      flow_(flow),
      workload_(workload),
      network_(machine_, events_, trains_),
      peers_(workload),
      processes_(workload.processes()),
      pairs_(peers_.pairs()),
      send_packet_(from_ns(machine.costs.send_packet_ns)),
      receive_packet_(from_ns(machine.costs.receive_packet_ns)),
      account_(from_ns(flow.free_of_charge ? 0 : machine.costs.account_packet_ns)),
      credit_packet_(from_ns(flow.free_of_charge ? 0 : machine.costs.credit_packet_ns)),
      send_message_(from_ns(machine.costs.send_message_ns)),
      receive_message_(from_ns(machine.costs.receive_message_ns)),
      poll_(from_ns(machine.costs.poll_ns)),
      local_message_(from_ns(machine.costs.local_message_ns)),
      iteration_end_(workload.iterations(), 0),
      random_(machine.seed) {
    if (workload.processes() > machine.processes())
        throw std::runtime_error("the workload has " + std::to_string(workload.processes()) +
                                 " processes, but the machine has room for " +
                                 std::to_string(machine.processes()) + ": set --nodes to a larger mesh");
    connect(make);
    open_schedules();
}

void Simulation::connect(const PolicyMaker& make) {
    std::vector<flow::PolicyConfig> configs(peers_.processes());
    for (std::uint32_t p = 0; p < peers_.processes(); ++p) {
        flow::PolicyConfig& config = configs[p];
        config = flow_.own;
        config.lazy_ahead = flow::useful_windows_ahead(config.lazy_ahead, config.lazy_peers);
        config.spare_peers = config.data_slots = 0;
        config.peers = peers_.count(p);
        config.credit_slots = flow_.credit_slots;
        config.piggyback = flow_.piggyback;
        if (flow_.slots_per_peer > flow_.credit_slots)
            config.data_slots = config.peers * (flow_.slots_per_peer - flow_.credit_slots);
        if (config.peers == 0) config.spare_peers = 1;
        std::string error;
        processes_[p].policy = make ? make(config) : flow::make_policy(flow_.policy, config, &error);
        if (processes_[p].policy == nullptr) throw std::runtime_error(error);
        processes_[p].ledger.emplace(*processes_[p].policy, static_cast<flow::Carrier&>(*this),
                                     flow_.delay_credits);
        processes_[p].refusal = processes_[p].policy->extensions().refusal;
        if (processes_[p].policy->limited() || processes_[p].refusal != nullptr)
            processes_[p].capacity =
                make ? config.mailbox_slots()
                     : static_cast<std::uint32_t>(flow::mailbox_plan(flow_.policy, config).total());
    }
    adapt_to(processes_[0]);
    for (std::uint32_t p = 0; p < peers_.processes(); ++p)
        for (std::uint32_t i = 0; i < peers_.count(p); ++i) {
            const std::uint32_t q = peers_.process_at(p, i);
            flow::Ledger& ledger = *processes_[p].ledger;
            pair(p, i).account = ledger.account_of(i);
            ledger.open(pair(p, i).account,
                        flow::initial_credit(flow_.policy, configs[q], peers_.index_of(q, p)));
        }
}

void Simulation::adapt_to(const Process& process) {
    on_demand_ = process.ledger->on_demand();
    marks_backlog_ = process.ledger->marks_backlog();
    refusing_ = process.refusal != nullptr;
    has_timers_ = on_demand_ || refusing_;
    const bool watches = on_demand_ || process.policy->traits().bytes_per_peer > sizeof(flow::PeerFlow);
    if (watches && !flow_.free_of_charge) watching_ = from_ns(machine_.costs.monitor_ns);
    if (on_demand_) contacts_.resize(processes_.size());
    if (flow_.by_reference != ByReference::kNever) open_outboxes();
    if (!refusing_) return;
    most_packets_ = process.refusal->refusal_limit();
    links_.resize(pairs_.size());
    due_.resize(processes_.size());
    machine_.max_train = 1;  // each packet is refused or taken by itself
}

Outcome Simulation::run() {
    const double begin = processor_seconds();
    unfinished_ = peers_.processes();
    for (std::uint32_t p = 0; p < peers_.processes(); ++p) events_.push(skew(), kWake, p, 0);
    while (!events_.empty() && fault_.empty()) dispatch(events_.pop());
    Outcome outcome;
    conclude(outcome);
    outcome.seconds = processor_seconds() - begin;
    return outcome;
}

// Processes that start together do so within the skew, at random.
Time Simulation::skew() {
    return from_ns(machine_.costs.skew_ns * random_.below(1U << 20) / (1U << 20));
}

void Simulation::dispatch(const Event& event) {
    switch (event.kind) {
        case kWake:
            return wake(event.subject);
        case kSubmit:
            return network_.submit(event.train);
        case kHop:
            return network_.hop(event.train);
        case kArrive:
            return arrive(event.train);
        case kRelease:
            return release(event.subject);
        case kRefused:
            return refused(event.train, event.subject == 1);
        case kRetry:
            return retry(event.subject, event.train);
        case kRested:
            return close_rested(event.subject);
        case kPatience:
            return lose_patience(event.subject);
        case kEnded:
            return operation_ended(event.subject, event.train);
        case kInjected:
            network_.injected(event.subject);
            if (event.train == kNone) return;
            Process& process = processes_[event.train];
            if (--process.in_interface == 0 && process.state == State::kStalled) {
                process.state = State::kBusy;
                events_.push(std::max(process.busy_until, events_.now()), kWake, event.train, 0);
            }
    }
}

void Simulation::conclude(Outcome& outcome) {
    outcome.totals = totals_;
    outcome.totals.events = events_.taken();
    for (Process& process : processes_) {
        const flow::Counters& c = process.policy->counters();
        outcome.totals.flow += c;
        outcome.flow_of.push_back(c);
        outcome.delayed_of.push_back(process.delayed);
        outcome.totals.slots_high_water =
            std::max<std::uint64_t>(outcome.totals.slots_high_water, process.slots_high_water);
        outcome.totals.state_bytes +=
            process.policy->traits().bytes_per_peer * process.policy->config().total_peers() +
            process.policy->traits().bytes_shared;
        for (std::uint32_t i = 0; i < process.policy->config().peers; ++i)
            outcome.totals.largest_quota =
                std::max(outcome.totals.largest_quota, process.policy->intended(i));
    }
    for (const flow::Outbox& outbox : outboxes_) {
        const flow::Outbox::Counters& c = outbox.counters();
        outcome.totals.outbox_high_water = std::max(outcome.totals.outbox_high_water, c.high_water);
        outcome.totals.outbox_full += c.full;
    }
    outcome.iteration_end = iteration_end_;
    outcome.end = events_.now();
    outcome.fault = fault_;
    outcome.digest = digest_;
    if (fault_.empty() && unfinished_ > 0) outcome.deadlock = stuck();
}

// The first few processes that did not come to their end.
std::string Simulation::stuck() const {
    std::string text = std::to_string(unfinished_) + " of " + std::to_string(peers_.processes()) +
                       " processes wait for ever:";
    std::uint32_t named = 0;
    for (std::uint32_t p = 0; p < peers_.processes() && named < 4; ++p) {
        const Process& process = processes_[p];
        if (process.finished) continue;
        ++named;
        text += " process " + std::to_string(p) + " in iteration " + std::to_string(process.iteration);
        if (process.waits_for != kNone)
            text += " for credits of " + std::to_string(peers_.process_at(p, process.waits_for));
        else if (process.queued > 0)
            text += " with " + std::to_string(process.queued) + " messages that have no credits";
        else if (process.step < process.steps.size())
            text += " in step " + std::to_string(process.step) + " for process " +
                    std::to_string(process.steps[process.step].peer);
        text += ";";
    }
    text.pop_back();
    return text;
}

}  // namespace velo::sim
