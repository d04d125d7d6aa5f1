// The modelled network of multicast: its times by hand, its losses, its order.
#include "machine/multicast.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "experiment/numbers.h"

namespace velo::sim {
namespace {

using Mode = MulticastRun::Mode;
using multicast::Scheme;

MulticastRun group(Mode mode, std::uint32_t nodes, std::uint32_t broadcasts = 10) {
    MulticastRun run;
    run.mode = mode;
    run.nodes = nodes;
    run.broadcasts = broadcasts;
    return run;
}

TEST(MulticastMachine, switches_are_those_of_a_tree_of_sixteen_ports) {
    EXPECT_EQ(switches_between(3, 3), 0U);
    EXPECT_EQ(switches_between(0, 15), 1U);
    EXPECT_EQ(switches_between(0, 16), 3U);
    EXPECT_EQ(switches_between(255, 256), 5U);
}

// Post and take 1.05 each, 100 ns and 56 bytes of 0.935 for the interface, a switch; two copies of 8 bytes.
TEST(MulticastMachine, one_message_costs_what_its_parts_cost) {
    constexpr double kHop = 0.002 + 1.05 + 0.1 + 56 * 0.000935 + 0.2 + 1.05 + 0.002;
    for (const Mode mode : {Mode::kOriginal, Mode::kLeaders, Mode::kEverybody}) {
        const MulticastOutcome outcome = run_multicast(group(mode, 2));
        EXPECT_EQ(outcome.fault, "");
        EXPECT_NEAR(median(outcome.latency_us), kHop, 1e-3);
    }
    EXPECT_NEAR(model_of(group(Mode::kLeaders, 2)).hop_us, kHop, 1e-9);
}

TEST(MulticastMachine, a_tree_of_messages_takes_a_hop_for_each_doubling) {
    for (const std::uint32_t nodes : {2U, 4U, 8U, 16U}) {
        const MulticastRun run = group(Mode::kOriginal, nodes);
        EXPECT_NEAR(median(run_multicast(run).latency_us), model_of(run).original_us, 1e-3) << nodes;
    }
}

TEST(MulticastMachine, the_same_seed_is_the_same_run) {
    MulticastRun run = group(Mode::kLeaders, 16, 200);
    run.loss = 0.05;
    run.doubles = run.reordered = 0.02;
    const MulticastOutcome first = run_multicast(run), second = run_multicast(run);
    EXPECT_EQ(first.digest, second.digest);
    EXPECT_EQ(first.all.nacks, second.all.nacks);
    run.seed = 2;
    EXPECT_NE(run_multicast(run).digest, first.digest);
}

TEST(MulticastMachine, every_scheme_brings_everything_through_a_lossy_network) {
    for (const Scheme scheme : {Scheme::kBasic, Scheme::kWindow, Scheme::kTree, Scheme::kCoroot})
        for (const bool transfer : {false, true}) {
            MulticastRun run = group(Mode::kLeaders, 24, 300);
            run.on_node = 2;
            run.config.scheme = scheme;
            run.config.reliable_transfer = transfer;
            run.pace = MulticastRun::Pace::kStream;
            run.loss = 0.1;
            run.doubles = run.reordered = 0.1;
            const MulticastOutcome outcome = run_multicast(run);
            EXPECT_EQ(outcome.fault, "");
            EXPECT_EQ(outcome.latency_us.size(), 300U);
            EXPECT_EQ(outcome.all.delivered, 300U * 23);
            EXPECT_GT(outcome.all.duplicates, 0U);
            EXPECT_GT(outcome.all.resent + outcome.all.repairs, 0U);
        }
}

TEST(MulticastMachine, acknowledgements_at_the_root_are_one_for_so_many_datagrams) {
    for (const std::uint32_t ack_every : {1U, 10U}) {
        MulticastRun run = group(Mode::kLeaders, 9, 200);
        run.config.scheme = Scheme::kWindow;
        run.config.ack_every = ack_every;
        run.pace = MulticastRun::Pace::kStream;
        const auto heard = static_cast<double>(run_multicast(run).root.acks_heard);
        // But those of the last datagrams, after which the run ends.
        EXPECT_LE(heard, 8.0 * 200 / ack_every);
        EXPECT_GE(heard, 8.0 * (200 - 2 * 10) / ack_every);
    }
}

TEST(MulticastMachine, a_receive_buffer_that_is_too_small_loses_datagrams_which_are_repaired) {
    MulticastRun run = group(Mode::kLeaders, 8, 300);
    run.pace = MulticastRun::Pace::kStream;
    run.receive_buffer = 2;
    run.bytes = 1024;
    run.late_process = 5;
    run.late_us = 3000;
    run.random_lateness = false;
    const MulticastOutcome outcome = run_multicast(run);
    EXPECT_EQ(outcome.fault, "");
    EXPECT_GT(outcome.overflows, 0U);
    EXPECT_GT(outcome.all.repairs, 0U);
    EXPECT_EQ(outcome.all.delivered, 300U * 7);
}

TEST(MulticastMachine, processes_of_a_late_leader_attach_and_detach) {
    MulticastRun run = group(Mode::kLeaders, 4, 60);
    run.on_node = 3;
    run.interval_us = 3000;
    run.late_process = 3;
    run.late_every = 1;
    run.late_us = 1000;
    run.random_lateness = false;
    run.attachment.dynamic = true;
    run.attachment.detach_after = 20;
    MulticastOutcome outcome = run_multicast(run);
    EXPECT_EQ(outcome.joins, 2U);
    EXPECT_EQ(outcome.leaves, 0U);
    run.late_every = 25;  // four late runs in 76: too few in 20
    run.broadcasts = 200;
    EXPECT_EQ(run_multicast(run).joins, 0U);
    run.attachment.detach_after = 24;  // late again before they forget
    run.late_every = 23;
    outcome = run_multicast(run);
    EXPECT_EQ(outcome.joins, 2U);
    EXPECT_EQ(outcome.fault, "");
}

TEST(MulticastMachine, thousands_of_nodes_are_no_other_case) {
    const MulticastOutcome outcome = run_multicast(group(Mode::kLeaders, 4096, 3));
    EXPECT_EQ(outcome.fault, "");
    EXPECT_EQ(outcome.all.delivered, 3U * 4095);
}

}  // namespace
}  // namespace velo::sim
