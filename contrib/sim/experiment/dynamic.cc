// Chapter 6 of the thesis and sections 7.1 to 7.3: static and dynamic side by side.
#include <algorithm>
#include <cmath>
#include <set>

#include "experiment/grid.h"
#include "experiment/numbers.h"

namespace velo::sim {
namespace {

// The slots from which on the overhead is acceptable with a static mailbox (Spanish paper, section 4).
constexpr std::uint32_t kAcceptable = 58;
const std::vector<std::string> kBoth = {"static", "dynamic"};

// Measured are three; under a policy after as many as its credits need to find the active ones.
Trial grouped_alltoall(std::uint32_t processes, std::uint32_t active, std::uint32_t groups,
                       const std::string& policy, std::uint32_t slots, bool full) {
    Trial run = thesis_run("alltoall", processes, policy, slots);
    run.options.active = active;
    run.options.groups = groups;
    run.warm_up = policy == "none" ? 0 : full ? 6 : 3;
    run.options.iterations = run.warm_up + 3;
    return run;
}

// A part of the processes, as in the thesis, and all parts at the same time, as in the Spanish paper.
Report parts_of_all(const Context& context, const std::string& policy) {
    const std::uint32_t processes = context.full ? 1024 : 128;
    const std::vector<std::uint32_t> parts =
        context.full ? std::vector<std::uint32_t>{1, 2, 4, 8} : std::vector<std::uint32_t>{1, 2, 4};
    const auto slots = context.full ? std::vector<std::uint32_t>{8, 12, 15, 24, 29, 40, 50, 55, 58, 64}
                                    : std::vector<std::uint32_t>{8, 15, 29, 40, 55, 58};
    Grid grid({"active", "groups", "slots_per_peer"});
    for (const std::uint32_t part : parts)
        for (const std::uint32_t groups : std::set{1U, part}) {
            const auto make = [&](const std::string& under, std::uint32_t s) {
                return grouped_alltoall(processes, processes / part, groups, under, s, context.full);
            };
            const std::size_t reference = grid.reference(make("none", 64));
            for (const std::uint32_t s : slots)
                grid.add({double(processes / part), double(groups), double(s)}, make(policy, s), reference);
        }
    grid.execute(context);
    Report report = grid.report();
    for (const std::uint32_t part : parts)
        for (const std::uint32_t groups : {1U, part}) {
            const std::string of = "_" + std::to_string(groups) + "_of_" + std::to_string(part);
            const auto overheads = [&](std::uint32_t low, std::uint32_t high) {
                return grid.overheads({double(processes / part), double(groups)}, between(slots, low, high));
            };
            report.metrics["least_overhead_to_55_slots" + of] = least(overheads(0, 55));
            report.metrics["overhead_from_58_slots" + of] = largest(overheads(kAcceptable, 64));
            // The same part of the slots as of the processes.
            report.metrics["overhead_from_that_part" + of] =
                largest(overheads((kAcceptable + part - 1) / part, 64));
        }
    return report;
}

Report figure_5_9(const Context& context) {
    return parts_of_all(context, "static");
}

Report figure_6_5(const Context& context) {
    return parts_of_all(context, "dynamic");
}

// Twice each point: with the processor's part of flow control, and without it.
Report figure_7_1(const Context& context) {
    const std::uint32_t processes = context.full ? 1024 : 64;
    const std::vector<std::uint32_t> slots = {8, 16, 32, 64};
    Grid grid({"pattern", "policy", "component", "slots_per_peer"});
    for (const std::string pattern : {"alltoall", "multi_pingpong"}) {
        const std::uint32_t count = pattern == "alltoall" ? processes : 32;
        const auto make = [&](const std::string& policy, std::uint32_t s) {
            Trial run = thesis_run(pattern, count, policy, s);
            run.options.iterations = pattern == "alltoall" ? 5 : 400;
            run.warm_up = pattern == "alltoall" ? 2 : 100;
            return run;
        };
        const std::size_t reference = grid.reference(make("none", 64));
        for (const std::string& policy : kBoth)
            for (const std::uint32_t s : slots)
                for (const bool free : {false, true}) {
                    Trial run = make(policy, s);
                    run.flow.free_of_charge = free;
                    grid.add({pattern, policy, std::string(free ? "stalls_and_traffic" : "total"), double(s)},
                             run, reference);
                }
    }
    grid.execute(context);
    Report report = grid.report();
    const auto of = [&](const std::string& pattern, const std::string& policy, const char* component) {
        return grid.overheads({pattern, policy, std::string(component)}, slots);
    };
    const auto computation = [&](const std::string& pattern, const std::string& policy) {
        return differences(of(pattern, policy, "total"), of(pattern, policy, "stalls_and_traffic"));
    };
    const auto balanced = differences(of("alltoall", kBoth[1], "total"), of("alltoall", kBoth[0], "total"));
    auto& m = report.metrics;
    m["alltoall_dynamic_and_static_apart"] = largest(magnitudes(balanced));
    m["alltoall_dynamic_minus_static_8"] = balanced[0];
    m["alltoall_computation_apart"] = largest(
        magnitudes(differences(computation("alltoall", kBoth[1]), computation("alltoall", kBoth[0]))));
    const std::string pingpong = "multi_pingpong";
    m["pingpong_static_overhead"] = mean(of(pingpong, kBoth[0], "total"));
    m["pingpong_dynamic_overhead"] = mean(of(pingpong, kBoth[1], "total"));
    m["pingpong_static_minus_dynamic_overhead"] =
        m["pingpong_static_overhead"] - m["pingpong_dynamic_overhead"];
    m["pingpong_static_minus_dynamic_computation"] =
        mean(computation(pingpong, kBoth[0])) - mean(computation(pingpong, kBoth[1]));
    return report;
}

Report figure_7_3(const Context& context) {
    const std::vector<std::uint32_t> counts =
        context.full ? std::vector<std::uint32_t>{32, 64, 128, 256} : std::vector<std::uint32_t>{32, 64};
    const std::vector<std::uint32_t> slots = {8, 16, 24, 32, 40, 48, 57, 64};
    Grid grid({"processes", "policy", "slots_per_peer"});
    for (const std::uint32_t count : counts) {
        const auto make = [&](const std::string& policy, std::uint32_t s) {
            Trial run = thesis_run("alltoall", count, policy, s);
            run.machine.limic = true;
            run.options.iterations = context.full ? 20 : 8;
            run.warm_up = run.options.iterations / 2;
            return run;
        };
        const std::size_t reference = grid.reference(make("none", 64));
        for (const std::string& policy : kBoth)
            for (const std::uint32_t s : slots)
                grid.add({double(count), policy, double(s)}, make(policy, s), reference);
    }
    grid.execute(context);
    Report report = grid.report();
    for (const std::uint32_t count : counts) {
        const double difference = mean(differences(grid.overheads({double(count), kBoth[0]}, slots),
                                                   grid.overheads({double(count), kBoth[1]}, slots)));
        report.metrics["static_minus_dynamic_" + std::to_string(count)] = difference;
        report.metrics["apart_" + std::to_string(count)] = std::fabs(difference);
    }
    return report;
}

// Credits of process 0 towards the processes of a range.
std::vector<double> credits(const Simulation& simulation, std::uint32_t from, std::uint32_t to) {
    std::vector<double> values;
    for (std::uint32_t q = std::max(from, 1U); q < to; ++q)
        values.push_back(simulation.policy(0).credits(simulation.peers().index_of(0, q)));
    return values;
}

Report figure_7_4(const Context& context) {
    const std::uint32_t n = context.full ? 1024 : 64;
    const std::vector<std::uint32_t> phases = {n, n / 4, n / 2, n, n / 2, n / 4, n};
    const std::uint32_t each = context.full ? 20 : 12;
    Trial run = thesis_run("phases", n, "dynamic", 30);
    run.options.phases = phases;
    run.options.iterations = each;
    run.machine.seed = context.seed;
    const auto workload = make_pattern(run.pattern, run.options);
    Simulation simulation(run.machine, run.flow, *workload);
    Report report;
    report.columns = {"alltoall", "ranks", "mean_credits", "least_credits", "most_credits"};
    const std::uint32_t edge[] = {0, n / 4, n / 2, n};
    const char* names[] = {"first quarter", "second quarter", "second half"};
    // After each alltoall; the last one of a phase is followed by a barrier of all.
    std::vector<double> history[3];
    simulation.on_iteration([&](std::uint32_t iteration) {
        for (int part = 0; part < 3; ++part) {
            const auto values = credits(simulation, edge[part], edge[part + 1]);
            history[part].push_back(mean(values));
            report.rows.push_back(
                {double(iteration), std::string(names[part]), mean(values), least(values), largest(values)});
        }
    });
    const Outcome outcome = simulation.run();
    report.metrics["failed_runs"] = outcome.failed();
    if (outcome.failed()) {
        report.remarks.push_back("the run FAILED: " + outcome.fault + outcome.deadlock);
        return report;
    }
    const auto at_end = [&](std::size_t phase, int part) { return history[part][(phase + 1) * each - 1]; };
    const auto ratio = [](double a, double b) { return b > 0 ? a / b : kNotMeasured; };
    auto& m = report.metrics;
    m["quarter_phase_first_minus_second_half"] = at_end(1, 0) - at_end(1, 2);
    m["quarter_phase_first_minus_second_quarter"] = at_end(1, 0) - at_end(1, 1);
    m["quarter_phase_gain"] = ratio(at_end(1, 0), at_end(0, 0));
    m["half_phase_second_quarter_minus_second_half"] = at_end(2, 1) - at_end(2, 2);
    m["last_phase_second_half_gain"] = ratio(at_end(6, 2), at_end(5, 2));
    m["second_half_gain_by_the_barrier"] = at_end(1, 2) - history[2][2 * each - 2];
    return report;
}

}  // namespace

std::vector<Experiment> dynamic_experiments() {
    return {
        {"fig5.9",
         "static: alltoalls of all, a half, a quarter, an eighth of the processes, alone and all at once",
         "slots_per_peer", "overhead_percent,delayed_percent", figure_5_9},
        {"fig6.5",
         "dynamic: alltoalls of all, a half, a quarter, an eighth of the processes, alone and all at once",
         "slots_per_peer", "overhead_percent,delayed_percent", figure_6_5},
        {"fig7.1", "the components of the overhead (figures 7.1 and 7.2)", "slots_per_peer",
         "overhead_percent", figure_7_1},
        {"fig7.3", "alltoall with LiMIC inside the nodes", "slots_per_peer", "overhead_percent", figure_7_3},
        {"fig7.4", "credits of process 0 while the pattern changes", "alltoall", "mean_credits", figure_7_4},
    };
}

}  // namespace velo::sim
