// Chapter 5 of the thesis: the parameters of the static flow control.
#include "experiment/grid.h"
#include "experiment/numbers.h"

namespace velo::sim {
namespace {

constexpr std::uint32_t kMessagePackets = 37;
// Table 5.2: the slots from which on the overhead is stable, by credit slots.
constexpr std::uint32_t kStable[] = {0, 0, 57, 52, 50, 49};

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
    const auto small = between(slots, 0, 29), large = between(slots, 30);
    std::vector<double> low_apart, high_apart, delayed_apart, break_even_apart, delayed, overhead;
    for (const std::uint32_t n : range(1, 5, 1)) {
        const std::vector<Cell> near = {1.0, double(n)}, far = {14.0, double(n)};
        low_apart.push_back(mean(differences(grid.overheads(far, small), grid.overheads(near, small))));
        high_apart.push_back(
            largest(magnitudes(differences(grid.overheads(far, large), grid.overheads(near, large)))));
        const auto delayed_near = grid.delayed_percents(near, slots);
        const auto delayed_far = grid.delayed_percents(far, slots);
        delayed_apart.push_back(mean(differences(delayed_far, delayed_near)));
        if (n >= 2)
            break_even_apart.push_back(settles_at(slots, delayed_far) - settles_at(slots, delayed_near));
        delayed.push_back(mean({mean(delayed_near), mean(delayed_far)}));
        overhead.push_back(mean({mean(grid.overheads(near, slots)), mean(grid.overheads(far, slots))}));
    }
    m["far_minus_near_below_30_slots"] = mean(low_apart);
    m["far_and_near_apart_from_30_slots"] = largest(high_apart);
    m["delayed_far_minus_near"] = mean(delayed_apart);
    m["break_even_apart"] = largest(magnitudes(break_even_apart));
    m["delayed_rise_with_credit_slots"] = largest(rises(delayed));
    m["overhead_1_credit_slot_minus_least_other"] =
        overhead[0] - least({overhead.begin() + 1, overhead.end()});
    const auto enough = between(slots, 57);
    m["overhead_from_57_slots"] =
        largest({largest(grid.overheads({1.0, 2.0}, enough)), largest(grid.overheads({14.0, 2.0}, enough))});
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
    const std::uint32_t small = context.full ? 256 : 32;
    const std::uint32_t large = context.full ? 1024 : 96;
    const auto slots = context.full ? std::vector<std::uint32_t>{10, 20, 30, 36, 40, 44, 50, 57, 60, 64}
                                    : std::vector<std::uint32_t>{10, 20, 30, 40, 50, 57, 60, 64};
    const auto credit_slots = range(1, context.full ? 5 : 3, 1);
    Grid grid({"processes", "credit_slots", "slots_per_peer"});
    for (const std::uint32_t processes : {small, large}) {
        const std::size_t reference = grid.reference(alltoall(processes, "none", 64, 2));
        const auto add = [&](std::uint32_t n, std::uint32_t s) {
            if (!grid.has({double(processes), double(n), double(s)}))
                grid.add({double(processes), double(n), double(s)}, alltoall(processes, "static", s, n),
                         reference);
        };
        for (const std::uint32_t n : credit_slots)
            for (const std::uint32_t s : slots) add(n, s);
        if (processes == large)
            for (const std::uint32_t n : range(2, 5, 1)) add(n, kStable[n]);
    }
    const std::size_t at_256 = grid.reference(alltoall(256, "none", 64, 2));
    const std::size_t at_1024 = context.full ? grid.reference(alltoall(1024, "none", 64, 2)) : at_256;
    grid.execute(context);
    Report report = grid.report();
    auto& m = report.metrics;
    m["alltoall_256_us"] = grid.of(at_256).time_us;
    if (context.full) m["alltoall_1024_us"] = grid.of(at_1024).time_us;
    const std::vector<Cell> few = {double(small), 2.0}, many = {double(large), 2.0};
    const auto falls = rises(grid.overheads(many, {60, 50, 40, 30, 20, 10}));
    m["fall_40_to_50_minus_largest_other"] = falls[1] - largest({falls[0], falls[2], falls[3], falls[4]});
    m["overhead_from_57_slots"] = largest(grid.overheads(many, between(slots, 57)));
    const auto low = between(slots, 0, 40);
    m["large_minus_small_up_to_40_slots"] =
        mean(differences(grid.overheads(many, low), grid.overheads(few, low)));
    m["large_and_small_apart_at_50_slots"] =
        largest(magnitudes(differences(grid.overheads(many, {50}), grid.overheads(few, {50}))));
    m["delayed_percent_apart"] = largest(
        magnitudes(differences(grid.delayed_percents(many, slots), grid.delayed_percents(few, slots))));
    std::vector<double> delayed_at_table_5_2, overhead;
    for (const std::uint32_t n : range(2, 5, 1))
        delayed_at_table_5_2.push_back(grid.delayed_percent({double(large), double(n), double(kStable[n])}));
    m["delayed_percent_at_table_5_2"] = largest(delayed_at_table_5_2);
    for (const std::uint32_t n : credit_slots)
        overhead.push_back(mean(grid.overheads({double(large), double(n)}, slots)));
    m["overhead_2_credit_slots_minus_1"] = overhead[1] - overhead[0];
    m["overhead_2_credit_slots_minus_least_other"] =
        overhead[1] - least({overhead[0], least({overhead.begin() + 2, overhead.end()})});
    return report;
}

// A series of alltoalls for table 5.2. What a receiver has not returned differs from one alltoall to the
// next, so that the series must be long; no credit packet may be on its way when the next one begins, so that
// the pause between them is, too.
Trial paused_alltoalls(std::uint32_t processes, std::uint32_t slots, std::uint32_t n) {
    Trial run = alltoall(processes, "static", slots, n);
    run.machine.processes_per_node = 4;
    run.machine.dimensions = mesh_for(processes, 4);
    run.machine.costs.barrier_ns = 50000;
    run.options.iterations = 40;
    return run;
}

// The smallest of the sizes from which on no message is delayed.
template <class Make>
double stable_size(const std::vector<std::uint32_t>& sizes, const Context& context, const Make& make) {
    std::vector<Trial> runs;
    for (const std::uint32_t slots : sizes) {
        runs.push_back(make(slots));
        runs.back().machine.seed = context.seed;
    }
    std::vector<double> delayed;
    for (const Measured& measured : execute_all(runs, context.jobs, context.progress))
        delayed.push_back(measured.delayed_percent);
    return settles_at(sizes, delayed);
}

// How much less the overhead is where the data region has the 37 slots of a message, than with one slot less;
// the least of 1 to 5 credit slots.
double fall_at_a_message(std::uint32_t processes, const Context& context) {
    Grid grid({"credit_slots", "data_slots"});
    const std::size_t reference = grid.reference(alltoall(processes, "none", 64, 2));
    for (const std::uint32_t n : range(1, 5, 1))
        for (const std::uint32_t data : {kMessagePackets - 1, kMessagePackets})
            grid.add({double(n), double(data)}, alltoall(processes, "static", data + n, n), reference);
    grid.execute(context);
    std::vector<double> falls;
    for (const std::uint32_t n : range(1, 5, 1))
        falls.push_back(grid.overhead({double(n), double(kMessagePackets - 1)}) -
                        grid.overhead({double(n), double(kMessagePackets)}));
    return least(falls);
}

Report table_5_2(const Context& context) {
    Report report;
    report.columns = {"credit_slots", "slots_per_peer", "pingpong_slots", "data_region", "equation_5_5"};
    const std::uint32_t processes = context.full ? 64 : 12;
    std::vector<double> apart;
    for (const std::uint32_t n : range(1, 5, 1)) {
        const double slots = stable_size(range(38, n == 1 ? 96 : 64, 1), context,
                                         [&](std::uint32_t s) { return paused_alltoalls(processes, s, n); });
        // The search is about the paper's sizes: a smaller one comes out as the first.
        const double pingpong =
            n == 1 ? kNotMeasured : stable_size(range(kStable[n] - 4, 64, 1), context, [&](std::uint32_t s) {
                return multi_pingpong(1, "static", s, n);
            });
        if (n > 1) apart.push_back(pingpong - slots);
        const std::uint32_t predicted = kMessagePackets * (n + 1) / n + n;
        report.rows.push_back({double(n), slots, pingpong, slots - n, double(predicted)});
        report.metrics["stable_slots_" + std::to_string(n)] = slots;
    }
    report.metrics["pingpong_apart"] = largest(magnitudes(apart));
    report.metrics["least_fall_at_37_data_slots"] = fall_at_a_message(processes, context);
    report.metrics["delayed_percent_36_data_slots"] =
        execute(alltoall(processes, "static", kMessagePackets + 1, 2)).delayed_percent;
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
    std::vector<double> saved;
    for (const std::uint32_t s : slots) {
        const double off = static_cast<double>(grid.find({0.0, double(s)})->credit_packets);
        const double on = static_cast<double>(grid.find({1.0, double(s)})->credit_packets);
        saved.push_back(off > 0 ? (1 - on / off) * 100 : kNotMeasured);
    }
    report.metrics["least_credit_packet_reduction_percent"] = least(saved);
    report.metrics["overhead_saved"] =
        mean(grid.overheads({0.0}, slots)) - mean(grid.overheads({1.0}, slots));
    return report;
}

}  // namespace

std::vector<Experiment> static_experiments() {
    return {
        {"fig5.3", "static: multi-ping-pong 2 KB, 16+16 processes, at 1 and 14 hops (figures 5.3 and 5.4)",
         "slots_per_peer", "overhead_percent,delayed_percent", figure_5_3, false},
        {"fig5.5", "static: alltoall 2 KB (figures 5.5 and 5.6)", "slots_per_peer",
         "overhead_percent,delayed_percent", figure_5_5},
        {"table5.2", "static: smallest buffer without delayed sends", "credit_slots",
         "slots_per_peer,pingpong_slots,equation_5_5", table_5_2},
        {"fig5.8", "static: alltoall of 2044 bytes with and without piggybacking", "slots_per_peer",
         "overhead_percent,credit_packets_per_message", figure_5_8},
    };
}

}  // namespace velo::sim
