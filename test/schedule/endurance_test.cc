// Long runs: no credit gets lost, and one process that never looks at its mailbox does not stop the others.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "driver.h"
#include "flow/policies.h"
#include "policy_party.h"
#include "scenario.h"
#include "world.h"

namespace velo::schedule {
namespace {

Scenario four_processes(const std::string& policy) {
    Scenario scenario;
    scenario.policy = policy;
    scenario.processes = 4;
    scenario.credit_slots = 2;
    scenario.data_slots = 3 * 10;
    // Few buffers, and fewer slots and windows than peers that want them.
    scenario.parameters.preposted_buffers = 8;
    scenario.parameters.initial_buffers = 2;
    scenario.parameters.growth_buffers = 1;
    scenario.parameters.rnr_timer_ns = 2'000;
    scenario.parameters.lazy_slots = 12;
    scenario.parameters.lazy_peers = 2;
    return scenario;
}

class LongRun : public ::testing::TestWithParam<std::string> {};

// VELO_SCHEDULE_PACKETS: packets of all kinds, in all policies together.
TEST_P(LongRun, LosesNoCredit) {
    constexpr std::uint64_t kStretch = 200'000;
    const std::uint64_t budget = from_environment("VELO_SCHEDULE_PACKETS", 12'000'000) / names().size();
    Random random(from_environment("VELO_SCHEDULE_SEED", 7));
    World<PolicyParty> world(four_processes(GetParam()));

    while (world.packets() < budget) {
        const Pattern pattern =
            all_patterns()[random.below(static_cast<std::uint32_t>(all_patterns().size()))];
        Driver driver(world, pattern, random);
        driver.check_every(1024);
        ASSERT_EQ(driver.run(kStretch), "") << to_string(pattern);
        ASSERT_EQ(driver.drain(), "") << to_string(pattern);
    }

    // Nothing is under way: I2 and I3 in their simplest form.
    for (std::uint32_t p = 0; p < 4 && world.limited(); ++p)
        for (std::uint32_t q = 0; q < 4; ++q)
            if (p != q) {
                EXPECT_EQ(world.party(p).credit(world.index(p, q)),
                          world.party(q).current(world.index(q, p)));
            }
    RecordProperty("packets", std::to_string(world.packets()));
    for (std::uint32_t p = 0; p < 4; ++p)
        EXPECT_LE(world.high_water(p), flow::mailbox_plan(GetParam(), world.scenario().config_of(p)).total());
}

TEST_P(LongRun, AProcessThatNeverRetrievesDoesNotStopTheOthers) {
    constexpr std::uint32_t kDeaf = 3;
    constexpr std::uint64_t kEvents = 60'000;
    Random random(from_environment("VELO_SCHEDULE_SEED", 11));
    World<PolicyParty> world(four_processes(GetParam()));
    Driver driver(world, Pattern::kAllToAll, random);
    driver.never_retrieves(kDeaf);

    ASSERT_EQ(driver.run(kEvents), "");
    std::uint64_t before[4][4];
    for (std::uint32_t p = 0; p < 4; ++p)
        for (std::uint32_t q = 0; q < 4; ++q) before[p][q] = world.data_packets(p, q);
    ASSERT_EQ(driver.run(kEvents), "");

    for (std::uint32_t p = 0; p < kDeaf; ++p)
        for (std::uint32_t q = 0; q < kDeaf; ++q)
            if (p != q) {
                EXPECT_GT(world.data_packets(p, q), before[p][q] + 500) << p << " to " << q;
            }
    EXPECT_EQ(world.data_packets(0, kDeaf), 0U);
}

INSTANTIATE_TEST_SUITE_P(Policies, LongRun, ::testing::ValuesIn(names()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace velo::schedule
