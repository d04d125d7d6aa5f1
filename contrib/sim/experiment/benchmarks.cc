// Section 7.4 of the thesis: the Intel MPI benchmarks by class of pattern, and Liu & Panda's measurements in
// shape.
#include <algorithm>
#include <cmath>
#include <iterator>
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

// Every policy of this build that bounds its mailbox, in the order of its table.
std::vector<std::string> bounding_policies() {
    std::vector<std::string> names;
    for (const std::string_view name : flow::policy_names(kProvidedNeeds))
        if (name != "none") names.emplace_back(name);
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
    grid.execute(context);
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

// The memory of 8 slots for each peer, as the windows of lazy: data slots are what their control packets
// leave.
Trial lazy_in_eight(const Benchmark& benchmark, std::uint32_t processes, std::uint32_t windows,
                    std::uint32_t ahead) {
    Trial run = benchmark_run(benchmark, processes, "lazy", 8);
    run.flow.own.lazy_peers = windows;
    run.flow.own.lazy_slots = 8 * (processes - 1) - windows * (run.flow.credit_slots + 3);
    run.flow.own.lazy_doorbell = true;
    run.flow.own.lazy_ahead = ahead;
    return run;
}

Report eight_slots(const Context& context) {
    const std::uint32_t processes = context.full ? 256 : 64;
    Grid grid({"pattern", "policy", "windows", "ahead"});
    const auto cell = [](const Benchmark& benchmark, const std::string& policy, double windows,
                         double ahead) {
        return std::vector<Cell>{std::string(benchmark.pattern), policy, windows, ahead};
    };
    const std::vector<std::uint32_t> parts = {8, 4};
    for (const Benchmark& benchmark : kBenchmarks) {
        const std::size_t reference = grid.reference(benchmark_run(benchmark, processes, "none", 64));
        grid.add(cell(benchmark, "dynamic", 0, 0), benchmark_run(benchmark, processes, "dynamic", 8),
                 reference);
        for (const std::uint32_t part : parts) {
            const std::uint32_t windows = processes / part;
            for (const std::uint32_t ahead : {0U, 4U, 16U})
                grid.add(cell(benchmark, "lazy", windows, ahead),
                         lazy_in_eight(benchmark, processes, windows, ahead), reference);
        }
    }
    grid.execute(context);
    Report report = grid.report();
    // `clipped`: some patterns get faster when they are held up, which is nobody's merit.
    const auto mean = [&](const std::string& policy, double windows, double ahead, bool clipped) {
        double sum = 0;
        for (const Benchmark& benchmark : kBenchmarks) {
            const double overhead = grid.overhead(cell(benchmark, policy, windows, ahead));
            sum += clipped ? std::max(0.0, overhead) : overhead;
        }
        return sum / std::size(kBenchmarks);
    };
    const std::uint32_t windows = processes / 4;
    report.metrics["average_dynamic"] = mean("dynamic", 0, 0, false);
    report.metrics["average_lazy"] = mean("lazy", windows, 4, false);
    report.metrics["average_lazy_no_gains"] = mean("lazy", windows, 4, true);
    report.metrics["saved_by_windows_ahead"] =
        mean("lazy", windows, 0, true) - mean("lazy", windows, 4, true);
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
    grid.execute(context);
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

constexpr std::uint32_t kEnoughBuffers = 100;

// Eight nodes at one switch; the costs stay EXTOLL's, so that only shapes compare. `buffers` are what each
// peer has: the user-level dynamic scheme starts there and has room to grow to the 100 that are enough.
Trial cluster_run(const std::string& pattern, std::uint32_t processes, const std::string& policy,
                  std::uint32_t buffers) {
    Trial run;
    run.pattern = pattern;
    run.machine.dimensions = {processes};
    run.machine.processes_per_node = 1;
    run.machine.torus = true;
    run.options.processes = processes;
    run.flow.policy = policy;
    const bool grows = policy == "mvapich_dynamic";
    run.flow.slots_per_peer = (grows ? kEnoughBuffers : buffers) + run.flow.credit_slots;
    run.flow.own.preposted_buffers = grows ? kEnoughBuffers : buffers;
    run.flow.own.initial_buffers = buffers;
    run.flow.own.growth_buffers = 1;  // "linear"; the paper does not say by how many
    run.flow.own.lazy_slots = (processes - 1) * buffers;
    return run;
}

bool accepts(const Trial& run) {
    flow::PolicyConfig config = run.flow.own;
    config.peers = run.options.processes - 1;
    config.data_slots = config.peers * (run.flow.slots_per_peer - run.flow.credit_slots);
    std::string error;
    return flow::make_policy(run.flow.policy, config, &error) != nullptr;
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
            for (const std::string& policy : bounding_policies())
                grid.add({double(buffers), policy, double(window)}, make(policy), reference);
        }
    grid.execute(context);
    Report report = grid.report();
    for (const std::string& policy : bounding_policies()) {
        double enough = 0;
        for (const std::uint32_t window : windows)
            enough = std::max(enough, grid.overhead({100.0, policy, double(window)}));
        report.metrics["worst_overhead_100_buffers_" + policy] = enough;
        report.metrics["overhead_10_buffers_window_100_" + policy] = grid.overhead({10.0, policy, 100.0});
    }
    const auto few = [&](const char* policy) { return grid.overhead({10.0, std::string(policy), 100.0}); };
    const double hardware = few("rnr"), fixed = few("mvapich_static"), grown = few("mvapich_dynamic");
    report.metrics["few_buffers_dynamic_minus_best_other"] = grown - std::min(hardware, fixed);
    report.metrics["few_buffers_static_minus_worst_other"] = fixed - std::max(hardware, grown);
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

// Their figure 10: the same scheme with 1 buffer against itself with 100. Their table 2: the buffers that the
// user-level dynamic scheme has come to, from 1 on.
void summarise_nas(const Grid& grid, Report& report) {
    auto& m = report.metrics;
    const std::string grown = "mvapich_dynamic";
    for (const std::string& policy : bounding_policies()) {
        double other = -100;
        double local = -100;
        for (const Nas& nas : kNas) {
            const std::string code = nas.name;
            const Measured* one = grid.find({code, policy, 1.0});
            const Measured* enough = grid.find({code, policy, double(kEnoughBuffers)});
            if (one == nullptr || enough == nullptr) continue;
            const double loss = overhead_percent(one->time_us, enough->time_us);
            m["loss_" + code + "_" + policy] = loss;
            if (code != "LU") other = std::max(other, loss);
            if (code == "IS" || code == "FT" || code == "SP") local = std::max(local, loss);
        }
        if (other == -100) continue;
        m["loss_worst_but_LU_" + policy] = other;
        m["loss_worst_of_IS_FT_SP_" + policy] = local;
        m["loss_LU_minus_worst_other_" + policy] = m["loss_LU_" + policy] - other;
    }
    double others = 0;
    for (const Nas& nas : kNas)
        if (nas.name != std::string("LU"))
            others = std::max(others, m["buffers_" + std::string(nas.name) + "_" + grown + "_1"]);
    m["buffers_most_but_LU"] = others;
    m["buffers_LU_over_others"] = m["buffers_LU_" + grown + "_1"] / others;
}

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
        for (const std::string& policy : bounding_policies())
            for (const std::uint32_t buffers : {100U, 10U, 1U}) {
                if (!accepts(make(policy, buffers))) {
                    skipped.remarks.push_back(std::string(nas.name) + ": " + policy + " does not run with " +
                                              std::to_string(buffers) + " buffers");
                    continue;
                }
                grid.add({std::string(nas.name), policy, double(buffers)}, make(policy, buffers), reference);
            }
    }
    grid.execute(context);
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
        report.metrics["buffers_" + name] = totals.largest_quota;
    }
    summarise_nas(grid, report);
    return report;
}

}  // namespace

std::vector<Experiment> benchmark_experiments() {
    return {
        {"fig7.5", "IMB-like patterns by class at 8, 16, 32 and 64 slots (figures 7.5 to 7.8 and 7.12)",
         "slots_per_peer", "overhead_percent", figure_7_5},
        {"eight", "the memory of 8 slots for each peer: dynamic, and lazy with windows ahead", "windows",
         "overhead_percent", eight_slots},
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
