// The simulator as a whole: the same seed gives the same run, every policy carries every pattern to its end,
// and what is fixed by the rules comes out exactly.
#include "machine/simulation.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <utility>

#include "experiment/sweep.h"
#include "flow/policies.h"

namespace velo::sim {
namespace {

Trial small_run(const std::string& pattern, const std::string& policy, std::uint32_t slots = 16) {
    Trial run = thesis_run(pattern, 24, policy, slots);
    run.machine.processes_per_node = 4;
    run.machine.dimensions = {3, 2};
    run.options.processes_per_node = 4;
    run.options.bytes = 300;
    run.options.iterations = 6;
    run.options.repetitions = 3;
    run.options.phases = {24, 6, 12};
    run.flow.piggyback = true;
    // Small, so that every limit is met.
    run.flow.own.preposted_buffers = slots;
    run.flow.own.initial_buffers = 2;
    run.flow.own.growth_buffers = 1;
    run.flow.own.lazy_slots = slots;
    run.flow.own.lazy_peers = 3;
    return run;
}

TEST(Simulation, IsTheSameForTheSameSeedAndDiffersForAnother) {
    Trial run = small_run("alltoall", "dynamic");
    const Outcome first = execute(run).outcome;
    const Outcome second = execute(run).outcome;
    run.machine.seed = 2;
    const Outcome other = execute(run).outcome;

    EXPECT_EQ(first.digest, second.digest);
    EXPECT_EQ(first.end, second.end);
    EXPECT_NE(first.digest, other.digest);
}

TEST(Simulation, DoesNotDependOnTheNumberOfThreads) {
    std::vector<Trial> runs;
    for (const char* policy : {"none", "static", "dynamic", "rnr", "mvapich_dynamic", "lazy"})
        runs.push_back(small_run("alltoall", policy));
    const auto alone = execute_all(runs, 1);
    const auto together = execute_all(runs, 3);
    for (std::size_t i = 0; i < runs.size(); ++i)
        EXPECT_EQ(alone[i].outcome.digest, together[i].outcome.digest);
}

class EveryPolicy : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryPolicy, CarriesEveryPatternToItsEnd) {
    for (const std::string& pattern : pattern_names())
        for (const bool limic : {false, true})
            for (const std::uint32_t slots : {6U, 16U, 60U}) {
                Trial run = small_run(pattern, GetParam(), slots);
                run.machine.limic = limic;
                const Outcome outcome = execute(run).outcome;
                EXPECT_EQ(outcome.fault, "") << pattern << " " << slots;
                EXPECT_EQ(outcome.deadlock, "") << pattern << " " << slots;
            }
}

TEST_P(EveryPolicy, CarriesEveryPatternByReferenceWhateverTheOutboxHolds) {
    for (const std::string& pattern : pattern_names())
        for (const auto& [choice, gets] :
             {std::pair{ByReference::kAuto, 0U}, {ByReference::kAuto, 1U}, {ByReference::kAlways, 0U}})
            for (const std::uint64_t outbox : {0, 2304, 262144}) {
                Trial run = small_run(pattern, GetParam(), 6);
                run.flow.by_reference = choice;
                run.flow.outbox = outbox;
                run.flow.most_gets = gets;
                const Outcome outcome = execute(run).outcome;
                EXPECT_EQ(outcome.fault, "") << pattern << " " << outbox;
                EXPECT_EQ(outcome.deadlock, "") << pattern << " " << outbox;
                EXPECT_LE(outcome.totals.outbox_high_water, outbox);
                if (outbox == 0) {
                    EXPECT_EQ(outcome.totals.messages_by_reference + outcome.totals.batches, 0U);
                }
            }
}

TEST_P(EveryPolicy, SendsTheSameDataWhateverTheLengthOfTrains) {
    for (const std::string pattern : {"alltoall", "exchange", "scatterv"}) {
        Trial run = small_run(pattern, GetParam());
        const Totals whole = execute(run).outcome.totals;
        run.machine.max_train = 1;
        const Totals single = execute(run).outcome.totals;
        EXPECT_EQ(whole.data_packets, single.data_packets) << pattern;
        EXPECT_EQ(whole.messages, single.messages) << pattern;
    }
}

std::vector<std::string> all_policies() {
    std::vector<std::string> names;
    for (const std::string_view name : flow::policy_names()) names.emplace_back(name);
    return names;
}
INSTANTIATE_TEST_SUITE_P(Table, EveryPolicy, ::testing::ValuesIn(all_policies()),
                         [](const auto& test) { return test.param; });

TEST(Simulation, CountsThePacketsOfTheThesis) {
    Trial run = thesis_run("alltoall", 64);
    const Measured m = execute(run);
    // 2 KB and a header of 16 bytes are 37 packets.
    EXPECT_EQ(m.outcome.totals.data_packets, 64U * 63 * 37);
    EXPECT_EQ(m.outcome.totals.messages, 64U * 63);
}

TEST(Simulation, ReturnsStaticCreditsAtTheThreshold) {
    // Quota 55, threshold 19: 4 messages of 37 packets are 148 packets, 7 thresholds.
    Trial run = thesis_run("multi_pingpong", 2, "static", 57);
    run.machine.processes_per_node = 1;
    run.machine.dimensions = {2};
    run.options.iterations = 4;
    const Totals totals = execute(run).outcome.totals;
    EXPECT_EQ(totals.flow.credit_packets, 2U * 7);
    EXPECT_EQ(totals.flow.credits_in_packets, 2U * 7 * 19);
    EXPECT_EQ(totals.messages_delayed, 0U);
}

TEST(Simulation, DelaysAMessageThatHasMorePacketsThanCredits) {
    Trial run = thesis_run("multi_pingpong", 2, "static", 20);
    run.machine.processes_per_node = 1;
    run.machine.dimensions = {2};
    run.options.iterations = 5;
    const Measured m = execute(run);
    EXPECT_EQ(m.outcome.totals.messages_delayed, 10U);
    EXPECT_LE(m.outcome.totals.slots_high_water, 20U);
}

TEST(Simulation, KeepsTheMailboxOfAnIncastBounded) {
    for (const char* policy : {"static", "dynamic"}) {
        Trial run = thesis_run("incast", 64, policy, 8);
        run.options.iterations = 5;
        const Outcome outcome = execute(run).outcome;
        EXPECT_FALSE(outcome.failed()) << outcome.fault << outcome.deadlock;
        EXPECT_LE(outcome.totals.slots_high_water, 63U * 8);
    }
    Trial run = thesis_run("incast", 64, "none", 8);
    run.options.iterations = 5;
    run.machine.costs.receive_packet_ns = 2000;  // slower than the network
    EXPECT_GT(execute(run).outcome.totals.slots_high_water, 63U * 8);
    run.flow.finite_mailbox = true;
    const Outcome outcome = execute(run).outcome;
    EXPECT_FALSE(outcome.failed()) << outcome.deadlock;
    EXPECT_LE(outcome.totals.slots_high_water, 63U * 8);
}

Trial pair_run(const std::string& policy, std::uint32_t buffers) {
    Trial run = thesis_run("stream", 2, policy, 100);
    run.machine.processes_per_node = 1;
    run.machine.dimensions = {2};
    run.options.bytes = 4;
    run.options.repetitions = 60;
    run.options.iterations = 10;
    run.flow.piggyback = true;
    run.flow.own.preposted_buffers = run.flow.own.initial_buffers = buffers;
    return run;
}

TEST(Simulation, SendsAMessageThatHasFewerCreditsThanPacketsAsOnePacketByReference) {
    Trial run = thesis_run("multi_pingpong", 2, "static", 8);
    run.machine.processes_per_node = 1;
    run.machine.dimensions = {2};
    run.options.iterations = 5;
    run.flow.by_reference = ByReference::kAuto;
    const Totals totals = execute(run).outcome.totals;
    EXPECT_EQ(totals.messages_by_reference, 10U);
    EXPECT_EQ(totals.data_packets, 10U);
    EXPECT_EQ(totals.messages_delayed, 0U);
    EXPECT_EQ(totals.outbox_high_water, 5 * 2304U) << "few are not looked at";
    EXPECT_EQ(totals.outbox_full, 0U);

    // 76 credits are just not twice the 38 packets, 77 are.
    run.options.bytes = 38 * 56 - run.machine.header_bytes;
    run.machine.eager_limit = run.options.bytes;
    run.options.iterations = 1;
    run.flow.slots_per_peer = 77;
    EXPECT_EQ(execute(run).outcome.totals.messages_by_reference, 2U);
    run.flow.slots_per_peer = 78;
    EXPECT_EQ(execute(run).outcome.totals.messages_by_reference, 0U);
    run.flow.by_reference = ByReference::kAlways;
    EXPECT_EQ(execute(run).outcome.totals.messages_by_reference, 2U);
}

TEST(Simulation, LeavesHalfOfAnOutboxToOthersAndGoesOnInPackets) {
    Trial run = pair_run("dynamic", 4);
    run.options.bytes = 2048;
    run.flow.slots_per_peer = 60;
    run.flow.by_reference = ByReference::kAuto;
    const Outcome outcome = execute(run).outcome;
    EXPECT_FALSE(outcome.failed()) << outcome.fault << outcome.deadlock;
    EXPECT_GT(outcome.totals.outbox_full, 0U);
    EXPECT_GT(outcome.totals.messages_by_reference, 0U);
    EXPECT_LT(outcome.totals.messages_by_reference, outcome.totals.messages);
    EXPECT_LE(outcome.totals.outbox_high_water, 262144U / 2 + 33024);
}

// Windows of 60 messages of one packet, with credits for six, on one node.
TEST(Simulation, SendsWhatCreditsDoNotCoverInBatchesWhereItIsReadInPlace) {
    Trial run = pair_run("static", 4);
    run.flow.slots_per_peer = 8;
    run.flow.by_reference = ByReference::kAuto;
    run.flow.most_gets = 0;
    const Outcome found = execute(run).outcome;
    EXPECT_FALSE(found.failed()) << found.fault << found.deadlock;
    EXPECT_GT(found.totals.batches, 0U);
    EXPECT_GT(found.totals.batched_messages, found.totals.messages / 2);
    EXPECT_LT(found.totals.data_packets, found.totals.messages / 2);
    EXPECT_EQ(found.totals.messages_delayed, 0U) << "the last credit is a batch's";

    run.flow.most_gets = 1;
    EXPECT_EQ(execute(run).outcome.totals.batches, 0U);
    run.flow.most_gets = 0;
    run.flow.by_reference = ByReference::kNever;
    EXPECT_EQ(execute(run).outcome.totals.batches, 0U);
}

TEST(Simulation, SendsNoBatchWhereEachMessageIsWaitedFor) {
    Trial run = thesis_run("multi_pingpong", 2, "static", 4);
    run.flow.by_reference = ByReference::kAuto;
    run.flow.most_gets = 0;
    EXPECT_EQ(execute(run).outcome.totals.batches, 0U);
}

TEST(Simulation, SendsInPartsWhatIsLargerThanAChunk) {
    Trial run = thesis_run("multi_pingpong", 2, "static", 8);
    run.machine.processes_per_node = 1;
    run.machine.dimensions = {2};
    run.options.bytes = run.machine.eager_limit = 60000;
    run.flow.by_reference = ByReference::kAuto;
    const Totals totals = execute(run).outcome.totals;
    EXPECT_EQ(totals.messages_by_reference, 2U);
    EXPECT_EQ(totals.data_packets, 4U) << "60016 bytes are two chunks of 32960";
}

// A large message and, after it, perhaps a small one: the receiver matches the first.
class LargeThenSmall final : public Workload {
 public:
    explicit LargeThenSmall(bool small) : small_(small) {}
    std::string name() const override { return "large then small"; }
    std::uint32_t processes() const override { return 2; }
    std::uint32_t iterations() const override { return 1; }
    void steps(std::uint32_t p, std::uint32_t, std::vector<Step>& out) const override {
        if (p == 1) return out.push_back({StepKind::kReceive, 0, 2048});
        out.push_back({StepKind::kSend, 1, 2048});
        if (small_) out.push_back({StepKind::kSend, 1, 4});
    }

