// Memory and size: Table 7.1, and how the simulator itself grows.
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "experiment/grid.h"
#include "experiment/numbers.h"
#include "flow/policies.h"

namespace velo::sim {
namespace {

constexpr double kSlotBytes = 64;
constexpr double kMegabyte = 1024 * 1024;

constexpr std::uint32_t kSlotsOfActive = 16;

std::uint32_t representable_peers(std::uint32_t processes) {
    return std::min(processes - 1, wire::Header::kMaxSource);
}

// A mailbox with two credit slots and `slots` in all for each peer.
flow::PolicyConfig config_of(std::uint32_t processes, std::uint32_t slots) {
    flow::PolicyConfig config;
    config.peers = representable_peers(processes);
    config.data_slots = config.peers * (slots - config.credit_slots);
    return config;
}

// lazy with a window and 16 data slots for each active peer, and doorbells.
flow::PolicyConfig lazy_config(std::uint32_t processes, std::uint32_t active) {
    flow::PolicyConfig config;
    config.peers = representable_peers(processes);
    config.lazy_peers = active;
    config.lazy_slots = active * kSlotsOfActive;
    config.lazy_doorbell = true;
    return config;
}

// What a receiver keeps, in bytes, as Velo's objects say: the structures of the policy, and its mailbox.
struct Memory {
    double structures_per_peer = kNotMeasured;
    double total = kNotMeasured;
};

// Beyond the 16 bits of a packet's source objects cannot be made: there what grows with the peers is
// multiplied.
Memory memory_of(const std::string& policy, const flow::PolicyConfig& config, std::uint32_t processes) {
    std::string error;
    const auto made = flow::make_policy(policy, config, &error);
    if (made == nullptr) throw std::runtime_error(policy + ": " + error);
    const double peers = config.peers;
    const double more = (processes - 1) / peers;
    const bool grows = policy != "lazy";  // its mailbox is one for all
    const double doorbells = config.lazy_doorbell ? peers : 0;
    const double structures = static_cast<double>(made->traits().bytes_per_peer) * peers +
                              static_cast<double>(made->traits().bytes_shared);
    const double mailbox = static_cast<double>(flow::mailbox_plan(policy, config).total()) * kSlotBytes;
    return {structures / peers,
            (static_cast<double>(made->traits().bytes_per_peer) * peers + doorbells) * more +
                static_cast<double>(made->traits().bytes_shared) + mailbox * (grows ? more : 1)};
}

// An exchange with 1 % of the processes, in which everybody knows everybody: what lazy costs with that
// memory. The state for all pairs bounds the size.
void run_lazy(const Context& context, Report& report) {
    for (const std::uint32_t processes : {1024U, 4096U}) {
        if (processes > 1024 && !context.full) continue;
        Trial run = thesis_run("sparse_dense", processes);
        run.options.neighbours = processes / 100;
        run.options.iterations = 40;
        run.warm_up = 10;
        const double reference = execute(run).time_us;
        run.flow.policy = "lazy";
        run.flow.piggyback = true;
        run.flow.own = lazy_config(processes, processes / 100);
        const Measured m = execute(run);
        const std::string size = "_" + std::to_string(processes / 1024) + "k";
        const std::string failure = m.outcome.fault + m.outcome.deadlock;
        if (!failure.empty()) report.remarks.push_back("a run FAILED: " + failure);
        report.metrics["lazy_overhead" + size] = overhead_percent(m.time_us, reference);
        report.metrics["lazy_slots_used_over_planned" + size] =
            static_cast<double>(m.outcome.totals.slots_high_water) /
            static_cast<double>(flow::mailbox_plan("lazy", lazy_config(processes, processes / 100)).total());
    }
    report.metrics["failed_runs"] = static_cast<double>(report.remarks.size());
}

Report table_7_1(const Context& context) {
    Report report;
    report.columns = {"processes",       "thesis_static_mb", "thesis_dynamic_mb", "velo_static_mb",
                      "velo_dynamic_mb", "lazy_mb",          "lazy_64_windows_mb"};
    auto& m = report.metrics;
    for (const double k : {1.0, 4.0, 16.0, 64.0, 256.0}) {
        const double n = k * 1024;
        const auto processes = static_cast<std::uint32_t>(n);
        const double thesis_static = (4 * n + 2 + 64 * kSlotBytes * n) / kMegabyte;  // Eq 7.2
        const double thesis_dynamic = (150 + 16 * kSlotBytes) * n / kMegabyte;
        const auto megabytes = [&](const char* policy, const flow::PolicyConfig& config) {
            return memory_of(policy, config, processes).total / kMegabyte;
        };
        const double fixed = megabytes("static", config_of(processes, 64));
        const double moving = megabytes("dynamic", config_of(processes, 16));
        const double lazy = megabytes("lazy", lazy_config(processes, processes / 100));
        report.rows.push_back({n, thesis_static, thesis_dynamic, fixed, moving, lazy,
                               megabytes("lazy", lazy_config(processes, 64))});
        const std::string size = "_" + std::to_string(static_cast<int>(k)) + "k";
        m["velo_static_mb" + size] = fixed;
        m["velo_dynamic_mb" + size] = moving;
        m["lazy_gain" + size] = thesis_dynamic / lazy;
    }
    m["static_structure_bytes"] = memory_of("static", config_of(1024, 64), 1024).structures_per_peer;
    m["dynamic_structure_bytes"] = memory_of("dynamic", config_of(1024, 16), 1024).structures_per_peer;
    run_lazy(context, report);
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
    report.columns = {"policy", "curve", "processes", "iterations", "events", "ns_per_event", "peak_mb"};
    double first = kNotMeasured, last = kNotMeasured;
    const auto measure = [&](const std::string& policy, const std::string& curve, std::uint32_t processes,
                             std::uint32_t iterations) {
        Trial run = thesis_run("sparse", processes, policy, 16);
        run.flow.own.lazy_slots = 12 * kSlotsOfActive;
        run.flow.own.lazy_doorbell = true;
        run.options.neighbours = 12;
        run.options.iterations = iterations;
        const std::unique_ptr<Workload> workload = make_pattern(run.pattern, run.options);
        Simulation simulation(run.machine, run.flow, *workload);
        const Outcome outcome = simulation.run();
        if (outcome.failed()) report.remarks.push_back("a run FAILED: " + outcome.fault + outcome.deadlock);
        const double ns = outcome.seconds * 1e9 / static_cast<double>(outcome.totals.events);
        report.rows.push_back({policy, curve, double(processes), double(iterations),
                               static_cast<double>(outcome.totals.events), ns, peak_megabytes()});
        return ns;
    };
    const std::uint32_t largest = context.full ? 262144 : 16384;
    for (const std::string policy : {"dynamic", "lazy"})
        for (std::uint32_t processes = 1024; processes <= largest; processes *= 4)
            measure(policy, "processes", processes, 1);
    report.metrics["peak_kb_per_process_largest"] = peak_megabytes() * 1024 / largest;
    // From 16 iterations on: in the first few, most events are at the same times and cheaper.
    for (std::uint32_t iterations = 16; iterations <= (context.full ? 256U : 64U); iterations *= 4) {
        last = measure("dynamic", "length", 1024, iterations);
        if (std::isnan(first)) first = last;
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
         "thesis_static_mb,thesis_dynamic_mb,velo_static_mb,velo_dynamic_mb,lazy_mb", table_7_1, false},
        {"scale", "sparse patterns on up to 256K processes; the cost of an event", "events", "ns_per_event",
         scale, false},
        {"speed", "an alltoall of 2 KB among 1024 processes on one core", "packets", "seconds", speed, false},
    };
}

}  // namespace velo::sim
