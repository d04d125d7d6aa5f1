// Schedules on the modelled machine: every policy carries every collective to its end, in as many packets as
// its messages have.
#include <gtest/gtest.h>

#include <string>

#include "collectives/algorithms/collectives.h"
#include "experiment/sweep.h"
#include "flow/policies.h"
#include "workload/schedules.h"

namespace velo::sim {
namespace {

goal::Program collective(const goal::collectives::Algorithm& algorithm, std::uint32_t size,
                         std::uint64_t bytes) {
    goal::collectives::Request request;
    request.size = size;
    request.bytes = bytes;
    goal::Program program;
    std::string error;
    for (request.rank = 0; request.rank < size; ++request.rank)
        program.schedules.push_back(*goal::compile(algorithm.make(request), &error));
    return program;
}

Trial trial(const std::string& policy, std::uint32_t slots) {
    Trial run = thesis_run("alltoall", 24, policy, slots);
    run.machine.processes_per_node = 4;
    run.machine.dimensions = {3, 2};
    run.flow.own.preposted_buffers = slots;
    run.flow.own.lazy_slots = slots;
    run.flow.own.lazy_peers = 3;
    return run;
}

Outcome run(const goal::Program& program, const Trial& trial, std::uint32_t iterations = 3) {
    return Simulation(trial.machine, trial.flow, Schedules(program, iterations)).run();
}

std::uint64_t sends(const goal::Program& program) {
    std::uint64_t count = 0;
    for (const goal::Schedule& schedule : program.schedules)
        for (const goal::Operation& o : schedule.operations()) count += o.kind == goal::Kind::kSend;
    return count;
}

class SchedulesUnder : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Scheduling, SchedulesUnder, ::testing::ValuesIn([] {
                             std::vector<std::string> names;
                             for (const std::string_view name : flow::policy_names())
                                 names.emplace_back(name);
                             return names;
                         }()),
                         [](const auto& test) { return test.param; });

TEST_P(SchedulesUnder, CarriesEveryCollectiveToItsEnd) {
    for (const goal::collectives::Algorithm& algorithm : goal::collectives::algorithms())
        for (const std::uint64_t bytes : {8, 700, 5000})  // the last by rendezvous
            for (const bool limic : {false, true}) {
                const goal::Program program = collective(algorithm, 22, bytes);
                Trial t = trial(GetParam(), 12);
                t.machine.limic = limic;
                const Outcome outcome = run(program, t);
                EXPECT_FALSE(outcome.failed()) << algorithm.operation << ":" << algorithm.name << ", "
                                               << bytes << " bytes: " << outcome.fault << outcome.deadlock;
                EXPECT_EQ(outcome.totals.messages, 3 * sends(program));
                EXPECT_EQ(outcome.iteration_end.size(), 3U);
            }
}

TEST(Scheduling, AMessageTakesThePacketsOfItsBytesOrOfARendezvous) {
    const std::string text = "num_ranks 2\nrank 0 {\nsend 1000b to 1\n}\nrank 1 {\nrecv 1000b from 0\n}\n";
    std::string error;
    const auto program = goal::read_program(text, &error);
    Trial t = trial("none", 64);
    t.machine.header_bytes = 16;
    EXPECT_EQ(run(*program, t, 1).totals.data_packets, wire::kClassicFraming.packets_for(1016));
    t.machine.eager_limit = 999;
    EXPECT_EQ(run(*program, t, 1).totals.data_packets, wire::kClassicFraming.packets_for(16));
}

// The sender computes only after its message: by rendezvous, after the receiver has begun to receive.
TEST(Scheduling, ASendByRendezvousEndsAfterItsReceiveHasBegun) {
    const std::string text =
        "num_ranks 2\nrank 0 {\na: send 1000b to 1\nb: calc 1000000\nb requires a\n}\n"
        "rank 1 {\na: calc 3000000\nb: recv 1000b from 0\nb requires a\n}\n";
    std::string error;
    const auto program = goal::read_program(text, &error);
    Trial t = trial("none", 64);
    t.machine.costs.skew_ns = 0;
    const double eager = to_us(run(*program, t, 1).end);
    t.machine.eager_limit = 0;
    const double rendezvous = to_us(run(*program, t, 1).end);
    EXPECT_GE(eager, 3000);
    EXPECT_LT(eager, 3500);
    EXPECT_GE(rendezvous, 4000);
    EXPECT_LT(rendezvous, 4500);
}

TEST(Scheduling, TagsChooseTheMessageAndAnythingTakesTheFirst) {
    const std::string text =
        "num_ranks 2\n"
        "rank 0 {\na: send 10b to 1 tag 1\nb: send 20b to 1 tag 2\nb requires a\nc: send 30b to 1 tag 3\n"
        "c requires b\n}\n"
        "rank 1 {\nx: recv 20b from 0 tag 2\ny: recv 10b from -1 tag -1\ny requires x\nz: recv 30b from 0 "
        "tag -1\n"
        "z requires y\n}\n";
    std::string error;
    const auto program = goal::read_program(text, &error);
    ASSERT_TRUE(program) << error;
    const Outcome outcome = run(*program, trial("dynamic", 12), 5);
    EXPECT_FALSE(outcome.failed()) << outcome.fault << outcome.deadlock;
}

TEST(Scheduling, AMessageOfAnotherSizeIsAFault) {
    const std::string text = "num_ranks 2\nrank 0 {\na: send 9b to 1\n}\nrank 1 {\nb: recv 8b from 0\n}\n";
    std::string error;
    const auto program = goal::read_program(text, &error);
    EXPECT_EQ(run(*program, trial("none", 64)).fault,
              "rank 0: a (send 9b to 1) is received by rank 1: b (recv 8b from 0)");
}

TEST(Scheduling, IsTheSameForTheSameSeed) {
    const goal::Program program = collective(*goal::collectives::find("alltoall", "bruck"), 24, 300);
    Trial t = trial("dynamic", 12);
    const Outcome first = run(program, t), second = run(program, t);
    t.machine.seed = 2;
    EXPECT_EQ(first.digest, second.digest);
    EXPECT_NE(first.digest, run(program, t).digest);
}

// Above Schedules::kDense a process knows whom it talks to.
TEST(Scheduling, LargeJobsKnowTheirPeersOnly) {
    const goal::Program program = collective(*goal::collectives::find("barrier", "dissemination"), 2048, 0);
    Trial t = thesis_run("alltoall", 2048, "dynamic", 16);
    const Outcome outcome = run(program, t, 1);
    EXPECT_FALSE(outcome.failed()) << outcome.fault << outcome.deadlock;
    EXPECT_EQ(outcome.totals.messages, 2048U * 11);
    EXPECT_LT(outcome.totals.state_bytes, 2048U * 22 * 200);
}

}  // namespace
}  // namespace velo::sim
