// The rules of the thesis, taken literally, against those that Velo runs.
#include "experiment/grid.h"
#include "experiment/literal_policy.h"

namespace velo::sim {
namespace {

constexpr std::uint32_t kSeeds = 10;

Outcome run_literally(const Trial& trial) {
    const auto workload = make_pattern(trial.pattern, trial.options);
    return Simulation(
               trial.machine, trial.flow, *workload,
               [](const flow::PolicyConfig& config) { return std::make_unique<LiteralPolicy>(config); })
        .run();
}

Report literal(const Context&) {
    Report report;
    report.columns = {"slots_per_peer", "processes", "literal_deadlocks", "literal_overflows",
                      "checked_failures"};
    for (const std::uint32_t slots : {8U, 16U, 30U, 60U}) {
        double deadlocks = 0, overflows = 0, checked = 0;
        for (std::uint32_t seed = 1; seed <= kSeeds; ++seed) {
            Trial trial = thesis_run("alltoall", 6, "dynamic", slots);
            trial.machine.processes_per_node = 1;
            trial.machine.dimensions = {3, 2};
            trial.machine.seed = seed;
            trial.flow.piggyback = true;
            trial.options.bytes = 1900 + seed;  // room for piggybacked credits
            trial.options.iterations = 400;
            const Outcome outcome = run_literally(trial);
            deadlocks += !outcome.deadlock.empty();
            overflows += !outcome.fault.empty();
            if (seed == 1 && outcome.failed())
                report.remarks.push_back(std::to_string(slots) + " slots, literally: " + outcome.fault +
                                         outcome.deadlock);
            checked += execute(trial).outcome.failed();
        }
        report.rows.push_back({double(slots), 6.0, deadlocks, overflows, checked});
        report.metrics["literal_failures_" + std::to_string(slots)] = deadlocks + overflows;
        report.metrics["checked_failures"] += checked;
    }
    return report;
}

}  // namespace

std::vector<Experiment> literal_experiments() {
    return {{"literal", "alltoall of 6 processes under the literal rules of the thesis and under Velo's",
             "slots_per_peer", "literal_deadlocks,literal_overflows,checked_failures", literal, false}};
}

}  // namespace velo::sim
