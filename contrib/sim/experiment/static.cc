// Chapter 5 of the thesis: the parameters of the static flow control.
#include <algorithm>
#include <cmath>

#include "experiment/grid.h"

namespace velo::sim {
namespace {

constexpr double kNever = 1e9;  // slots, of a bound that no size reached

std::vector<std::uint32_t> range(std::uint32_t from, std::uint32_t to, std::uint32_t step) {
    std::vector<std::uint32_t> values;
    for (std::uint32_t v = from; v <= to; v += step) values.push_back(v);
    return values;
}

Trial multi_pingpong(std::uint32_t hops, const std::string& policy, std::uint32_t slots, std::uint32_t n) {
    Trial run = thesis_run("multi_pingpong", 32, policy, slots, n);
    run.machine.dimensions = {8, 8};
    run.machine.node_stride = hops == 1 ? 1 : 63;
    run.options.iterations = 120;
    run.warm_up = 20;
    return run;
}

// The smallest size in the grid from which on no message was delayed.
double break_even(const Grid& grid, const std::vector<Cell>& key, const std::vector<std::uint32_t>& slots) {
    double first = kNever;
    for (auto s = slots.rbegin(); s != slots.rend(); ++s) {
        std::vector<Cell> full = key;
        full.emplace_back(static_cast<double>(*s));
        const Measured* m = grid.find(full);
        if (m == nullptr || m->delayed_percent > 0) break;
        first = *s;
    }
    return first;
}

Report figure_5_3(const Context& context) {
    const auto slots = context.full ? range(8, 80, 1) : range(8, 80, 4);
    Grid grid({"hops", "credit_slots", "slots_per_peer"});
    for (const std::uint32_t hops : {1U, 14U}) {
        const std::size_t reference = grid.reference(multi_pingpong(hops, "none", 64, 2));
        for (const std::uint32_t n : range(1, 5, 1))
            for (const std::uint32_t s : slots)
                grid.add({double(hops), double(n), double(s)}, multi_pingpong(hops, "static", s, n),
                         reference);
    }
    grid.execute(context);
    Report report = grid.report();
    auto& m = report.metrics;
    m["half_round_trip_1_hop_us"] = grid.of(grid.points().front().reference).time_us / 2;
    m["half_round_trip_14_hops_us"] = grid.of(grid.points().back().reference).time_us / 2;
    double near_small = 0, far_small = 0, apart_large = 0, stalls[6] = {}, overhead_large[6] = {};
    for (const std::uint32_t n : range(1, 5, 1)) {
        for (const std::uint32_t s : slots) {
            const double near = grid.overhead({1.0, double(n), double(s)});
            const double far = grid.overhead({14.0, double(n), double(s)});
            if (s < 30) near_small += near, far_small += far;
            if (s >= 48) apart_large = std::max(apart_large, std::fabs(near - far));
            if (s >= 76) overhead_large[n] = near;
            stalls[n] += grid.find({1.0, double(n), double(s)})->delayed_percent;
        }
    }
    m["far_minus_near_below_30_slots"] = (far_small - near_small) / static_cast<double>(slots.size());
    m["far_minus_near_from_48_slots"] = apart_large;
    double apart = 0;
    for (const std::uint32_t n : range(2, 5, 1))
        apart = std::max(apart, std::fabs(break_even(grid, {1.0, double(n)}, slots) -
                                          break_even(grid, {14.0, double(n)}, slots)));
    m["break_even_differs_by"] = apart;
    m["stalls_5_credit_slots_over_1"] = stalls[5] / stalls[1];
    m["overhead_1_credit_slot_minus_least_other"] =
        overhead_large[1] - *std::min_element(overhead_large + 2, overhead_large + 6);
    return report;
}

Trial alltoall(std::uint32_t processes, const std::string& policy, std::uint32_t slots, std::uint32_t n,
               std::uint32_t bytes = 2048) {
    Trial run = thesis_run("alltoall", processes, policy, slots, n);
    run.options.bytes = bytes;
    run.options.iterations = 4;
    run.warm_up = 1;
    return run;
}

Report figure_5_5(const Context& context) {
    const std::uint32_t small = context.full ? 256 : 64;
    const std::uint32_t large = context.full ? 1024 : 128;
    const auto slots = context.full ? std::vector<std::uint32_t>{8, 16, 24, 32, 36, 40, 44, 48, 52, 57, 64}
                                    : std::vector<std::uint32_t>{8, 24, 36, 40, 44, 50, 57, 64};
    Grid grid({"processes", "credit_slots", "slots_per_peer"});
    for (const std::uint32_t processes : {small, large}) {
        const std::size_t reference = grid.reference(alltoall(processes, "none", 64, 2));
        for (const std::uint32_t n : context.full ? range(1, 5, 1) : range(2, 3, 1))
            for (const std::uint32_t s : slots)
                grid.add({double(processes), double(n), double(s)}, alltoall(processes, "static", s, n),
                         reference);
    }
    const std::size_t at_256 = grid.reference(alltoall(256, "none", 64, 2));
    const std::size_t at_1024 = grid.reference(alltoall(1024, "none", 64, 2));
    grid.execute(context);
    Report report = grid.report();
    auto& m = report.metrics;
    m["alltoall_256_us"] = grid.of(at_256).time_us;
    m["alltoall_1024_us"] = grid.of(at_1024).time_us;
    double before = 0, after = 0, small_low = 0, large_low = 0;
    int count_before = 0, count_after = 0;
    for (const std::uint32_t s : slots) {
        const double o = grid.overhead({double(large), 2.0, double(s)});
        if (s <= 40) {
            before += o, ++count_before;
            large_low += o, small_low += grid.overhead({double(small), 2.0, double(s)});
        }
        if (s >= 57) after += o, ++count_after;
    }
    m["overhead_up_to_40_slots"] = before / count_before;
    m["overhead_from_57_slots"] = after / count_after;
    m["drop_from_40_to_57_slots"] = before / count_before - after / count_after;
    m["large_minus_small_up_to_40_slots"] = (large_low - small_low) / count_before;
    m["delayed_percent_apart"] = 0;
    for (const std::uint32_t s : slots)
        m["delayed_percent_apart"] =
            std::max(m["delayed_percent_apart"],
                     std::fabs(grid.find({double(large), 2.0, double(s)})->delayed_percent -
                               grid.find({double(small), 2.0, double(s)})->delayed_percent));
    return report;
}

// The smallest buffer from which on no message of a series of alltoalls is delayed. What a receiver has not
// returned differs from one alltoall to the next, so that the series must be long; no credit packet may be on
// its way when the next one begins, so that the pause between them is, too.
double stable_size(std::uint32_t processes, std::uint32_t n, const Context& context) {
    constexpr std::uint32_t kFirst = 38, kLast = 96;
    std::vector<Trial> runs;
    for (std::uint32_t slots = kFirst; slots <= kLast; ++slots) {
        Trial run = alltoall(processes, "static", slots, n);
        run.machine.processes_per_node = 4;
        run.machine.dimensions = mesh_for(processes, 4);
        run.machine.costs.barrier_ns = 50000;
        run.options.iterations = 40;
        runs.push_back(run);
    }
    const std::vector<Measured> measured = execute_all(runs, context.jobs, context.progress);
    double first = kNever;
    for (std::uint32_t slots = kLast; slots >= kFirst && measured[slots - kFirst].delayed_percent == 0;
         --slots)
        first = slots;
    return first;
}

Report table_5_2(const Context& context) {
    Report report;
    report.columns = {"credit_slots", "slots_per_peer", "data_region", "equation_5_5"};
    const std::uint32_t processes = context.full ? 64 : 12;
    for (const std::uint32_t n : range(1, 5, 1)) {
        const double slots = stable_size(processes, n, context);
        const std::uint32_t predicted = 37 * (n + 1) / n + n;
        report.rows.push_back({double(n), slots, slots - n, double(predicted)});
        report.metrics["stable_slots_" + std::to_string(n)] = slots;
    }
    // The size at which a sender first owns a whole message: the first one is not delayed.
    const Measured before = execute(alltoall(processes, "static", 38, 2));
    const Measured at = execute(alltoall(processes, "static", 39, 2));
    report.metrics["delayed_percent_36_data_slots"] = before.delayed_percent;
    report.metrics["delayed_percent_37_data_slots"] = at.delayed_percent;
    return report;
}

Report figure_5_8(const Context& context) {
    const std::uint32_t processes = context.full ? 1024 : 64;
    Grid grid({"piggyback", "slots_per_peer"});
    const std::size_t reference = grid.reference(alltoall(processes, "none", 64, 2, 2044));
    const auto slots = context.full ? range(16, 64, 8) : range(16, 64, 16);
    for (const bool piggyback : {false, true})
        for (const std::uint32_t s : slots) {
            Trial run = alltoall(processes, "static", s, 2, 2044);
            run.flow.piggyback = piggyback;
            grid.add({double(piggyback), double(s)}, run, reference);
        }
    grid.execute(context);
    Report report = grid.report();
    double least = 100, without = 0, with = 0;
    for (const std::uint32_t s : slots) {
        const double off = static_cast<double>(grid.find({0.0, double(s)})->credit_packets);
        const double on = static_cast<double>(grid.find({1.0, double(s)})->credit_packets);
        least = std::min(least, (1 - on / off) * 100);
        without += grid.overhead({0.0, double(s)}) / static_cast<double>(slots.size());
        with += grid.overhead({1.0, double(s)}) / static_cast<double>(slots.size());
    }
    report.metrics["least_credit_packet_reduction_percent"] = least;
    report.metrics["overhead_saved"] = without - with;
    return report;
}

}  // namespace

std::vector<Experiment> static_experiments() {
    return {
        {"fig5.3", "static: multi-ping-pong 2 KB, 16+16 processes, at 1 and 14 hops (figures 5.3 and 5.4)",
         "slots_per_peer", "overhead_percent,delayed_percent", figure_5_3},
        {"fig5.5", "static: alltoall 2 KB (figures 5.5 and 5.6)", "slots_per_peer",
         "overhead_percent,delayed_percent", figure_5_5},
        {"table5.2", "static: smallest buffer without delayed sends", "credit_slots",
         "slots_per_peer,equation_5_5", table_5_2},
        {"fig5.8", "static: alltoall of 2044 bytes with and without piggybacking", "slots_per_peer",
         "overhead_percent,credit_packets_per_message", figure_5_8},
    };
}

}  // namespace velo::sim
