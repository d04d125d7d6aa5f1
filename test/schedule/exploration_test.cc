// All states of small systems: under the policies whose handshakes nobody has proved, lazy above all, and
// under those whose credit packets may be delayed. What is run are the production objects.
// VELO_EXPLORE_STATES: states of each system, at most.
#include <gtest/gtest.h>

#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include "driver.h"
#include "explore.h"

namespace velo::schedule {
namespace {

using Pairs = Explorer::Pairs;

std::uint64_t max_states() {
    return from_environment("VELO_EXPLORE_STATES", 6'000);
}

struct Traffic {
    const char* name;
    std::uint32_t processes;
    Pairs pairs;
    bool contended;   // somebody has to give way in some of the systems
    Pairs prelude{};  // who has sent a packet before
};

const Traffic kTwoSenders{"two senders", 3, {{1, 0}, {2, 0}}, true};
const Traffic kThreeSenders{"three senders", 4, {{1, 0}, {2, 0}, {3, 0}}, true};
const Traffic kBothWays{"both ways", 2, {{0, 1}, {1, 0}}, false};
const Traffic kAnswered{"two senders, one of them answered", 3, {{1, 0}, {2, 0}, {0, 1}}, true};
const Traffic kTwoReceivers{"two receivers", 3, {{0, 1}, {0, 2}}, true};
const Traffic kRing{"ring", 3, {{0, 1}, {1, 2}, {2, 0}}, false};
const Traffic kCrossed{"two receivers, both answer", 3, {{0, 1}, {0, 2}, {1, 0}, {2, 0}}, true};

Scenario lazy_system(const Traffic& traffic, std::uint32_t credit_slots, std::uint32_t slots,
                     std::uint32_t peers) {
    Scenario scenario;
    scenario.policy = "lazy";
    scenario.processes = traffic.processes;
    scenario.credit_slots = credit_slots;
    scenario.parameters.lazy_slots = slots;
    scenario.parameters.lazy_peers = peers;
    scenario.parameters.lazy_ahead = 0;
    return scenario;
}

struct Way {
    bool stealing;
    bool doorbell;
    std::uint32_t ahead;
};
constexpr Way kWays[] = {
    {false, false, 0}, {true, false, 0}, {false, true, 0}, {true, true, 0}, {true, true, 1}};

class LazyExploration : public ::testing::TestWithParam<const Traffic*> {};

TEST_P(LazyExploration, HoldsInEveryStateThatSmallSystemsReach) {
    const Traffic& traffic = *GetParam();
    // Every combination of n, D, windows at a time, stealing and doorbells.
    std::uint64_t states = 0, systems = 0, exhausted = 0, steals = 0, releases = 0, leaves = 0;
    for (std::uint32_t n : {1U, 2U})
        for (std::uint32_t slots : {1U, 2U, 3U, 5U})
            for (std::uint32_t peers : {1U, 2U})
                for (const Way& way : kWays) {
                    Scenario scenario = lazy_system(traffic, n, slots, peers);
                    scenario.parameters.lazy_stealing = way.stealing;
                    scenario.parameters.lazy_doorbell = way.doorbell;
                    scenario.parameters.lazy_ahead = way.ahead;

                    const Exploration found =
                        Explorer(scenario, traffic.pairs, traffic.prelude).run(max_states());

                    ASSERT_EQ(found.violation, "") << traffic.name << ", after " << found.length << " events";
                    EXPECT_TRUE(found.exhausted || found.states >= max_states());
                    EXPECT_GE(found.hellos, 1U);
                    states += found.states;
                    steals += found.steals;
                    releases += found.releases;
                    leaves += found.leaves;
                    exhausted += found.exhausted;
                    ++systems;
                }
    // Or this test looks at nothing.
    EXPECT_EQ(releases + leaves > 0, traffic.contended);
    RecordProperty("states", std::to_string(states));
    std::cout << traffic.name << ": " << states << " states of " << systems << " systems, " << exhausted
              << " of them completely; releases " << releases << ", steals " << steals << ", leaves "
              << leaves << std::endl;
}

INSTANTIATE_TEST_SUITE_P(Traffic, LazyExploration,
                         ::testing::Values(&kTwoSenders, &kThreeSenders, &kBothWays, &kAnswered,
                                           &kTwoReceivers, &kRing, &kCrossed),
                         [](const auto& test) {
                             std::string name = test.param->name;
                             std::erase_if(name, [](char c) { return c == ' ' || c == ','; });
                             return name;
                         });

TEST(LazyOrder, NeedsTheOrderOfAPair) {
    // The exploration can see harm: a BYE may overtake the DATA that it has to follow, a RELEASE the CREDIT.
    const Scenario scenario = lazy_system(kTwoSenders, 1, 5, 1);

    const Exploration found = Explorer(scenario, kTwoSenders.pairs, {}, false).run(100'000);

    EXPECT_NE(found.violation, "");
    EXPECT_EQ(Explorer(scenario, kTwoSenders.pairs).run(100'000).violation, "");
}

TEST(LazyStealing, HoldsWhereIdleSendersHoldWhatABusyOneLacks) {
    // All three have sent a packet; then the third, which came last and got least, is busy, and the first
    // one, whose slots it gets, comes back.
    const Traffic busy{"one of three is busy", 4, {{3, 0}, {1, 0}}, true, {{1, 0}, {2, 0}, {3, 0}}};
    for (std::uint32_t slots : {8U, 12U})
        for (bool doorbell : {false, true}) {
            Scenario scenario = lazy_system(busy, 1, slots, 4);
            scenario.parameters.lazy_doorbell = doorbell;

            const Exploration found = Explorer(scenario, busy.pairs, busy.prelude).run(10 * max_states());

            EXPECT_EQ(found.violation, "");
            if (slots == 8) {
                EXPECT_GT(found.steals, 0U) << scenario.describe();
            }
            scenario.parameters.lazy_stealing = false;
            EXPECT_EQ(Explorer(scenario, busy.pairs, busy.prelude).run(max_states()).steals, 0U);
        }
}

// A credit packet that waits may leave at any moment, in any company, or join.
TEST(DelayedCredits, HoldInEveryStateThatSmallSystemsReach) {
    for (const char* policy : {"static", "dynamic"}) {
        std::uint64_t states = 0, systems = 0, exhausted = 0, delayed = 0;
        for (const Traffic* traffic :
             {&kBothWays, &kTwoSenders, &kAnswered, &kTwoReceivers, &kRing, &kCrossed})
            for (std::uint32_t n : {1U, 2U})
                for (std::uint32_t spare : {0U, 1U, 2U}) {
                    Scenario scenario;
                    scenario.policy = policy;
                    scenario.processes = traffic->processes;
                    scenario.credit_slots = n;
                    scenario.data_slots = (traffic->processes - 1) * n + spare;

                    const Exploration found = Explorer(scenario, traffic->pairs).run(max_states());

                    ASSERT_EQ(found.violation, "")
                        << traffic->name << ", after " << found.length << " events";
                    EXPECT_TRUE(found.exhausted || found.states >= max_states());
                    states += found.states;
                    exhausted += found.exhausted;
                    delayed += found.delayed;
                    ++systems;
                }
        // Or this test looks at nothing.
        EXPECT_GT(delayed, 0U);
        std::cout << policy << ": " << states << " states of " << systems << " systems, " << exhausted
                  << " of them completely, " << delayed << " with a delayed credit packet" << std::endl;
    }
}

Scenario successive_system(const std::string& policy, const Traffic& traffic, std::uint32_t credit_slots) {
    if (policy == "lazy") return lazy_system(traffic, credit_slots, 3, 2);
    Scenario scenario;
    scenario.policy = policy;
    scenario.processes = traffic.processes;
    scenario.credit_slots = credit_slots;
    scenario.data_slots = (traffic.processes - 1) * 2 + 1;
    scenario.parameters.preposted_buffers = 3;
    scenario.parameters.initial_buffers = 2;
    scenario.parameters.growth_buffers = 1;
    return scenario;
}

// An entry of a mailbox serves one process after the other. A packet does not say of which of them it is: the
// entry is free when the last one of its owner has been retrieved, and not before.
class Successors : public ::testing::TestWithParam<std::string> {};

TEST_P(Successors, FindTheirPlacesAsTheFirstOnesDidInEveryStateOfSmallSystems) {
    std::uint64_t states = 0, systems = 0, exhausted = 0, successors = 0;
    for (const Traffic* traffic : {&kBothWays, &kTwoSenders, &kTwoReceivers, &kAnswered})
        for (const std::uint32_t n : {1U, 2U})
            for (std::uint32_t mortal = 0; mortal < traffic->processes; ++mortal) {
                Explorer explorer(successive_system(GetParam(), *traffic, n), traffic->pairs);
                explorer.may_end({mortal});
                explorer.have_successors();

                const Exploration found = explorer.run(max_states());

                ASSERT_EQ(found.violation, "")
                    << traffic->name << ", " << mortal << " may end, after " << found.length << " events";
                EXPECT_TRUE(found.exhausted || found.states >= max_states());
                EXPECT_GT(found.successors, 0U);
                states += found.states;
                exhausted += found.exhausted;
                successors += found.successors;
                ++systems;
            }
    std::cout << GetParam() << ": " << states << " states of " << systems << " systems, " << exhausted
              << " of them completely, " << successors << " successors" << std::endl;
}

TEST_P(Successors, TakePacketsOfTheOthersForTheirOwnIfTheirPlacesWereFreeTooSoon) {
    Explorer explorer(successive_system(GetParam(), kTwoSenders, 1), kTwoSenders.pairs, {}, true, false);
    explorer.may_end({1});
    explorer.have_successors();

    EXPECT_NE(explorer.run(100'000).violation, "");
}

INSTANTIATE_TEST_SUITE_P(EveryPolicy, Successors,
                         ::testing::Values("static", "dynamic", "lazy", "mvapich_static", "mvapich_dynamic"),
                         [](const auto& test) { return test.param; });

TEST(LiuAndPanda, HoldInEveryStateOfTwoProcesses) {
    for (const char* policy : {"mvapich_static", "mvapich_dynamic"})
        for (std::uint32_t buffers : {1U, 2U, 3U})
            for (std::uint32_t growth : {0U, 1U})
                for (std::uint32_t threshold : {1U, 2U, 5U}) {
                    Scenario scenario;
                    scenario.policy = policy;
                    scenario.data_slots = 4;
                    scenario.parameters.preposted_buffers = buffers + 2;  // past a threshold of 2, at least
                    scenario.parameters.initial_buffers = buffers;
                    scenario.parameters.growth_buffers = growth;
                    scenario.parameters.credit_message_threshold = threshold;

                    const Exploration found = Explorer(scenario, kBothWays.pairs).run(100'000);

                    EXPECT_EQ(found.violation, "");
                    EXPECT_TRUE(found.exhausted || buffers > 1);
                }
}

}  // namespace
}  // namespace velo::schedule
