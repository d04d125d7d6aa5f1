#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>

#include "cli/commands.h"
#include "machine/loggops.h"

namespace velo::sim {
namespace {

struct GoalOptions {
    std::string file;
    std::string machine = "loggops";
    LogGops loggops;
    double local_ns_per_byte = 0;
};

std::string contents(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    if (!file) throw std::runtime_error("cannot read " + path);
    return text.str();
}

// The lines of LogGOPSim.
bool print(const LogGopsOutcome& outcome) {
    if (!outcome.complete()) {
        std::printf("%" PRIu64 " messages found no receive, %" PRIu64 " receives no message\n",
                    outcome.unmatched, outcome.waiting);
        if (!outcome.unfinished.empty())
            std::printf("DEADLOCK: %zu hosts wait for ever, the first of them %u\n", outcome.unfinished.size(),
                        outcome.unfinished[0]);
        return false;
    }
    constexpr std::size_t kShown = 16;
    if (outcome.end.size() <= kShown) {
        std::puts("Times: ");
        for (std::size_t host = 0; host < outcome.end.size(); ++host)
            std::printf("Host %zu: %" PRIu64 "\n", host, outcome.end[host]);
        return true;
    }
    const auto last = std::ranges::max_element(outcome.end);
    std::printf("Maximum finishing time at host %td: %" PRIu64 " (%g s)\n", last - outcome.end.begin(), *last,
                static_cast<double>(*last) / 1e9);
    return true;
}

}  // namespace

void add_goal_command(CLI::App& app, int& status) {
    auto o = std::make_shared<GoalOptions>();
    CLI::App* run = app.add_subcommand("goal", "schedules in LogGOPSim's language");
    LogGops& p = o->loggops;
    run->add_option("file", o->file, "text or binary")->required()->check(CLI::ExistingFile);
    run->add_option("--machine", o->machine)->check(CLI::IsMember({"loggops"}))->capture_default_str();
    const auto ns = CLI::Range(std::uint64_t{0}, std::uint64_t{INT32_MAX});
    run->add_option("-L", p.L, "latency, ns")->check(ns)->capture_default_str();
    run->add_option("-o", p.o, "overhead of a message, ns")->check(ns)->capture_default_str();
    run->add_option("-g", p.g, "gap between messages, ns")->check(ns)->capture_default_str();
    run->add_option("-G", p.G, "gap for each byte, ns")->check(ns)->capture_default_str();
    run->add_option("-O", p.O, "overhead for each byte, ns")->check(ns)->capture_default_str();
    run->add_option("-S", p.S, "bytes above which a message waits for its receive")
        ->check(ns)
        ->capture_default_str();
    run->add_option("--local", o->local_ns_per_byte, "what a local operation costs, ns for each byte")
        ->check(CLI::Range(0.0, 1e9))
        ->capture_default_str();
    run->callback([o, &status] {
        const std::string data = contents(o->file);
        std::string error;
        const auto program = goal::read_program(data, &error);
        if (!program) throw std::runtime_error(o->file + ": " + error);
        const LogGopsOutcome outcome = run_loggops(*program, o->loggops, {o->local_ns_per_byte});
        const LogGops& p = o->loggops;
        std::printf("size: %u (%u CPUs, %u NICs); L=%" PRIu64 ", o=%" PRIu64 " g=%" PRIu64 ", G=%" PRIu64
                    ", O=%" PRIu64 ", P=%u, S=%" PRIu64 "; %" PRIu64 " events\n",
                    program->size(), program->cpus(), program->nics(), p.L, p.o, p.g, p.G, p.O,
                    program->size(), p.S, outcome.events);
        status = print(outcome) ? 0 : 1;
    });
}

}  // namespace velo::sim
