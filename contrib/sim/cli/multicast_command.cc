#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "cli/commands.h"
#include "cli/run_options.h"
#include "experiment/numbers.h"
#include "machine/multicast.h"

namespace velo::sim {
namespace {

struct MulticastOptions {
    MulticastRun run;
    double loss = 0, doubles = 0, reordered = 0;  // percent
    double probe_us = 2000, ack_delay_us = 500, reorder_us = 50;
    bool stream = false, not_skewed = false, json = false;
};

double tail(std::vector<double> values) {
    if (values.empty()) return kNotMeasured;
    std::sort(values.begin(), values.end());
    return values[values.size() * 99 / 100];
}

void print(const MulticastOptions& o, const MulticastOutcome& outcome, const MulticastModel& model) {
    const MulticastRun& run = o.run;
    const multicast::Counters& all = outcome.all;
    const double each = run.broadcasts > 0 ? outcome.total_us / run.broadcasts : kNotMeasured;
    const bool original = run.mode == MulticastRun::Mode::kOriginal;
    const double modelled = original ? model.original_us : model.window_us;
    if (o.json) {
        nlohmann::json json = {{"fault", outcome.fault},
                               {"median_us", median(outcome.latency_us)},
                               {"p99_us", tail(outcome.latency_us)},
                               {"us_each", each},
                               {"model",
                                {{"hop_us", model.hop_us},
                                 {"original_us", model.original_us},
                                 {"window_us", model.window_us},
                                 {"transfer_us", model.transfer_us}}},
                               {"datagrams", outcome.datagrams},
                               {"acks_at_root", outcome.root.acks_heard},
                               {"resent", all.resent},
                               {"repairs", all.repairs},
                               {"repairs_to_all", all.repairs_to_all},
                               {"nacks", all.nacks},
                               {"probes", all.probes},
                               {"duplicates", all.duplicates},
                               {"full", outcome.root.full},
                               {"overflows", outcome.overflows},
                               {"digest", outcome.digest}};
        std::printf("%s\n", json.dump(2).c_str());
        return;
    }
    if (o.stream)
        std::printf("%.3f us for each of %u broadcasts\n", each, run.broadcasts);
    else
        std::printf("%.3f us, median of %zu broadcasts; 99 of 100 within %.3f us\n",
                    median(outcome.latency_us), outcome.latency_us.size(), tail(outcome.latency_us));
    std::printf(
        "model: %.3f us (a hop %.3f us, point to point %.3f us, multicast %.3f us, to co-roots %.3f us)\n",
        modelled, model.hop_us, model.original_us, model.window_us, model.transfer_us);
    std::printf(
        "%llu datagrams, %llu acknowledgements at the root, %llu NACKs, %llu probes; sent again %llu, "
        "repaired %llu and for all %llu; duplicates %llu, window full %llu times\n",
        static_cast<unsigned long long>(outcome.datagrams),
        static_cast<unsigned long long>(outcome.root.acks_heard), static_cast<unsigned long long>(all.nacks),
        static_cast<unsigned long long>(all.probes), static_cast<unsigned long long>(all.resent),
        static_cast<unsigned long long>(all.repairs), static_cast<unsigned long long>(all.repairs_to_all),
        static_cast<unsigned long long>(all.duplicates), static_cast<unsigned long long>(outcome.root.full));
    if (!outcome.fault.empty()) std::printf("FAILED: %s\n", outcome.fault.c_str());
}

}  // namespace

void add_multicast_command(CLI::App& app, int& status) {
    auto o = std::make_shared<MulticastOptions>();
    CLI::App* command =
        app.add_subcommand("multicast", "broadcasts by multicast, made reliable, beside the slides' models");
    MulticastRun& r = o->run;
    multicast::Config& c = r.config;
    const auto share = CLI::Range(0.0, 90.0);
    command->add_option("-n,--nodes", r.nodes)->check(CLI::Range(2U, 65536U))->capture_default_str();
    command->add_option("--processes-per-node", r.on_node)
        ->check(CLI::Range(1U, 256U))
        ->capture_default_str();
    add_choice<MulticastRun::Mode>(*command, "--mode", r.mode,
                                   {{"original", MulticastRun::Mode::kOriginal},
                                    {"everybody", MulticastRun::Mode::kEverybody},
                                    {"leaders", MulticastRun::Mode::kLeaders}},
                                   "who is a member; original: a tree of messages instead");
    std::map<std::string, multicast::Scheme> schemes;
    for (const auto scheme : {multicast::Scheme::kBasic, multicast::Scheme::kWindow, multicast::Scheme::kTree,
                              multicast::Scheme::kCoroot})
        schemes[std::string(multicast::kSchemeNames[static_cast<int>(scheme)])] = scheme;
    add_choice(*command, "--scheme", c.scheme, schemes, "who acknowledges to whom, and who repairs");
    command->add_option("--bytes", r.bytes)->check(CLI::Range(0U, 65000U))->capture_default_str();
    command->add_option("--broadcasts", r.broadcasts)
        ->check(CLI::Range(1U, 10'000'000U))
        ->capture_default_str();
    command->add_flag("--stream", o->stream, "one after the other, instead of one by one");
    command->add_option("--window", c.window, "datagrams that not all have acknowledged; a power of two")
        ->capture_default_str();
    command->add_option("--share", c.share, "of the window, under way in any case; 0: all of it")
        ->capture_default_str();
    add_choice<multicast::Shares>(
        *command, "--shares", c.shares,
        {{"static", multicast::Shares::kStatic}, {"dynamic", multicast::Shares::kDynamic}},
        "static: never more than the share; dynamic: the window, until one is lost");
    command->add_option("--ack-every", c.ack_every, "datagrams for one acknowledgement")
        ->capture_default_str();
    command->add_flag("--not-skewed", o->not_skewed, "all acknowledge the same datagrams");
    command->add_option("--co-roots", c.co_roots, "who collect acknowledgements for the root")
        ->default_str("as makes the square root of the members sets");
    command->add_flag("--reliable-transfer", c.reliable_transfer, "data to co-roots point to point as well");
    command->add_option("--probe-us", o->probe_us, "without progress until the source asks, or sends again")
        ->check(CLI::Range(1.0, 1e9))
        ->capture_default_str();
    command->add_option("--ack-delay-us", o->ack_delay_us)
        ->check(CLI::Range(0.0, 1e9))
        ->capture_default_str();
    command->add_option("--reorder-us", o->reorder_us, "that a gap may be no more than reordering")
        ->check(CLI::Range(0.001, 1e9))
        ->capture_default_str();
    command->add_option("--loss", o->loss, "percent of what is multicast, at each member")->check(share);
    command->add_option("--doubles", o->doubles, "percent")->check(share);
    command->add_option("--reordered", o->reordered, "percent that come up to 20 us later")->check(share);
    command->add_option("--receive-buffer", r.receive_buffer, "datagrams that wait for a processor")
        ->check(CLI::Range(1U, 1U << 30))
        ->capture_default_str();
    command->add_option("--seed", r.seed)->capture_default_str();
    command->add_flag("--json", o->json);
    command->callback([o, &status] {
        MulticastRun& run = o->run;
        run.pace = o->stream ? MulticastRun::Pace::kStream : MulticastRun::Pace::kOneByOne;
        run.loss = o->loss / 100;
        run.doubles = o->doubles / 100;
        run.reordered = o->reordered / 100;
        run.config.skewed = !o->not_skewed;
        run.config.probe_ns = static_cast<std::uint64_t>(o->probe_us * 1000);
        run.config.ack_delay_ns = static_cast<std::uint64_t>(o->ack_delay_us * 1000);
        run.config.reorder_ns = static_cast<std::uint64_t>(o->reorder_us * 1000);
        run.config.members = run.mode == MulticastRun::Mode::kLeaders ? run.nodes : run.processes();
        if (const std::string objection = multicast::Member::objection(run.config); !objection.empty())
            throw std::runtime_error(objection);
        const MulticastOutcome outcome = run_multicast(run);
        print(*o, outcome, model_of(run));
        status = outcome.fault.empty() ? 0 : 1;
    });
}

}  // namespace velo::sim
