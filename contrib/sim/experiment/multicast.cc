// What the slides say of broadcasts by multicast, on the modelled network (machine/multicast.h) with the
// production members; S1 to S9.
#include "machine/multicast.h"

#include <cmath>
#include <set>
#include <utility>

#include "collectives/algorithms/collectives.h"
#include "collectives/goal/program.h"
#include "experiment/experiment.h"
#include "experiment/sweep.h"
#include "workload/schedules.h"

namespace velo::sim {
namespace {

using Mode = MulticastRun::Mode;
using Pace = MulticastRun::Pace;
using multicast::Scheme;

class Bench {
 public:
    explicit Bench(const Context& context) : seed_(context.seed) { report.metrics["failed_runs"] = 0; }

    MulticastOutcome run(MulticastRun run) {
        run.seed = seed_;
        MulticastOutcome outcome = run_multicast(run);
        if (!outcome.fault.empty()) {
            report.remarks.push_back("a run FAILED: " + outcome.fault);
            ++report.metrics["failed_runs"];
        }
        return outcome;
    }
    double latency(const MulticastRun& of) { return median(run(of).latency_us); }
    // Time for each of many, one after the other.
    double each(const MulticastRun& of) { return run(of).total_us / of.broadcasts; }

    Report report;

 private:
    std::uint64_t seed_;
};

MulticastRun group(Mode mode, std::uint32_t nodes, std::uint32_t bytes = 8) {
    MulticastRun run;
    run.mode = mode;
    run.nodes = nodes;
    run.bytes = bytes;
    run.broadcasts = 20;
    return run;
}
MulticastRun stream(MulticastRun run, std::uint32_t broadcasts = 400) {
    run.pace = Pace::kStream;
    run.broadcasts = broadcasts;
    return run;
}
MulticastRun with(MulticastRun run, Scheme scheme, std::uint32_t ack_every) {
    run.config.scheme = scheme;
    run.config.ack_every = ack_every;
    return run;
}
double percent_less(double value, double than) {
    return (1 - value / than) * 100;
}

// ---- S1: latency by nodes

Report latency(const Context& context) {
    Bench bench(context);
    Report& report = bench.report;
    report.columns = {
        "nodes", "bytes", "original_us", "original_model_us", "multicast_us", "multicast_model_us"};
    double best = 0, worst_ratio = 0, original_error = 0, multicast_error = 0;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::pair<double, double>> at;
    for (const std::uint32_t bytes : {8U, 1024U, 2048U})
        for (std::uint32_t nodes = 8; nodes <= (context.full ? 4096U : 1024U); nodes *= 2) {
            const double original = bench.latency(group(Mode::kOriginal, nodes, bytes));
            const double multicast = bench.latency(group(Mode::kLeaders, nodes, bytes));
            const MulticastModel model = model_of(group(Mode::kLeaders, nodes, bytes));
            report.rows.push_back(
                {double(nodes), double(bytes), original, model.original_us, multicast, model.window_us});
            at[{nodes, bytes}] = {original, multicast};
            if (nodes == 8) best = std::max(best, percent_less(multicast, original));
            worst_ratio = std::max(worst_ratio, multicast / original);
            original_error = std::max(original_error, std::fabs(original / model.original_us - 1) * 100);
            multicast_error = std::max(multicast_error, std::fabs(multicast / model.window_us - 1) * 100);
        }
    auto& m = report.metrics;
    m["best_gain_percent_8"] = best;
    m["multicast_over_original_worst"] = worst_ratio;
    m["original_1024_over_8"] = at[{1024, 1024}].first / at[{8, 1024}].first;
    m["multicast_1024_over_8"] = at[{1024, 1024}].second / at[{8, 1024}].second;
    m["original_model_error_percent"] = original_error;
    m["multicast_model_error_percent"] = multicast_error;
    return report;
}

// ---- S2: throughput of the schemes

Report throughput(const Context& context) {
    Bench bench(context);
    Report& report = bench.report;
    report.columns = {"nodes", "scheme", "ack_every", "us_each", "acks_at_root"};
    auto& m = report.metrics;
    for (const std::uint32_t nodes : {8U, 64U, context.full ? 4096U : 1024U}) {
        const std::string size = nodes > 64 ? "_many" : "_" + std::to_string(nodes);
        const double original = bench.each(stream(group(Mode::kOriginal, nodes)));
        report.rows.push_back({double(nodes), "original", 0.0, original, 0.0});
        std::map<std::pair<Scheme, std::uint32_t>, double> us;
        for (const Scheme scheme : {Scheme::kBasic, Scheme::kWindow, Scheme::kTree, Scheme::kCoroot})
            for (const std::uint32_t ack_every : {1U, 2U, 5U, 10U, 20U, 32U}) {
                if (scheme == Scheme::kBasic && ack_every > 1) continue;
                const MulticastRun run = with(stream(group(Mode::kLeaders, nodes)), scheme, ack_every);
                const MulticastOutcome outcome = bench.run(run);
                const double each = us[{scheme, ack_every}] = outcome.total_us / run.broadcasts;
                report.rows.push_back({double(nodes), std::string(multicast::kSchemeNames[int(scheme)]),
                                       double(ack_every), each, double(outcome.root.acks_heard)});
            }
        double best_other = HUGE_VAL;
        for (const std::uint32_t ack_every : {1U, 2U, 5U, 20U, 32U})
            best_other = std::min(best_other, us[{Scheme::kCoroot, ack_every}]);
        m["basic_over_original" + size] = us[{Scheme::kBasic, 1}] / original;
        m["window_over_original" + size] = us[{Scheme::kWindow, 1}] / original;
        m["window_10_over_original" + size] = us[{Scheme::kWindow, 10}] / original;
        m["coroot_over_window" + size] = us[{Scheme::kCoroot, 10}] / us[{Scheme::kWindow, 10}];
        m["coroot_over_original" + size] = us[{Scheme::kCoroot, 10}] / original;
        m["tenth_gain_percent" + size] = (original / us[{Scheme::kCoroot, 10}] - 1) * 100;
        m["tenth_over_every" + size] = us[{Scheme::kCoroot, 10}] / us[{Scheme::kCoroot, 1}];
        m["tenth_over_best_other" + size] = us[{Scheme::kCoroot, 10}] / best_other;
    }
    return report;
}

// ---- S3: one process is late

Report skew(const Context& context) {
    Bench bench(context);
    Report& report = bench.report;
    report.columns = {"scheme", "skew_us", "wait_us", "sent_again"};
    const auto run = [&](const std::string& name, Mode mode, Scheme scheme, double skew_us) {
        MulticastRun of = group(mode, 32);
        of.broadcasts = context.full ? 500 : 100;
        of.config.scheme = scheme;
        of.config.ack_every = 1;
        of.config.probe_ns = of.config.full_ns = 500'000;  // shorter than the longest skew
        of.late_process = 16;  // the root's first child: it passes on to a half of all, and collects from it
        of.late_us = skew_us;
        const MulticastOutcome outcome = bench.run(of);
        const double wait = mean(outcome.waits_us);
        const auto again =
            static_cast<double>(outcome.all.resent + outcome.all.repairs + outcome.all.repairs_to_all);
        report.rows.push_back({name, skew_us, wait, again});
        return std::pair{wait, again};
    };
    std::vector<double> original, coroot;
    std::vector<double> tree_again;
    double coroot_again = 0;
    for (const double skew_us : {0.0, 100.0, 200.0, 400.0, 700.0, 1000.0}) {
        original.push_back(run("original", Mode::kOriginal, Scheme::kCoroot, skew_us).first);
        run("window", Mode::kLeaders, Scheme::kWindow, skew_us);
        tree_again.push_back(run("tree", Mode::kLeaders, Scheme::kTree, skew_us).second);
        const auto [wait, again] = run("coroot", Mode::kLeaders, Scheme::kCoroot, skew_us);
        coroot.push_back(wait);
        coroot_again += again;
    }
    auto& m = report.metrics;
    m["original_least_rise_us"] = least(rises(original));
    m["multicast_1000_over_0"] = coroot.back() / coroot.front();
    m["tree_false_retransmissions_0"] = tree_again.front();
    m["tree_false_retransmissions_1000"] = tree_again.back();
    m["coroot_false_retransmissions"] = coroot_again;
    return report;
}

// ---- S4: how many co-roots

Report co_roots(const Context& context) {
    Bench bench(context);
    Report& report = bench.report;
    report.columns = {"co_roots", "us_each", "model_us", "latency_us", "transfer_model_us"};
    const std::uint32_t nodes = context.full ? 1024 : 256;
    std::vector<double> us, modelled;
    std::vector<std::uint32_t> counts;
    for (std::uint32_t sets = 2; sets <= nodes; sets *= 2) {
        MulticastRun run = with(stream(group(Mode::kLeaders, nodes)), Scheme::kCoroot, 1);
        run.config.co_roots = sets - 1;
        run.config.reliable_transfer = true;
        const double each = bench.each(run);
        run.pace = Pace::kOneByOne;
        run.broadcasts = 20;
        const double latency = bench.latency(run);
        // To the co-roots by their tree, and their work on acknowledgements, one for each of their set.
        const MulticastModel model = model_of(run);
        const double work =
            static_cast<double>(nodes) / sets * (run.costs.take_control + run.costs.take_ack) / 1000;
        us.push_back(each);
        modelled.push_back(model.transfer_us + work);
        counts.push_back(run.config.co_roots);
        report.rows.push_back(
            {double(run.config.co_roots), each, modelled.back(), latency, model.transfer_us});
    }
    const auto best = static_cast<std::size_t>(std::ranges::min_element(us) - us.begin());
    const auto best_modelled =
        static_cast<std::size_t>(std::ranges::min_element(modelled) - modelled.begin());
    auto& m = report.metrics;
    m["best"] = counts[best];
    m["best_of_model"] = counts[best_modelled];
    m["doublings_apart"] = std::fabs(static_cast<double>(best) - static_cast<double>(best_modelled));
    m["too_few_over_best"] = us.front() / us[best];
    m["too_many_over_best"] = us.back() / us[best];
    return report;
}

// ---- S5: who joins on a node

Report joining(const Context& context) {
    Bench bench(context);
    Report& report = bench.report;
    report.columns = {"on_node", "everybody_us", "leaders_us"};
    std::vector<double> everybody, leaders;
    for (std::uint32_t on_node = 1; on_node <= (context.full ? 64U : 16U); on_node *= 2) {
        MulticastRun run = group(Mode::kEverybody, 8, 1024);
        run.on_node = on_node;
        everybody.push_back(bench.latency(run));
        run.mode = Mode::kLeaders;
        leaders.push_back(bench.latency(run));
        report.rows.push_back({double(on_node), everybody.back(), leaders.back()});
    }
    auto& m = report.metrics;
    m["everybody_least_rise_us"] = least(rises(everybody));
    m["leaders_rise_from_2_us"] = leaders.back() - leaders[1];
    m["leaders_over_everybody"] = leaders.back() / everybody.back();
    return report;
}

// ---- S6: where the ranks are

Report placement(const Context& context) {
    Bench bench(context);
    Report& report = bench.report;
    report.columns = {"on_node", "bytes", "block_us", "cyclic_us", "unaware_us", "aware_us"};
    std::vector<double> block_over_cyclic, aware_over_unaware, unaware_over_original;
    for (const std::uint32_t bytes : {8U, 1024U})
        for (const std::uint32_t on_node : {2U, 4U, 8U, 16U}) {
            MulticastRun run = group(Mode::kOriginal, context.full ? 128 : 16, bytes);
            run.on_node = on_node;
            const double block = bench.latency(run);
            run.cyclic = true;
            const double cyclic = bench.latency(run);
            run.cyclic = false;
            run.mode = Mode::kEverybody;
            const double unaware = bench.latency(run);
            run.mode = Mode::kLeaders;
            const double aware = bench.latency(run);
            report.rows.push_back({double(on_node), double(bytes), block, cyclic, unaware, aware});
            block_over_cyclic.push_back(block / cyclic);
            aware_over_unaware.push_back(aware / unaware);
            unaware_over_original.push_back(unaware / block);
        }
    auto& m = report.metrics;
    m["block_over_cyclic_worst"] = largest(block_over_cyclic);
    m["aware_over_unaware_worst"] = largest(aware_over_unaware);
    m["unaware_over_original_worst"] = largest(unaware_over_original);
    return report;
}

// ---- S7: a late leader

Report attach(const Context& context) {
    Bench bench(context);
    Report& report = bench.report;
    report.columns = {"late_us", "late_every", "attach", "wait_us", "longest_us", "joins", "leaves"};
    struct Waits {
        double mean, longest, joins;
    };
    const auto run = [&](double late_us, std::uint32_t every, bool dynamic) {
        MulticastRun of = group(Mode::kLeaders, 8);
        of.on_node = 4;
        of.broadcasts = context.full ? 2000 : 400;
        of.interval_us = every > 1 ? 1000 : 3000;
        of.late_process = 4;  // the leader of the second node
        of.late_every = every;
        of.late_us = late_us;
        of.random_lateness = false;
        of.attachment.dynamic = dynamic;
        const MulticastOutcome outcome = bench.run(of);
        // The second half: who joins has done so.
        const std::size_t half = outcome.waits_us.size() / 2;
        const Waits waits{
            mean({outcome.waits_us.begin() + static_cast<std::ptrdiff_t>(half), outcome.waits_us.end()}),
            largest(
                {outcome.longest_us.begin() + static_cast<std::ptrdiff_t>(half), outcome.longest_us.end()}),
            static_cast<double>(outcome.joins)};
        report.rows.push_back({late_us, double(every), dynamic ? "dynamic" : "static", waits.mean,
                               waits.longest, waits.joins, static_cast<double>(outcome.leaves)});
        return waits;
    };
    auto& m = report.metrics;
    for (const double late_us : {0.0, 400.0, 700.0, 1000.0, 2000.0}) {
        const Waits fixed = run(late_us, 1, false), dynamic = run(late_us, 1, true);
        const std::string at = "_" + std::to_string(static_cast<int>(late_us));
        m["static_over_dynamic" + at] = fixed.mean / dynamic.mean;
        m["joins" + at] = dynamic.joins;
    }
    const Waits fixed = run(5000, 10, false), dynamic = run(5000, 10, true);
    m["static_longest_us_every_10th"] = fixed.longest;
    m["dynamic_longest_us_every_10th"] = dynamic.longest;
    return report;
}

// ---- S8: alltoall, joined or not

// The schedules themselves, on the machine of packets: messages inside a node go through its memory.
double schedule_us(const Context& context, const char* operation, const char* algorithm, std::uint32_t nodes,
                   std::uint32_t on_node, std::uint64_t bytes) {
    goal::collectives::Request request;
    request.size = nodes * on_node;
    request.on_node = on_node;
    request.bytes = bytes;
    goal::Program program;
    std::string error;
    for (request.rank = 0; request.rank < request.size; ++request.rank)
        program.schedules.push_back(
            goal::compile(goal::collectives::find(operation, algorithm)->make(request), &error).value());
    Machine machine;
    machine.processes_per_node = on_node;
    machine.dimensions = mesh_for(request.size, on_node);
    machine.limic = true;
    machine.seed = context.seed;
    constexpr std::uint32_t kRuns = 6, kWarmUp = 1;
    const Schedules workload(program, kRuns);
    return measured(Simulation(machine, FlowOptions{}, workload).run(), kWarmUp).time_us;
}

Report alltoall(const Context& context) {
    Bench bench(context);
    Report& report = bench.report;
    report.columns = {"bytes", "separate_us", "joined_us", "joined_packed_us", "linear_us", "phases_us"};
    constexpr std::uint32_t kLocal = 4;  // processes of a node: the leaders send for them
    constexpr std::uint32_t kBlocks = kLocal * kLocal;
    const auto exchange = [&](std::uint32_t messages, std::uint32_t bytes) {
        MulticastRun run = stream(group(Mode::kExchange, context.full ? 64 : 16, bytes), messages);
        return bench.run(run).total_us;
    };
    const MulticastCosts costs;
    double gain = 0, packed_gain = 0;
    auto& m = report.metrics;
    for (std::uint32_t bytes = 64; bytes <= 4096; bytes += 64) {
        const double separate = exchange(kBlocks, bytes), joined = exchange(1, bytes * kBlocks);
        // Into one message and out of it, for all other nodes.
        const double copies = 2 * costs.copy_byte * bytes * kBlocks * (context.full ? 63 : 15) / 1000;
        report.rows.push_back({double(bytes), separate, joined, joined + copies, kNotMeasured, kNotMeasured});
        if (bytes == 64) m["separate_over_joined_64"] = separate / joined;
        if (joined < 0.9 * separate) gain = bytes;
        if (joined + copies < separate) packed_gain = bytes;
    }
    m["break_even_model_bytes"] = (costs.post + costs.take) / costs.wire_byte;
    m["break_even_bytes"] = gain;
    m["break_even_packed_bytes"] = packed_gain;
    const std::uint32_t nodes = context.full ? 64 : 16;
    double last = 0;
    for (std::uint64_t bytes = 8; bytes <= 2048; bytes *= 2) {
        const double linear = schedule_us(context, "alltoall", "linear", nodes, kLocal, bytes),
                     phases = schedule_us(context, "alltoall", "nodes", nodes, kLocal, bytes);
        report.rows.push_back({double(bytes), kNotMeasured, kNotMeasured, kNotMeasured, linear, phases});
        if (bytes == 8) m["phases_over_linear_8"] = phases / linear;
        if (phases < linear) last = static_cast<double>(bytes);
    }
    m["phases_last_bytes"] = last;
    return report;
}

// ---- S9: connections

// Of the first node to others: pairs of a rank there and one that it sends to.
double connections(const char* operation, const char* algorithm, std::uint32_t nodes, std::uint32_t on_node) {
    const goal::collectives::Algorithm* found = goal::collectives::find(operation, algorithm);
    goal::collectives::Request request;
    request.size = nodes * on_node;
    request.on_node = on_node;
    request.bytes = 8;
    std::set<std::pair<std::uint32_t, std::uint32_t>> pairs;
    for (request.rank = 0; request.rank < on_node; ++request.rank)
        for (const goal::Graph graph = found->make(request); const goal::Operation& o : graph.operations())
            if (o.kind == goal::Kind::kSend && o.peer >= on_node) pairs.insert({request.rank, o.peer});
    return static_cast<double>(pairs.size());
}

Report connection_count(const Context& context) {
    Report report;
    report.columns = {"nodes", "on_node", "collective", "without", "with_leaders"};
    double worst = 0;
    const auto row = [&](std::uint32_t n, std::uint32_t m, const char* name, double without, double with,
                         double without_formula, double with_formula) {
        report.rows.push_back({double(n), double(m), name, without, with});
        worst = std::max({worst, std::fabs(without - without_formula), std::fabs(with - with_formula)});
    };
    for (std::uint32_t n = 2; n <= (context.full ? 256U : 64U); n *= 2)
        for (const std::uint32_t m : {1U, 2U, 4U, 8U}) {
            const double log_n = std::log2(n);
            row(n, m, "alltoall", connections("alltoall", "linear", n, m),
                connections("alltoall", "nodes", n, m), double(n - 1) * m * m, n - 1);
            row(n, m, "barrier", connections("barrier", "recursive_doubling", n, m),
                connections("barrier", "nodes", n, m), m * log_n, log_n);
            row(n, m, "allreduce", connections("allreduce", "recursive_doubling", n, m),
                connections("allreduce", "nodes", n, m), m * log_n, log_n);
        }
    report.metrics["farthest_from_formula"] = worst;
    return report;
}

// ---- loss

Report loss(const Context& context) {
    Bench bench(context);
    Report& report = bench.report;
    report.columns = {"scheme", "loss_percent", "median_us", "p99_us", "nacks", "sent_again"};
    auto& m = report.metrics;
    for (const Scheme scheme : {Scheme::kWindow, Scheme::kCoroot}) {
        double without = 0;
        for (const double percent : {0.0, 1.0, 5.0, 30.0}) {
            MulticastRun run = group(Mode::kLeaders, 8, 1024);
            run.config.scheme = scheme;
            run.broadcasts = context.full ? 20'000 : 2000;
            run.interval_us = 100;
            run.loss = percent / 100;
            run.doubles = percent / 1000;
            run.reordered = percent / 100;
            const MulticastOutcome outcome = bench.run(run);
            std::vector<double> sorted = outcome.latency_us;
            std::ranges::sort(sorted);
            const double p99 =
                sorted.size() == run.broadcasts ? sorted[sorted.size() * 99 / 100] : kNotMeasured;
            const double middle = median(sorted);
            report.rows.push_back(
                {std::string(multicast::kSchemeNames[int(scheme)]), percent, middle, p99,
                 double(outcome.all.nacks),
                 double(outcome.all.resent + outcome.all.repairs + outcome.all.repairs_to_all)});
            const std::string at = "_" + std::string(multicast::kSchemeNames[int(scheme)]) + "_" +
                                   std::to_string(static_cast<int>(percent));
            if (percent == 0) without = middle;
            m["median_over_loss_free" + at] = middle / without;
            m["p99_us" + at] = p99;
            m["completed" + at] = static_cast<double>(sorted.size()) / run.broadcasts;
        }
    }
    m["p99_us_coroot_5_over_window"] = m["p99_us_coroot_5"] / m["p99_us_window_5"];
    return report;
}

}  // namespace

std::vector<Experiment> multicast_experiments() {
    return {
        {"S1", "broadcast latency by nodes: point to point against multicast, and the models", "nodes",
         "original_us,multicast_us", latency, false},
        {"S2", "broadcasts one after the other: the slides' schemes", "ack_every", "us_each", throughput,
         false},
        {"S3", "one process is late: what the others wait", "skew_us", "wait_us", skew},
        {"S4", "too few co-roots, and too many", "co_roots", "us_each,model_us", co_roots, false},
        {"S5", "every process joins, or the leaders of the nodes", "on_node", "everybody_us,leaders_us",
         joining, false},
        {"S6", "ranks node by node, or dealt out", "on_node", "block_us,cyclic_us,unaware_us,aware_us",
         placement, false},
        {"S7", "a late leader, with and without dynamic attach", "late_us", "wait_us", attach, false},
        {"S8", "alltoall between leaders: blocks joined or not", "bytes", "separate_us,joined_us", alltoall,
         false},
        {"S9", "connections with and without leaders", "nodes", "without,with_leaders", connection_count,
         false},
        {"loss", "broadcasts of which a part is lost, doubled and overtaken", "loss_percent",
         "median_us,p99_us", loss},
    };
}

}  // namespace velo::sim
