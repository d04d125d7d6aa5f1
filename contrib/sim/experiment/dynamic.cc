// Chapter 6 of the thesis and sections 7.1 to 7.3: static and dynamic side by side.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "experiment/grid.h"

namespace velo::sim {
namespace {

constexpr double kUnreached = 1e9;
const std::vector<std::string> kBoth = {"static", "dynamic"};

Trial grouped_alltoall(std::uint32_t processes, std::uint32_t active, const std::string& policy,
                       std::uint32_t slots) {
    Trial run = thesis_run("alltoall", processes, policy, slots);
    run.options.active = active;
    run.options.iterations = policy == "none" ? 3 : 9;
    run.warm_up = policy == "none" ? 0 : 6;  // the credits have to find the active ones
    return run;
}

// The smallest size from which on the overhead stays below `percent`.
double needed_slots(const Grid& grid, const std::vector<Cell>& key, const std::vector<std::uint32_t>& slots,
                    double percent) {
    double needed = kUnreached;
    for (auto s = slots.rbegin(); s != slots.rend(); ++s) {
        std::vector<Cell> full = key;
        full.emplace_back(double(*s));
        if (!(grid.overhead(full) < percent)) break;
        needed = *s;
    }
    return needed;
}

Report groups(const Context& context, const std::string& policy) {
    const std::uint32_t processes = context.full ? 1024 : 128;
    const std::vector<std::uint32_t> parts =
        context.full ? std::vector<std::uint32_t>{1, 2, 4, 8} : std::vector<std::uint32_t>{1, 2, 4};
    const auto slots = context.full ? std::vector<std::uint32_t>{8, 12, 16, 24, 30, 40, 50, 57, 64}
                                    : std::vector<std::uint32_t>{8, 16, 30, 40, 57, 64};
    Grid grid({"active", "slots_per_peer"});
    for (const std::uint32_t part : parts) {
        const std::uint32_t active = processes / part;
        const std::size_t reference = grid.reference(grouped_alltoall(processes, active, "none", 64));
        for (const std::uint32_t s : slots)
            grid.add({double(active), double(s)}, grouped_alltoall(processes, active, policy, s), reference);
    }
    grid.execute(context);
    Report report = grid.report();
    for (const std::uint32_t part : parts) {
        const std::uint32_t active = processes / part;
        const std::string of = "_1_of_" + std::to_string(part);
        report.metrics["slots_for_5_percent" + of] = needed_slots(grid, {double(active)}, slots, 5);
        report.metrics["overhead_at_16_slots" + of] = grid.overhead({double(active), 16.0});
        report.metrics["overhead_at_30_slots" + of] = grid.overhead({double(active), 30.0});
        report.metrics["overhead_at_64_slots" + of] = grid.overhead({double(active), 64.0});
        report.metrics["delayed_percent_at_30_slots" + of] =
            grid.find({double(active), 30.0})->delayed_percent;
    }
    return report;
}

Report figure_5_9(const Context& context) {
    return groups(context, "static");
}

Report figure_6_5(const Context& context) {
    return groups(context, "dynamic");
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
    const auto computation = [&](const std::string& pattern, const std::string& policy, double s) {
        return grid.overhead({pattern, policy, std::string("total"), s}) -
               grid.overhead({pattern, policy, std::string("stalls_and_traffic"), s});
    };
    double worst = 0, static_total = 0, dynamic_total = 0, static_work = 0, dynamic_work = 0;
    const std::string total = "total", pingpong = "multi_pingpong";
    for (const double s : {8.0, 16.0, 32.0, 64.0}) {
        worst = std::max(worst, std::fabs(grid.overhead({std::string("alltoall"), kBoth[1], total, s}) -
                                          grid.overhead({std::string("alltoall"), kBoth[0], total, s})));
        static_total += grid.overhead({pingpong, kBoth[0], total, s}) / 4;
        dynamic_total += grid.overhead({pingpong, kBoth[1], total, s}) / 4;
        static_work += computation(pingpong, kBoth[0], s) / 4;
        dynamic_work += computation(pingpong, kBoth[1], s) / 4;
    }
    report.metrics["alltoall_dynamic_and_static_apart"] = worst;
    report.metrics["pingpong_static_overhead"] = static_total;
    report.metrics["pingpong_dynamic_overhead"] = dynamic_total;
    report.metrics["pingpong_static_minus_dynamic_overhead"] = static_total - dynamic_total;
    report.metrics["pingpong_static_minus_dynamic_computation"] = static_work - dynamic_work;
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
        double difference = 0;
        for (const std::uint32_t s : slots)
            difference += grid.overhead({double(count), kBoth[0], double(s)}) -
                          grid.overhead({double(count), kBoth[1], double(s)});
        report.metrics["static_minus_dynamic_" + std::to_string(count)] =
            difference / static_cast<double>(slots.size());
    }
    return report;
}

struct Spread {
    double mean, least, most;
};

// Credits of process 0 towards the processes of a range.
Spread credits(const Simulation& simulation, std::uint32_t from, std::uint32_t to) {
    Spread spread{0, 1e9, 0};
    for (std::uint32_t q = std::max(from, 1U); q < to; ++q) {
        const double credit = simulation.policy(0).credits(simulation.peers().index_of(0, q));
        spread.mean += credit / (to - std::max(from, 1U));
        spread.least = std::min(spread.least, credit);
        spread.most = std::max(spread.most, credit);
    }
    return spread;
}

Report figure_7_4(const Context& context) {
    const std::uint32_t n = context.full ? 1024 : 64;
    const std::vector<std::uint32_t> phases = {n, n / 4, n / 2, n, n / 2, n / 4, n};
    const std::uint32_t each = context.full ? 20 : 12;
    Trial run = thesis_run("phases", n, "dynamic", 30);
    run.options.phases = phases;
    run.options.iterations = each;
    const auto workload = make_pattern(run.pattern, run.options);
    Simulation simulation(run.machine, run.flow, *workload);
    Report report;
    report.columns = {"alltoall", "ranks", "mean_credits", "least_credits", "most_credits"};
    const std::uint32_t edge[] = {0, n / 4, n / 2, n};
    const char* names[] = {"first quarter", "second quarter", "second half"};
    double mean[7][3] = {};  // in the last alltoall of each phase
    simulation.on_iteration([&](std::uint32_t iteration) {
        for (int part = 0; part < 3; ++part) {
            const Spread s = credits(simulation, edge[part], edge[part + 1]);
            report.rows.push_back({double(iteration), std::string(names[part]), s.mean, s.least, s.most});
            if (iteration % each == each - 1) mean[iteration / each][part] = s.mean;
        }
    });
    const Outcome outcome = simulation.run();
    report.metrics["failed_runs"] = outcome.failed();
    if (outcome.failed()) report.remarks.push_back("the run FAILED: " + outcome.fault + outcome.deadlock);
    auto& m = report.metrics;
    m["quarter_phase_first_over_second_half"] = mean[1][0] / std::max(1.0, mean[1][2]);
    m["quarter_phase_first_over_second_quarter"] = mean[1][0] / std::max(1.0, mean[1][1]);
    m["half_phase_second_quarter_over_second_half"] = mean[2][1] / std::max(1.0, mean[2][2]);
    m["full_phase_second_half_over_half_phase"] = mean[6][2] / mean[5][2];
    m["quarter_phase_gain"] = mean[1][0] / mean[0][0];
    return report;
}

}  // namespace

std::vector<Experiment> dynamic_experiments() {
    return {
        {"fig5.9", "static: alltoalls of all, a half, a quarter, an eighth of the processes",
         "slots_per_peer", "overhead_percent,delayed_percent", figure_5_9},
        {"fig6.5", "dynamic: alltoalls of all, a half, a quarter, an eighth of the processes",
         "slots_per_peer", "overhead_percent,delayed_percent", figure_6_5},
        {"fig7.1", "the components of the overhead (figures 7.1 and 7.2)", "slots_per_peer",
         "overhead_percent", figure_7_1},
        {"fig7.3", "alltoall with LiMIC inside the nodes", "slots_per_peer", "overhead_percent", figure_7_3},
        {"fig7.4", "credits of process 0 while the pattern changes", "alltoall", "mean_credits", figure_7_4},
    };
}

}  // namespace velo::sim
