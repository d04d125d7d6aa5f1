#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include "cli/commands.h"
#include "cli/run_options.h"
#include "collectives/goal/check.h"
#include "machine/loggops.h"
#include "source.h"
#include "trace_file.h"
#include "workload/schedules.h"

namespace velo::sim {
namespace {

struct GoalOptions : RunOptions {
    goal::Source source;
    std::string machine_name = "packets";
    std::string trace;
    LogGops loggops;
};

// What the checker knows about a program that did not come to its end.
void explain(const goal::Program& program) {
    for (const goal::Finding& finding : goal::check(program, {.most = 3}))
        std::printf("  %s\n", finding.text.c_str());
}

// The lines of LogGOPSim.
void print_times(const LogGopsOutcome& outcome) {
    constexpr std::size_t kShown = 16;
    if (outcome.end.size() <= kShown) {
        std::puts("Times: ");
        for (std::size_t host = 0; host < outcome.end.size(); ++host)
            std::printf("Host %zu: %" PRIu64 "\n", host, outcome.end[host]);
        return;
    }
    const auto last = std::ranges::max_element(outcome.end);
    std::printf("Maximum finishing time at host %td: %" PRIu64 " (%g s)\n", last - outcome.end.begin(), *last,
                static_cast<double>(*last) / 1e9);
}

// What of the run is drawn: a thread for each processor of a host.
void draw(goal::TraceFile& trace, const goal::Program& program, const LogGopsWork& w) {
    const goal::Schedule& schedule = program.schedules[w.owner];
    const goal::Operation& o = schedule.operation(w.operation);
    const goal::TraceFile::Where where{w.host, w.cpu};
    const std::string id = std::to_string(w.owner) + "." + std::to_string(w.operation);
    trace.slice(where, w.begin, w.end,
                w.is_arrival ? "arrives from " + std::to_string(w.owner) : goal::describe(o, &schedule));
    if (!o.communicates()) return;
    if (w.is_arrival)
        trace.arrives(where, w.begin, id);
    else
        trace.leaves(where, w.begin, id);
}

bool run_on_loggops(const GoalOptions& o, const goal::Program& program) {
    const LogGops& p = o.loggops;
    std::optional<goal::TraceFile> trace;
    if (!o.trace.empty()) trace.emplace(o.trace);
    LogGopsObserver observer;
    if (trace) observer = [&](const LogGopsWork& work) { draw(*trace, program, work); };
    const LogGopsOutcome outcome = run_loggops(program, p, observer);
    if (trace) trace->close();
    std::printf("size: %u (%u CPUs, %u NICs); L=%" PRIu64 ", o=%" PRIu64 " g=%" PRIu64 ", G=%" PRIu64
                ", O=%" PRIu64 ", P=%u, S=%" PRIu64 "; %" PRIu64 " events\n",
                program.size(), program.cpus(), program.nics(), p.L, p.o, p.g, p.G, p.O, program.size(), p.S,
                outcome.events);
    if (outcome.unmatched == 0 && outcome.waiting == 0) print_times(outcome);
    if (!outcome.complete())
        std::printf("%" PRIu64 " messages found no receive, %" PRIu64
                    " receives no message, %zu hosts did not come to their end\n",
                    outcome.unmatched, outcome.waiting, outcome.unfinished.size());
    return outcome.complete();
}

bool run_on_packets(GoalOptions& o, const goal::Program& program) {
    o.run.pattern = o.source.what;
    o.run.options.processes = program.size();
    if (o.nodes.empty() && program.size() == 1) o.nodes = "1";
    apply(o);
    const Schedules workload(program, o.run.options.iterations);
    const Measured m = measured(Simulation(o.run.machine, o.run.flow, workload).run(), o.run.warm_up);
    print(o, m);
    return !m.outcome.failed();
}

void add_loggops_options(CLI::App& command, GoalOptions& o) {
    LogGops& p = o.loggops;
    const auto number = CLI::Range(std::uint64_t{0}, std::uint64_t{INT32_MAX});
    command.add_option("-L", p.L, "latency, ns")->check(number)->capture_default_str();
    command.add_option("-o", p.o, "overhead of a message, ns")->check(number)->capture_default_str();
    command.add_option("-g", p.g, "gap between messages, ns")->check(number)->capture_default_str();
    command.add_option("-G", p.G, "gap for each byte, ns")->check(number)->capture_default_str();
    command.add_option("-O", p.O, "overhead for each byte, ns")->check(number)->capture_default_str();
    command.add_option("-S", p.S, "bytes above which a message waits for its receive")
        ->check(number)
        ->capture_default_str();
    command.add_option("--skew", p.skew, "a process begins so many ns late at most, at random");
    CLI::Option* period = command.add_option("--noise-period", p.noise_period,
                                             "every so many ns a process is interrupted, ...");
    command.add_option("--noise", p.noise, "... for so many ns, from a moment at random on")->needs(period);
    command.add_option("--local", p.local_ns_per_byte, "what local operations cost, ns for each byte")
        ->check(CLI::Range(0.0, 1e9));
    command.add_option("--trace", o.trace, "writes the run for ui.perfetto.dev");
}

// What only one of the machines knows is in a group of its name.
constexpr const char* kLoggops = "With --machine loggops";
constexpr const char* kPackets = "With --machine packets";
void group_since(CLI::App& command, const char* group) {
    std::vector<CLI::Option*> options = command.get_options();
    for (auto option = options.rbegin(); option != options.rend(); ++option) {
        const std::string name = (*option)->get_name();
        if ((*option)->get_group() != "Options" || name == "--machine") return;
        (*option)->group(group);
    }
}

void refuse_options_of(const CLI::App& command, const std::string& group) {
    for (const CLI::Option* option : command.get_options())
        if (option->count() > 0 && option->get_group() == group)
            throw std::runtime_error(option->get_name() + " has no meaning for this machine: \"" + group +
                                     "\" only");
}

}  // namespace

void add_goal_command(CLI::App& app, int& status) {
    auto o = std::make_shared<GoalOptions>();
    CLI::App* run =
        app.add_subcommand("goal", "schedules: of a file in LogGOPSim's language, or collectives");
    add_source_options(*run, o->source);
    run->add_option("--machine", o->machine_name,
                    "packets: this simulator's, with flow control; loggops: LogGOPSim's, to the nanosecond")
        ->check(CLI::IsMember({"packets", "loggops"}))
        ->capture_default_str();
    add_loggops_options(*run, *o);
    group_since(*run, kLoggops);
    add_machine_options(*run, *o);
    group_since(*run, kPackets);
    run->get_option("--seed")->group("Options");
    run->callback([o, run, &status] {
        const bool on_loggops = o->machine_name == "loggops";
        refuse_options_of(*run, on_loggops ? kPackets : kLoggops);
        const goal::Loaded loaded = load(o->source);
        const goal::Program& program = loaded.program;
        o->loggops.seed = o->run.machine.seed;
        const bool complete = on_loggops ? run_on_loggops(*o, program) : run_on_packets(*o, program);
        if (!complete) explain(program);
        status = complete ? 0 : 1;
    });
}

}  // namespace velo::sim
