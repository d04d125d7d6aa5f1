// Section 7.4 of the thesis: the Intel MPI benchmarks by class of pattern, and Liu & Panda's measurements in
// shape.
#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "experiment/grid.h"
#include "machine/simulation.h"

namespace velo::sim {
namespace {

struct Benchmark {
    const char* pattern;
    const char* kind;  // the class, as this model reads the thesis: see design.md
    std::uint32_t iterations;
};
constexpr Benchmark kBenchmarks[] = {
    {"multi_pingpong", "localized", 200},
    {"sendrecv", "localized", 200},
    {"exchange", "localized", 100},
    {"allreduce", "localized", 100},
    {"bcast", "rooted", 200},
    {"reduce", "rooted", 200},
    {"alltoall_pairwise", "balanced", 4},
    {"alltoall", "balanced", 4},
    {"gather", "rma", 40},
    {"scatter", "rma", 40},
    {"allgather", "rma", 40},
};
constexpr std::uint32_t kSlots[] = {8, 16, 32, 64};

// Every policy of this build that counts, in the order of its table.
std::vector<std::string> limited_policies() {
    std::vector<std::string> names;
    for (const std::string_view name : flow::policy_names(kProvidedNeeds)) {
        flow::PolicyConfig config;
        config.peers = 2;
        config.data_slots = 200;
        std::string error;
        const auto policy = flow::make_policy(name, config, &error);
        if (policy != nullptr && policy->limited()) names.emplace_back(name);
    }
    return names;
}

Trial benchmark_run(const Benchmark& benchmark, std::uint32_t processes, const std::string& policy,
                    std::uint32_t slots) {
    Trial run = thesis_run(benchmark.pattern, processes, policy, slots);
    run.flow.piggyback = true;
    run.options.iterations = benchmark.iterations;
    run.warm_up = benchmark.iterations / 4;
    return run;
}

// Mean overhead of the benchmarks of a class, or of all.
double mean_overhead(const Grid& grid, const std::string& kind, const std::string& policy, double slots) {
    double sum = 0;
    int count = 0;
    for (const Benchmark& benchmark : kBenchmarks) {
        if (!kind.empty() && kind != benchmark.kind) continue;
        sum += grid.overhead({std::string(benchmark.kind), std::string(benchmark.pattern), policy, slots});
        ++count;
    }
    return sum / count;
}

Report figure_7_5(const Context& context) {
    const std::uint32_t processes = context.full ? 1024 : 64;
    Grid grid({"class", "pattern", "policy", "slots_per_peer"});
    for (const Benchmark& benchmark : kBenchmarks) {
        const std::size_t reference = grid.reference(benchmark_run(benchmark, processes, "none", 64));
        for (const std::string policy : {"static", "dynamic"})
            for (const std::uint32_t s : kSlots)
                grid.add({std::string(benchmark.kind), std::string(benchmark.pattern), policy, double(s)},
                         benchmark_run(benchmark, processes, policy, s), reference);
    }
    grid.execute(context.jobs);
    Report report = grid.report();
    for (const std::string policy : {"static", "dynamic"}) {
        for (const std::uint32_t s : kSlots) {
            for (const std::string kind : {"localized", "rooted", "balanced", "rma"})
                report.metrics[kind + "_" + policy + "_" + std::to_string(s)] =
                    mean_overhead(grid, kind, policy, s);
            report.metrics["average_" + policy + "_" + std::to_string(s)] =
                mean_overhead(grid, "", policy, s);
        }
        for (const std::string kind : {"average", "localized"}) {
            double needed = 1e9;
            for (const std::uint32_t s : {64U, 32U, 16U, 8U}) {
                if (report.metrics[kind + "_" + policy + "_" + std::to_string(s)] > 3) break;
                needed = s;
            }
            report.metrics[kind + "_slots_for_3_percent_" + policy] = needed;
        }
    }
    auto& m = report.metrics;
    m["localized_static_over_dynamic_8"] = m["localized_static_8"] / std::max(0.1, m["localized_dynamic_8"]);
    m["average_static_minus_dynamic_8"] = m["average_static_8"] - m["average_dynamic_8"];
    return report;
}

Report figure_7_10(const Context& context) {
    const std::uint32_t processes = context.full ? 1024 : 64;
    const std::vector<std::uint32_t> repetitions = {1, 2, 5, 10, 20, 50};
    Grid grid({"policy", "repetitions"});
    for (const std::uint32_t r : repetitions) {
        const auto make = [&](const std::string& policy) {
            Trial run = thesis_run("scatterv", processes, policy, 16);
            run.flow.piggyback = true;
            run.options.repetitions = r;
            run.options.iterations = 200;
            return run;
        };
        const std::size_t reference = grid.reference(make("none"));
        grid.add({std::string("none"), double(r)}, make("none"), reference);
        for (const std::string policy : {"static", "dynamic"})
            grid.add({policy, double(r)}, make(policy), reference);
    }
    grid.execute(context.jobs);
    Report report = grid.report();
    const auto time = [&](const std::string& policy, double r) { return grid.find({policy, r})->time_us; };
    report.metrics["reference_50_over_1"] = time("none", 50) / time("none", 1);
    report.metrics["static_50_over_1"] = time("static", 50) / time("static", 1);
    report.metrics["dynamic_overhead_1"] = grid.overhead({std::string("dynamic"), 1.0});
    report.metrics["dynamic_overhead_50"] = grid.overhead({std::string("dynamic"), 50.0});
    report.metrics["static_overhead_1"] = grid.overhead({std::string("static"), 1.0});
    return report;
}

// ---- Liu & Panda ---

// Eight nodes at one switch; the costs stay EXTOLL's, so that only shapes compare.
Trial cluster_run(const std::string& pattern, std::uint32_t processes, const std::string& policy,
                  std::uint32_t buffers) {
    Trial run;
    run.pattern = pattern;
    run.machine.dimensions = {processes};
    run.machine.processes_per_node = 1;
    run.machine.torus = true;
    run.options.processes = processes;
    run.flow.policy = policy;
    run.flow.slots_per_peer = buffers + run.flow.credit_slots;
    return run;
}

bool accepts(const std::string& policy, std::uint32_t peers, std::uint32_t buffers) {
    flow::PolicyConfig config;
    config.peers = peers;
    config.data_slots = peers * buffers;
    std::string error;
    return flow::make_policy(policy, config, &error) != nullptr;
}

Report liu_panda_bandwidth(const Context& context) {
    const std::vector<std::uint32_t> windows = {1, 5, 10, 20, 40, 60, 80, 100};
    Grid grid({"buffers", "policy", "window"});
    for (const std::uint32_t buffers : {100U, 10U})
        for (const std::uint32_t window : windows) {
            const auto make = [&](const std::string& policy) {
                Trial run = cluster_run("stream", 2, policy, buffers);
                run.options.bytes = 4;
                run.options.repetitions = window;
                run.options.iterations = 100;
                run.warm_up = 20;
                return run;
            };
            const std::size_t reference = grid.reference(make("none"));
            for (const std::string& policy : limited_policies())
                grid.add({double(buffers), policy, double(window)}, make(policy), reference);
        }
    grid.execute(context.jobs);
    Report report = grid.report();
    for (const std::string& policy : limited_policies()) {
        double enough = 0;
        for (const std::uint32_t window : windows)
            enough = std::max(enough, grid.overhead({100.0, policy, double(window)}));
        report.metrics["worst_overhead_100_buffers_" + policy] = enough;
        report.metrics["overhead_10_buffers_window_100_" + policy] = grid.overhead({10.0, policy, 100.0});
    }
    return report;
}

// Their buffer holds a message. A slot holds a packet, so every message here is one packet.
constexpr std::uint32_t kOnePacketBytes = 40;

struct Nas {
    const char* name;  // the code whose communication it resembles
    const char* pattern;
    std::uint32_t repetitions;
};
constexpr Nas kNas[] = {{"IS", "alltoall_pairwise", 1}, {"FT", "alltoall", 1}, {"LU", "wavefront", 60},
                        {"CG", "allreduce", 1},         {"MG", "exchange", 1}, {"SP", "sendrecv", 1}};

Report liu_panda_nas(const Context& context) {
    Grid grid({"code", "policy", "buffers"});
    Report skipped;
    for (const Nas& nas : kNas) {
        const auto make = [&](const std::string& policy, std::uint32_t buffers) {
            Trial run = cluster_run(nas.pattern, 8, policy, buffers);
            run.options.bytes = kOnePacketBytes;
            run.options.repetitions = nas.repetitions;
            run.options.iterations = 60;
            run.warm_up = 10;
            return run;
        };
        const std::size_t reference = grid.reference(make("none", 100));
        for (const std::string& policy : limited_policies())
            for (const std::uint32_t buffers : {100U, 10U, 1U}) {
                if (!accepts(policy, 7, buffers)) {
                    skipped.remarks.push_back(std::string(nas.name) + ": " + policy + " does not run with " +
                                              std::to_string(buffers) + " buffers");
                    continue;
                }
                grid.add({std::string(nas.name), policy, double(buffers)}, make(policy, buffers), reference);
            }
    }
    grid.execute(context.jobs);
    Report report = grid.report();
    report.remarks.insert(report.remarks.end(), skipped.remarks.begin(), skipped.remarks.end());
    for (const auto& point : grid.points()) {
        const std::string name = std::get<std::string>(point.key[0]) + "_" +
                                 std::get<std::string>(point.key[1]) + "_" +
                                 std::to_string(static_cast<int>(std::get<double>(point.key[2])));
        const Totals& totals = grid.of(point).outcome.totals;
        report.metrics["overhead_" + name] = grid.overhead(point);
        report.metrics["credit_percent_" + name] =
            100.0 * static_cast<double>(totals.flow.credit_packets) /
            static_cast<double>(totals.flow.credit_packets + totals.data_packets);
    }
    double other = 0;
    for (const Nas& nas : kNas)
        if (nas.name != std::string("LU"))
            other = std::max(other, report.metrics["overhead_" + std::string(nas.name) + "_static_1"]);
    report.metrics["lu_minus_worst_other_static_1"] = report.metrics["overhead_LU_static_1"] - other;
    return report;
}

}  // namespace

std::vector<Experiment> benchmark_experiments() {
    return {
        {"fig7.5", "IMB-like patterns by class at 8, 16, 32 and 64 slots (figures 7.5 to 7.8 and 7.12)",
         "slots_per_peer", "overhead_percent", figure_7_5},
        {"fig7.10", "Scatterv, the root changes after some repetitions", "repetitions", "time_us",
         figure_7_10},
        {"liu3", "Liu & Panda: streams of small messages, 100 and 10 buffers (their figures 3 to 6)",
         "window", "overhead_percent", liu_panda_bandwidth},
        {"liu10",
         "Liu & Panda: NAS-like patterns with 100, 10 and 1 buffers (their figure 10, tables 1 and 2)",
         "buffers", "overhead_percent", liu_panda_nas},
    };
}

}  // namespace velo::sim
