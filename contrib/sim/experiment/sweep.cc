#include "experiment/sweep.h"

#include <atomic>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>

namespace velo::sim {

Measured measured(Outcome outcome, std::uint32_t warm_up) {
    Measured m;
    m.outcome = std::move(outcome);
    const Totals& totals = m.outcome.totals;
    m.credit_packets = totals.flow.credit_packets;
    if (m.outcome.failed()) return m;
    m.time_us = m.outcome.iteration_us(warm_up);
    if (totals.messages > 0)
        m.delayed_percent =
            100.0 * static_cast<double>(totals.messages_delayed) / static_cast<double>(totals.messages);
    return m;
}

Measured execute(const Trial& run) {
    const std::unique_ptr<Workload> workload = make_pattern(run.pattern, run.options);
    if (workload == nullptr) throw std::runtime_error("there is no pattern \"" + run.pattern + "\"");
    return measured(Simulation(run.machine, run.flow, *workload).run(), run.warm_up);
}

std::vector<Measured> execute_all(const std::vector<Trial>& runs, unsigned jobs, const Progress& progress) {
    std::vector<Measured> results(runs.size());
    std::atomic<std::size_t> next{0};
    std::size_t done = 0;
    std::mutex mutex;
    std::exception_ptr failure;
    const auto work = [&] {
        for (std::size_t i = next++; i < runs.size(); i = next++) try {
                results[i] = execute(runs[i]);
                const std::lock_guard lock(mutex);
                if (progress) progress(++done, runs.size());
            } catch (...) {
                const std::lock_guard lock(mutex);
                if (!failure) failure = std::current_exception();
            }
    };
    std::vector<std::thread> threads;
    for (unsigned i = 1; i < jobs; ++i) threads.emplace_back(work);
    work();
    for (std::thread& thread : threads) thread.join();
    if (failure) std::rethrow_exception(failure);
    return results;
}

Trial thesis_run(const std::string& pattern, std::uint32_t processes, const std::string& policy,
                 std::uint32_t slots, std::uint32_t credit_slots) {
    Trial run;
    run.pattern = pattern;
    run.machine.dimensions = mesh_for(processes, run.machine.processes_per_node);
    run.options.processes = processes;
    run.options.processes_per_node = run.machine.processes_per_node;
    run.flow.policy = policy;
    run.flow.slots_per_peer = slots;
    run.flow.credit_slots = credit_slots;
    run.flow.piggyback = false;
    run.flow.delay_credits = false;
    run.flow.by_reference = ByReference::kNever;
    return run;
}

}  // namespace velo::sim
