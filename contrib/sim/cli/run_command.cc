#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/run_options.h"
#include "flow/policies.h"
#include "machine/simulation.h"

namespace velo::sim {
namespace {

nlohmann::json counters(const flow::Counters& c) {
    nlohmann::json json;
    for (const flow::CounterInfo& counter : flow::kCounters) json[counter.name] = c.*counter.value;
    return json;
}

nlohmann::json to_json(const RunOptions& o, const Measured& m) {
    const Outcome& outcome = m.outcome;
    nlohmann::json total = counters(outcome.totals.flow);
    total["messages_sent"] = outcome.totals.messages;
    total["messages_delayed"] = outcome.totals.messages_delayed;
    total["data_packets"] = outcome.totals.data_packets;
    total["messages_by_reference"] = outcome.totals.messages_by_reference;
    total["batches"] = outcome.totals.batches;
    total["batched_messages"] = outcome.totals.batched_messages;
    total["outbox_high_water"] = outcome.totals.outbox_high_water;
    total["outbox_full"] = outcome.totals.outbox_full;
    nlohmann::json json = {{"policy", o.run.flow.policy},
                           {"processes", o.run.options.processes},
                           {"nodes", to_string(o.run.machine.dimensions)},
                           {"slots_per_peer", o.run.flow.slots_per_peer},
                           {"credit_slots", o.run.flow.credit_slots},
                           {"iteration_us", m.time_us},
                           {"mailbox_high_water", outcome.totals.slots_high_water},
                           {"events", outcome.totals.events},
                           {"seconds", outcome.seconds},
                           {"digest", outcome.digest},
                           {"fault", outcome.fault},
                           {"deadlock", outcome.deadlock},
                           {"total", total}};
    if (o.per_process)
        for (std::size_t p = 0; p < outcome.flow_of.size(); ++p) {
            json["per_process"].push_back(counters(outcome.flow_of[p]));
            json["per_process"].back()["messages_delayed"] = outcome.delayed_of[p];
        }
    return json;
}

void print_text(const RunOptions& o, const Measured& m) {
    const Totals& t = m.outcome.totals;
    std::printf("%s of %u processes on %s nodes, %s, %u slots per peer\n", o.run.pattern.c_str(),
                o.run.options.processes, to_string(o.run.machine.dimensions).c_str(),
                o.run.flow.policy.c_str(), o.run.flow.slots_per_peer);
    if (m.outcome.failed())
        std::printf("  iteration          not measured\n");
    else
        std::printf("  iteration          %.2f us\n", m.time_us);
    std::printf("  messages           %llu, %llu delayed\n", static_cast<unsigned long long>(t.messages),
                static_cast<unsigned long long>(t.messages_delayed));
    if (t.messages_by_reference + t.outbox_full > 0)
        std::printf("  by reference       %llu, outbox %llu bytes at most, full for %llu\n",
                    static_cast<unsigned long long>(t.messages_by_reference),
                    static_cast<unsigned long long>(t.outbox_high_water),
                    static_cast<unsigned long long>(t.outbox_full));
    if (t.batches > 0)
        std::printf("  in batches         %llu, in %llu of them\n",
                    static_cast<unsigned long long>(t.batched_messages),
                    static_cast<unsigned long long>(t.batches));
    std::printf("  data packets       %llu\n", static_cast<unsigned long long>(t.data_packets));
    std::printf("  credit packets     %llu\n", static_cast<unsigned long long>(t.flow.credit_packets));
    std::printf("  piggybacks         %llu\n", static_cast<unsigned long long>(t.flow.piggybacks));
    std::printf("  requests, steals   %llu, %llu\n", static_cast<unsigned long long>(t.flow.requests),
                static_cast<unsigned long long>(t.flow.steals));
    if (t.flow.refusals > 0)
        std::printf("  refusals           %llu\n", static_cast<unsigned long long>(t.flow.refusals));
    if (t.flow.growths > 0)
        std::printf("  growths            %llu\n", static_cast<unsigned long long>(t.flow.growths));
    if (t.flow.hellos > 0)
        std::printf("  windows opened     %llu, %llu closed\n",
                    static_cast<unsigned long long>(t.flow.hellos),
                    static_cast<unsigned long long>(t.flow.releases));
    std::printf("  fullest mailbox    %llu slots\n", static_cast<unsigned long long>(t.slots_high_water));
    std::printf("  events             %llu in %.2f s\n", static_cast<unsigned long long>(t.events),
                m.outcome.seconds);
    if (!m.outcome.fault.empty()) std::printf("  FAULT: %s\n", m.outcome.fault.c_str());
    if (!m.outcome.deadlock.empty()) std::printf("  DEADLOCK: %s\n", m.outcome.deadlock.c_str());
}

}  // namespace

void apply(RunOptions& o) {
    Trial& run = o.run;
    run.flow.piggyback = !o.no_piggyback;
    run.options.processes_per_node = run.machine.processes_per_node;
    run.machine.dimensions = o.nodes.empty() ? mesh_for(run.options.processes, run.machine.processes_per_node)
                                             : parse_dimensions(o.nodes);
    if (run.machine.dimensions.empty())
        throw std::runtime_error("--nodes " + o.nodes + ": give one to three sizes, such as 4x4x4");
    if (run.warm_up >= run.options.iterations)
        throw std::runtime_error("--warm-up leaves no iteration to measure: raise --iterations above " +
                                 std::to_string(run.warm_up));
    for (const std::string& cost : o.costs) {
        const std::size_t equals = cost.find('=');
        std::size_t end = 0;
        double value = -1;
        try {
            if (equals != std::string::npos) value = std::stod(cost.substr(equals + 1), &end);
        } catch (const std::exception&) {
        }
        if (!(value >= 0 && value <= 1e9) || equals + 1 + end != cost.size())
            throw std::runtime_error("--cost " + cost + ": write NAME=NANOSECONDS, 0 to 1e9, such as hop=90");
        if (!set_cost(run.machine.costs, cost.substr(0, equals), value))
            throw std::runtime_error("--cost " + cost + ": there is no such cost; velo-sim list shows them");
    }
}

void print(const RunOptions& o, const Measured& m) {
    if (o.json)
        std::printf("%s\n", to_json(o, m).dump().c_str());
    else
        print_text(o, m);
}

// The parameters of btl_velo_* that a policy has for itself.
void add_policy_options(CLI::App& run, flow::PolicyConfig& own) {
    run.add_option("--preposted-buffers", own.preposted_buffers, "of each peer: rnr, mvapich_*")
        ->capture_default_str();
    run.add_option("--initial-buffers", own.initial_buffers, "mvapich_dynamic")->capture_default_str();
    run.add_option("--growth-buffers", own.growth_buffers, "mvapich_dynamic; 0 doubles them")
        ->capture_default_str();
    run.add_option("--credit-message-threshold", own.credit_message_threshold, "mvapich_*")
        ->capture_default_str();
    run.add_option("--rnr-timer-ns", own.rnr_timer_ns, "rnr")->capture_default_str();
    run.add_option("--lazy-slots", own.lazy_slots, "lazy: data slots of a mailbox")->capture_default_str();
    run.add_option("--lazy-peers", own.lazy_peers, "lazy: windows in each direction")->capture_default_str();
    run.add_option("--lazy-ahead", own.lazy_ahead, "lazy: windows opened before they are needed")
        ->check(CLI::Range(0U, 16U))
        ->capture_default_str();
    run.add_flag("--lazy-stealing,!--no-lazy-stealing", own.lazy_stealing);
    run.add_flag("--lazy-doorbell", own.lazy_doorbell, "HELLO travels outside of the mailbox");
}

void add_machine_options(CLI::App& command, RunOptions& o) {
    std::vector<std::string> policies;
    for (const std::string_view name : flow::policy_names()) policies.emplace_back(name);
    PatternOptions& p = o.run.options;
    Machine& m = o.run.machine;
    FlowOptions& f = o.run.flow;
    command.add_option("--policy", f.policy)->check(CLI::IsMember(policies))->capture_default_str();
    command.add_option("--slots", f.slots_per_peer, "slots for each peer, data and credit region together")
        ->check(CLI::Range(1U, 65535U))
        ->capture_default_str();
    command.add_option("--credit-slots", f.credit_slots)->check(CLI::Range(1U, 255U))->capture_default_str();
    command.add_option("--intended-max", f.own.intended_max,
                       "largest share of a sender, dynamic: it is not below an even one");
    add_policy_options(command, f.own);
    command.add_flag("--no-piggyback", o.no_piggyback, "credits return in packets of their own only");
    command.add_flag("--delay-credits,!--no-delay-credits", f.delay_credits,
                     "a credit packet waits for the next look at the mailbox, as in the plugin");
    add_choice<ByReference>(
        command, "--by-reference", f.by_reference,
        {{"auto", ByReference::kAuto}, {"never", ByReference::kNever}, {"always", ByReference::kAlways}},
        "messages of several packets go as one, and stay in the outbox until the receiver has fetched them: "
        "auto (where they would take more than half of the credits)");
    command.add_option("--outbox", f.outbox, "bytes of each process for what goes by reference; 0: none")
        ->check(CLI::Range(std::uint64_t{0}, flow::OutboxPlan::kMostBytes))
        ->capture_default_str();
    command
        .add_option(
            "--gets", f.most_gets,
            "that a process has under way at a time for what came by reference; 0: it is read in place, "
            "as inside a node")
        ->capture_default_str();
    command.add_flag("--free-of-charge", f.free_of_charge, "flow control costs no processor time");
    command.add_flag("--finite-mailbox", f.finite_mailbox, "policy none: a full mailbox stops its senders");
    command.add_option("--iterations", p.iterations)->check(CLI::PositiveNumber)->capture_default_str();
    command.add_option("--warm-up", o.run.warm_up, "iterations that are not measured")->capture_default_str();
    command.add_option("--nodes", o.nodes, "mesh, such as 4x4x4 (default: as many as needed)");
    command.add_option("--node-stride", m.node_stride, "a job uses every so manieth node")
        ->check(CLI::PositiveNumber);
    command.add_option("--processes-per-node", m.processes_per_node)
        ->check(CLI::Range(1U, 65535U))
        ->capture_default_str();
    command.add_flag("--torus", m.torus);
    command.add_flag("--progress-before-send", m.progress_before_send,
                     "processes empty their mailboxes before each send");
    command.add_flag("--limic", m.limic, "single copy inside a node, without credits");
    command.add_option("--eager-limit", m.eager_limit)
        ->check(CLI::Range(0U, 1U << 30))
        ->capture_default_str();
    command.add_option("--header-bytes", m.header_bytes, "of the MPI library in each message")
        ->check(CLI::Range(0U, 65535U))
        ->capture_default_str();
    command
        .add_option("--window", m.node_window,
                    "packets of a node in the network before back-pressure; 0: no limit")
        ->capture_default_str();
    command.add_option("--max-train", m.max_train, "packets that are simulated as one; 0: no limit")
        ->capture_default_str();
    command
        .add_option(
            "--seed", m.seed,
            "of the skew between processes at the start and after synchronisations; nothing else is random")
        ->capture_default_str();
    command.add_option("--cost", o.costs, "NAME=NANOSECONDS, may be repeated; velo-sim list shows the names");
    CLI::Option* json = command.add_flag("--json", o.json);
    command.add_flag("--per-process", o.per_process, "with --json: the counters of each process")
        ->needs(json);
}

void add_run_command(CLI::App& app, int& status) {
    auto o = std::make_shared<RunOptions>();
    CLI::App* run = app.add_subcommand("run", "one pattern under one policy");
    PatternOptions& p = o->run.options;
    p.processes = 64;
    run->add_option("pattern", o->run.pattern, "what the processes do; velo-sim list shows the patterns")
        ->check(CLI::IsMember(pattern_names()))
        ->required();
    run->add_option("-n,--np,--processes,--ranks", p.processes)
        ->check(CLI::Range(2U, 1U << 20))
        ->capture_default_str();
    run->add_option("--bytes", p.bytes, "of MPI data in a message")
        ->check(CLI::Range(0U, 1U << 30))
        ->capture_default_str();
    run->add_option("--active", p.active, "alltoall, incast: the first so many take part");
    run->add_option("--groups", p.groups,
                    "alltoall: so many times --active at the same time, each among itself")
        ->check(CLI::Range(1U, 1024U));
    run->add_option("--repetitions", p.repetitions)->check(CLI::PositiveNumber)->capture_default_str();
    run->add_option("--neighbours", p.neighbours, "sparse: peers of a process");
    run->add_option("--phases", p.phases, "phases: sizes of the groups")->delimiter(',');
    add_machine_options(*run, *o);
    run->callback([o, &status] {
        apply(*o);
        if (o->run.pattern == "phases" && o->run.options.phases.empty())
            throw std::runtime_error("phases needs the sizes of its groups: --phases 64,16,32");
        for (const std::uint32_t size : o->run.options.phases)
            if (size < 1 || size > o->run.options.processes)
                throw std::runtime_error("--phases: a group has 1 to --processes members, not " +
                                         std::to_string(size));
        if (o->run.options.active > o->run.options.processes)
            throw std::runtime_error("--active is larger than --processes");
        if (std::uint64_t{o->run.options.groups} * o->run.options.active > o->run.options.processes)
            throw std::runtime_error("--groups times --active is more than --processes");
        if (o->run.pattern == "sparse" && o->run.options.neighbours >= o->run.options.processes)
            throw std::runtime_error("--neighbours must be less than --processes");
        const Measured m = execute(o->run);
        print(*o, m);
        status = m.outcome.failed() ? 1 : 0;
    });
}

}  // namespace velo::sim