 private:
    bool small_;
};

TEST(Simulation, MatchesNoMessageBeforeAnEarlierOneWhoseDataIsUnderWay) {
    Machine machine;
    machine.dimensions = {2};
    machine.processes_per_node = 1;
    FlowOptions flow;
    flow.policy = "static";
    flow.slots_per_peer = 8;
    const auto end = [&](bool small) {
        const LargeThenSmall workload(small);
        const Outcome outcome = Simulation(machine, flow, workload).run();
        EXPECT_EQ(outcome.totals.messages_by_reference, 1U);
        EXPECT_EQ(outcome.totals.data_packets, 1U + small);
        return outcome.iteration_end[0];
    };
    EXPECT_GE(end(true), end(false));
}

TEST(Simulation, LetsLimicTakeNoCredits) {
    Trial run = thesis_run("alltoall", 32, "static", 20);
    run.machine.limic = true;
    const Totals totals = execute(run).outcome.totals;
    EXPECT_EQ(totals.messages, 32U * 31);
    EXPECT_EQ(totals.data_packets, 32U * 16 * 37);
}

TEST(Simulation, SendsLargeMessagesByRma) {
    Trial run = thesis_run("exchange", 32, "static", 20);
    run.options.bytes = 100000;
    const Totals totals = execute(run).outcome.totals;
    // One packet announces each message.
    EXPECT_EQ(totals.data_packets, totals.messages);
}

TEST(Simulation, SendsAgainWhatAMailboxHasRefused) {
    Trial run = pair_run("rnr", 4);
    run.machine.costs.receive_packet_ns = 500;  // slower than the network
    const Measured few = execute(run);
    EXPECT_FALSE(few.outcome.failed()) << few.outcome.fault << few.outcome.deadlock;
    EXPECT_GT(few.outcome.totals.flow.refusals, 0U);
    EXPECT_EQ(few.outcome.totals.data_packets, few.outcome.totals.messages);
    EXPECT_LE(few.outcome.totals.slots_high_water, 4U);

    // A refused packet comes again after the timer, and not before.
    run.flow.own.rnr_timer_ns = 1'000'000;
    EXPECT_GT(execute(run).time_us, few.time_us + 1000);
    run.flow.own.preposted_buffers = 61;
    EXPECT_EQ(execute(run).outcome.totals.flow.refusals, 0U);
}

TEST(Simulation, GrowsWhereMessagesWait) {
    Trial run = pair_run("mvapich_dynamic", 4);
    run.flow.own.growth_buffers = 2;
    run.flow.own.preposted_buffers = 40;
    const Totals grown = execute(run).outcome.totals;
    EXPECT_GT(grown.flow.growths, 0U);
    EXPECT_EQ(grown.flow.grown_buffers, 2 * grown.flow.growths);
    EXPECT_EQ(grown.largest_quota, 40U);

    run.options.repetitions = 2;
    EXPECT_EQ(execute(run).outcome.totals.flow.growths, 0U);
}

TEST(Simulation, ReturnsCreditMessagesAtTheThresholdOfLiuAndPanda) {
    Trial run = pair_run("mvapich_static", 100);
    // 60 messages one way bring 12 credit messages of 5 and the answer's piggyback nothing.
    const Totals totals = execute(run).outcome.totals;
    EXPECT_EQ(totals.flow.credit_packets, 12U * 10);
    EXPECT_EQ(totals.flow.credits_in_packets, 60U * 10);
}

TEST(Simulation, TakesTurnsWhereMorePeersSendThanWindowsExist) {
    for (const bool doorbell : {false, true}) {
        Trial run = thesis_run("incast", 32, "lazy");
        run.options.iterations = 5;
        run.flow.own.lazy_slots = 8;
        run.flow.own.lazy_peers = 4;
        run.flow.own.lazy_doorbell = doorbell;
        const Outcome outcome = execute(run).outcome;
        EXPECT_FALSE(outcome.failed()) << outcome.fault << outcome.deadlock;
        EXPECT_GT(outcome.totals.flow.releases, 4U);
        EXPECT_GE(outcome.totals.flow.hellos, 31U);
        EXPECT_LE(outcome.totals.slots_high_water, 8U + 4 * 5 + (doorbell ? 0 : 31));
    }
}

// A process that waits for a message that nobody sends.
class Stuck final : public Workload {
 public:
    std::string name() const override { return "stuck"; }
    std::uint32_t processes() const override { return 2; }
    std::uint32_t iterations() const override { return 1; }
    void steps(std::uint32_t p, std::uint32_t, std::vector<Step>& out) const override {
        if (p == 1) out.push_back({StepKind::kReceive, 0, 8});
    }
};

TEST(Simulation, SaysWhoWaitsForEver) {
    Machine machine;
    machine.dimensions = {1};
    const Stuck workload;
    const Outcome outcome = Simulation(machine, FlowOptions{}, workload).run();
    EXPECT_NE(outcome.deadlock.find("1 of 2 processes wait for ever: process 1"), std::string::npos)
        << outcome.deadlock;
}

TEST(Simulation, RefusesWhatThePolicyRefuses) {
    Trial run = thesis_run("alltoall", 32, "dynamic", 3);
    EXPECT_THROW(execute(run), std::runtime_error);
    run = thesis_run("alltoall", 32);
    run.machine.dimensions = {1};
    EXPECT_THROW(execute(run), std::runtime_error);
}

TEST(Simulation, KnowsOnlyTheNamedPeersOfASparsePattern) {
    Trial run = thesis_run("sparse", 4096, "dynamic", 16);
    run.options.neighbours = 6;
    run.options.iterations = 2;
    const Outcome outcome = execute(run).outcome;
    EXPECT_FALSE(outcome.failed()) << outcome.fault << outcome.deadlock;
    EXPECT_EQ(outcome.totals.messages, 4096U * 6 * 2);
    EXPECT_LE(outcome.totals.state_bytes, 4096U * 6 * 96);
}

}  // namespace
}  // namespace velo::sim
