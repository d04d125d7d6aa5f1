// Memory and size: Table 7.1, and how the simulator itself grows.
#include <sys/resource.h>

#include <cmath>

#include "experiment/grid.h"

namespace velo::sim {
namespace {

constexpr double kSlotBytes = 64;
constexpr double kMegabyte = 1024 * 1024;

// bytes_per_peer of a policy of this build; 0 if it is not there.
double state_bytes(const std::string& policy) {
    flow::PolicyConfig config;
    config.peers = 4;
    config.data_slots = 4 * 62;
    std::string error;
    const auto made = flow::make_policy(policy, config, &error);
    return made != nullptr ? static_cast<double>(made->bytes_per_peer()) : 0;
}

// What a receiver needs if memory follows its active peers: data and credit slots for them, and for each
// process of the job a byte of doorbell and its state as a stranger.
double active_only_bytes(double processes, double active, double slots_per_active) {
    constexpr double kStrangerBytes = 8;
    constexpr double kDoorbellBytes = 1;
    constexpr double kReservedSlots = 4;  // BYE, RELEASE and two CREDITs
    return active * (slots_per_active + kReservedSlots) * kSlotBytes + active * state_bytes("dynamic") +
           processes * (kDoorbellBytes + kStrangerBytes);
}

Report table_7_1(const Context&) {
    Report report;
    report.columns = {"processes",      "thesis_static_mb", "thesis_dynamic_mb",
                      "velo_static_mb", "velo_dynamic_mb",  "active_only_mb"};
    for (const double k : {1.0, 4.0, 16.0, 64.0, 256.0}) {
        const double n = k * 1024;
        const double row[] = {(4 * n + 2 + 4096 * n) / kMegabyte, (150 + 1024) * n / kMegabyte,
                              (state_bytes("static") + 64 * kSlotBytes) * n / kMegabyte,
                              (state_bytes("dynamic") + 16 * kSlotBytes) * n / kMegabyte,
                              active_only_bytes(n, n / 100, 16) / kMegabyte};
        report.rows.push_back({n, row[0], row[1], row[2], row[3], row[4]});
        const std::string size = "_" + std::to_string(static_cast<int>(k)) + "k";
        report.metrics["static_mb" + size] = row[0];
        report.metrics["dynamic_mb" + size] = row[1];
        report.metrics["active_only_gain" + size] = row[1] / row[4];
    }
    report.metrics["state_bytes_dynamic"] = state_bytes("dynamic");
    return report;
}

// The most that this process has had so far.
double peak_megabytes() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_maxrss) / 1024;
}

// The same sparse exchange on ever more processes, then ever longer on the same ones. One run at a time: it
// is the time of this machine that is measured.
Report scale(const Context& context) {
    Report report;
    report.columns = {"curve", "processes", "iterations", "events", "ns_per_event", "peak_mb"};
    double first = 0, last = 0;
    const auto measure = [&](const std::string& curve, std::uint32_t processes, std::uint32_t iterations) {
        Trial run = thesis_run("sparse", processes, "dynamic", 16);
        run.options.neighbours = 12;
        run.options.iterations = iterations;
        const std::unique_ptr<Workload> workload = make_pattern(run.pattern, run.options);
        Simulation simulation(run.machine, run.flow, *workload);
        const Outcome outcome = simulation.run();
        if (outcome.failed()) report.remarks.push_back("a run FAILED: " + outcome.fault + outcome.deadlock);
        const double ns = outcome.seconds * 1e9 / static_cast<double>(outcome.totals.events);
        report.rows.push_back({curve, double(processes), double(iterations),
                               static_cast<double>(outcome.totals.events), ns, peak_megabytes()});
        return ns;
    };
    const std::uint32_t largest = context.full ? 262144 : 16384;
    for (std::uint32_t processes = 1024; processes <= largest; processes *= 4)
        measure("processes", processes, 1);
    report.metrics["peak_mb_largest"] = peak_megabytes();
    // From 16 iterations on: in the first few, most events are at the same times and cheaper.
    for (std::uint32_t iterations = 16; iterations <= (context.full ? 256U : 64U); iterations *= 4) {
        last = measure("length", 1024, iterations);
        if (first == 0) first = last;
    }
    report.metrics["ns_per_event_longest_over_shortest"] = last / first;
    report.metrics["failed_runs"] = static_cast<double>(report.remarks.size());
    return report;
}

// Goal of speed: an alltoall of 2 KB among 1024 processes.
Report speed(const Context& context) {
    Report report;
    report.columns = {"policy", "slots_per_peer", "packets", "events", "seconds", "peak_mb"};
    for (const std::string policy : {"none", "static", "dynamic"}) {
        const std::uint32_t slots = policy == "dynamic" && context.full ? 16 : 64;
        Trial run = thesis_run("alltoall", 1024, policy, slots);
        const Measured m = execute(run);
        report.rows.push_back({policy, double(slots), static_cast<double>(m.outcome.totals.data_packets),
                               static_cast<double>(m.outcome.totals.events), m.outcome.seconds,
                               peak_megabytes()});
        report.metrics["seconds_" + policy] = m.outcome.seconds;
        report.metrics["packets"] = static_cast<double>(m.outcome.totals.data_packets);
    }
    report.metrics["peak_mb"] = peak_megabytes();
    return report;
}

}  // namespace

std::vector<Experiment> scale_experiments() {
    return {
        {"table7.1", "memory of a receiver", "processes",
         "thesis_static_mb,thesis_dynamic_mb,velo_dynamic_mb,active_only_mb", table_7_1},
        {"scale", "sparse patterns on up to 256K processes; the cost of an event", "events", "ns_per_event",
         scale},
        {"speed", "an alltoall of 2 KB among 1024 processes on one core", "packets", "seconds", speed},
    };
}

}  // namespace velo::sim
