// Section 7.4 of the thesis: the Intel MPI benchmarks by class of pattern, and Liu & Panda's measurements in
// shape.
#include <algorithm>
#include <iterator>

#include "experiment/grid.h"
#include "experiment/numbers.h"
#include "flow/policies.h"
#include "machine/simulation.h"

namespace velo::sim {
namespace {

struct Benchmark {
    const char* pattern;
    const char* kind;  // the class, as this model reads the thesis: see design.md
    std::uint32_t iterations;
};
// Trees whose root moves with each operation use a partner at distance d once in 2d of them: quotas follow
// after hundreds, and IMB repeats messages of 2 KB a thousand times.
constexpr Benchmark kBenchmarks[] = {
    {"multi_pingpong", "localized", 200},
    {"sendrecv", "localized", 200},
    {"exchange", "localized", 100},
    {"allreduce", "localized", 100},
    {"bcast", "localized", 1000},
    {"reduce", "localized", 1000},
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
    for (const std::string_view name : flow::policy_names())
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

constexpr struct {
    const char* name;  // as in tables, and at the end of a metric's name
    ByReference choice;
    const char* metric;
} kChoices[] = {{"never", ByReference::kNever, ""}, {"auto", ByReference::kAuto, "_by_reference"}};

// Mean overhead of the benchmarks of a class, or of all.
double mean_overhead(const Grid& grid, const std::string& kind, const std::string& policy,
                     const std::string& choice, double slots) {
    std::vector<double> overheads;
    for (const Benchmark& benchmark : kBenchmarks)
        if (kind.empty() || kind == benchmark.kind)
            overheads.push_back(grid.overhead(
                {std::string(benchmark.kind), std::string(benchmark.pattern), policy, choice, slots}));
    return mean(overheads);
}

std::uint32_t processes_of(const Context& context, std::uint32_t full) {
    return context.processes > 0 ? context.processes : context.full ? full : 64;
}

Report figure_7_5(const Context& context) {
    const std::uint32_t processes = processes_of(context, 1024);
    Grid grid({"class", "pattern", "policy", "by_reference", "slots_per_peer"});
    for (const Benchmark& benchmark : kBenchmarks) {
        const std::size_t reference = grid.reference(benchmark_run(benchmark, processes, "none", 64));
        for (const std::string policy : {"static", "dynamic"})
            for (const auto& way : kChoices)
                for (const std::uint32_t s : kSlots) {
                    Trial run = benchmark_run(benchmark, processes, policy, s);
                    run.flow.by_reference = way.choice;
                    grid.add({std::string(benchmark.kind), std::string(benchmark.pattern), policy,
                              std::string(way.name), double(s)},
                             run, reference);
                }
    }
    grid.execute(context);
    Report report = grid.report();
    for (const std::string policy : {"static", "dynamic"}) {
        for (const auto& way : kChoices)
            for (const std::uint32_t s : kSlots) {
                const std::string end = "_" + policy + "_" + std::to_string(s) + way.metric;
                for (const std::string kind : {"localized", "balanced", "rma"})
                    report.metrics[kind + end] = mean_overhead(grid, kind, policy, way.name, s);
                report.metrics["average" + end] = mean_overhead(grid, "", policy, way.name, s);
            }
    }
    auto& m = report.metrics;
    for (const std::string kind : {"average", "localized"})
        m[kind + "_static_minus_dynamic_8"] = m[kind + "_static_8"] - m[kind + "_dynamic_8"];
    m["dynamic_16_minus_8_by_reference"] = m["average_dynamic_16"] - m["average_dynamic_8_by_reference"];
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
    const std::uint32_t processes = processes_of(context, 256);
    Grid grid({"pattern", "policy", "windows", "ahead", "by_reference"});
    const auto cell = [](const Benchmark& benchmark, const std::string& policy, double windows, double ahead,
                         const std::string& choice = kChoices[0].name) {
        return std::vector<Cell>{std::string(benchmark.pattern), policy, windows, ahead, choice};
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
        for (const std::string policy : {"static", "dynamic", "lazy"}) {
            const bool lazy = policy == "lazy";
            Trial run = lazy ? lazy_in_eight(benchmark, processes, processes / 4, 4)
                             : benchmark_run(benchmark, processes, policy, 8);
            run.flow.by_reference = ByReference::kAuto;
            grid.add(cell(benchmark, policy, lazy ? processes / 4 : 0, lazy ? 4 : 0, "auto"), run, reference);
        }
        // What a get costs whoever has all credits.
        Trial gets = benchmark_run(benchmark, processes, "none", 64);
        gets.flow.by_reference = ByReference::kAlways;
        grid.add(cell(benchmark, "none", 0, 0, "always"), gets, reference);
    }
    grid.execute(context);
    Report report = grid.report();
    // `clipped`: some patterns get faster when they are held up, which is nobody's merit.
    const auto average = [&](const std::string& policy, double windows, double ahead, bool clipped) {
        std::vector<double> overheads;
        for (const Benchmark& benchmark : kBenchmarks) {
            const double overhead = grid.overhead(cell(benchmark, policy, windows, ahead));
            overheads.push_back(clipped && overhead < 0 ? 0 : overhead);
        }
        return mean(overheads);
    };
    const std::uint32_t windows = processes / 4;
    report.metrics["average_dynamic"] = average("dynamic", 0, 0, false);
    report.metrics["average_lazy"] = average("lazy", windows, 4, false);
    report.metrics["average_lazy_no_gains"] = average("lazy", windows, 4, true);
    report.metrics["saved_by_windows_ahead"] =
        average("lazy", windows, 0, true) - average("lazy", windows, 4, true);
    for (const std::string policy : {"static", "dynamic", "lazy"}) {
        const bool lazy = policy == "lazy";
        std::vector<double> overheads, clipped, beside_gets;
        for (const Benchmark& benchmark : kBenchmarks) {
            const double overhead =
                grid.overhead(cell(benchmark, policy, lazy ? windows : 0, lazy ? 4 : 0, "auto"));
            overheads.push_back(overhead);
            clipped.push_back(overhead < 0 ? 0 : overhead);
            // Whichever of packets and gets without flow control takes longer.
            beside_gets.push_back(overhead -
                                  largest({0.0, grid.overhead(cell(benchmark, "none", 0, 0, "always"))}));
        }
        report.metrics["average_" + policy + "_by_reference"] = mean(overheads);
        report.metrics["average_" + policy + "_by_reference_no_gains"] = mean(clipped);
        report.metrics["worst_" + policy + "_by_reference"] = largest(overheads);
        report.metrics["worst_" + policy + "_beside_gets"] = largest(beside_gets);
    }
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
    const auto growth = [&](const std::string& policy) {
        return grid.find({policy, 50.0})->time_us / grid.find({policy, 1.0})->time_us;
    };
    const std::string fixed = "static", moving = "dynamic";
    auto& m = report.metrics;
    m["reference_50_over_1"] = growth("none");
    m["static_50_over_1"] = growth(fixed);
    m["dynamic_overhead_1"] = grid.overhead({moving, 1.0});
    m["static_overhead_1"] = grid.overhead({fixed, 1.0});
    m["least_overhead_1"] = least({m["dynamic_overhead_1"], m["static_overhead_1"]});
    m["dynamic_overhead_50"] = grid.overhead({moving, 50.0});
    m["dynamic_overhead_1_minus_50"] = m["dynamic_overhead_1"] - m["dynamic_overhead_50"];
    return report;
}

// ---- Liu & Panda ---

constexpr std::uint32_t kEnoughBuffers = 100;
constexpr const char* kSchemes[] = {"rnr", "mvapich_static", "mvapich_dynamic"};

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
    run.flow.by_reference = ByReference::kNever;
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
    auto& m = report.metrics;
    std::vector<double> apart;
    for (const std::uint32_t window : windows) {
        std::vector<double> overheads;
        for (const char* scheme : kSchemes)
            overheads.push_back(grid.overhead({100.0, std::string(scheme), double(window)}));
        apart.push_back(largest(overheads) - least(overheads));
    }
    m["schemes_apart_100_buffers"] = largest(apart);
    for (const std::string& policy : bounding_policies()) {
        m["worst_overhead_100_buffers_" + policy] = largest(grid.overheads({100.0, policy}, windows));
        m["overhead_10_buffers_window_100_" + policy] = grid.overhead({10.0, policy, 100.0});
    }
    const auto few = [&](const char* policy) { return grid.overhead({10.0, std::string(policy), 100.0}); };
    const double hardware = few("rnr"), fixed = few("mvapich_static"), grown = few("mvapich_dynamic");
    m["few_buffers_dynamic_minus_best_other"] = grown - least({hardware, fixed});
    m["few_buffers_static_minus_worst_other"] = fixed - largest({hardware, grown});
    m["buffers_10_window_100_mvapich_dynamic"] =
        grid.find({10.0, std::string("mvapich_dynamic"), 100.0})->outcome.totals.largest_quota;
    return report;
}

// Their buffer holds a message, whose header has a place for credits. A slot holds a packet, so every message
// here is one packet with room for credits.
constexpr std::uint32_t kOnePacketBytes = 32;

struct Nas {
    const char* name;  // the code whose communication it resembles
    const char* pattern;
    std::uint32_t repetitions;
};
constexpr Nas kNas[] = {{"IS", "alltoall_pairwise", 1}, {"FT", "alltoall", 1}, {"LU", "wavefront", 62},
                        {"CG", "allreduce", 1},         {"MG", "exchange", 1}, {"SP", "exchange", 1}};

// Their figure 10: the same scheme with 1 buffer against itself with 100. A policy that does not run with 1
// has no number.
void summarise_losses(const Grid& grid, Report& report) {
    auto& m = report.metrics;
    for (const std::string& policy : bounding_policies()) {
        std::vector<double> other, local;
        for (const Nas& nas : kNas) {
            const std::string code = nas.name;
            const Measured* one = grid.find({code, policy, 1.0});
            const Measured* enough = grid.find({code, policy, double(kEnoughBuffers)});
            const double loss = one == nullptr || enough == nullptr
                                    ? kNotMeasured
                                    : overhead_percent(one->time_us, enough->time_us);
            m["loss_" + code + "_" + policy] = loss;
            if (code != "LU") other.push_back(loss);
            if (code == "IS" || code == "FT" || code == "SP") local.push_back(loss);
        }
        m["loss_worst_but_LU_" + policy] = largest(other);
        m["loss_worst_of_IS_FT_SP_" + policy] = largest(local);
        m["loss_LU_minus_worst_other_" + policy] = m["loss_LU_" + policy] - largest(other);
    }
}

// Their figure 9 and tables 1 and 2: with 100 buffers the schemes beside each other; credit messages; the
// buffers that the user-level dynamic scheme has come to, from 1 on.
void summarise_nas(const Grid& grid, Report& report) {
    auto& m = report.metrics;
    const std::string hardware = kSchemes[0], fixed = kSchemes[1], grown = kSchemes[2];
    std::vector<double> apart, credit_percents, buffers;
    for (const Nas& nas : kNas) {
        const std::string code = nas.name;
        const auto overhead = [&](const std::string& policy) {
            return grid.overhead({code, policy, double(kEnoughBuffers)});
        };
        const std::vector<double> overheads = {overhead(hardware), overhead(fixed), overhead(grown)};
        if (code == "LU") {
            m["LU_fixed_behind_hardware"] = overheads[1] - overheads[0];
            m["LU_grown_behind_hardware"] = overheads[2] - overheads[0];
            continue;
        }
        apart.push_back(largest(overheads) - least(overheads));
        credit_percents.push_back(m["credit_percent_" + code + "_" + fixed + "_100"]);
        buffers.push_back(m["buffers_" + code + "_" + grown + "_1"]);
    }
    m["schemes_apart_but_LU_100_buffers"] = largest(apart);
    m["credit_percent_but_LU_mvapich_static_100"] = largest(credit_percents);
    m["buffers_most_but_LU"] = largest(buffers);
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
    summarise_losses(grid, report);
    summarise_nas(grid, report);
    return report;
}

}  // namespace

std::vector<Experiment> benchmark_experiments() {
    return {
        {"fig7.5", "IMB-like patterns by class at 8, 16, 32 and 64 slots (figures 7.5 to 7.8 and 7.12)",
         "slots_per_peer", "overhead_percent", figure_7_5, true, true},
        {"eight",
         "the memory of 8 slots for each peer: dynamic, lazy with windows ahead, and messages by reference",
         "windows", "overhead_percent", eight_slots, true, true},
        {"fig7.10", "Scatterv, the root changes after some repetitions", "repetitions", "time_us",
         figure_7_10, false},
        {"liu3", "Liu & Panda: streams of small messages, 100 and 10 buffers (their figures 3 to 6)",
         "window", "overhead_percent", liu_panda_bandwidth, false},
        {"liu10",
         "Liu & Panda: NAS-like patterns with 100, 10 and 1 buffers (their figure 10, tables 1 and 2)",
         "buffers", "overhead_percent", liu_panda_nas},
    };
}

}  // namespace velo::sim
