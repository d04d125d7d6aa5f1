// Every registered policy keeps the invariants of design/flow-control.md after every event of seeded
// schedules.
#include <gtest/gtest.h>

#include <cstdint>
#include <iostream>
#include <string>
#include <tuple>

#include "driver.h"
#include "policy_party.h"
#include "scenario.h"
#include "world.h"

namespace velo::schedule {
namespace {

class EveryPolicy : public ::testing::TestWithParam<std::tuple<std::string, Pattern>> {
 protected:
    std::string policy() const { return std::get<0>(GetParam()); }
    Pattern pattern() const { return std::get<1>(GetParam()); }
};

// The outcome of one schedule; an empty string is a success.
std::string run_schedule(const std::string& policy, Pattern pattern, std::uint64_t seed,
                         std::uint64_t* events) {
    Random random(seed);
    const Scenario scenario = Scenario::random(policy, random);
    World<PolicyParty> world(scenario);
    Driver driver(world, pattern, random);
    std::string broken = driver.run(schedule_length(random));
    if (broken.empty()) broken = driver.drain();
    *events += driver.events();
    if (broken.empty()) return {};
    return scenario.describe() + ", " + to_string(pattern) + ", event " + std::to_string(driver.events()) +
           ": " + broken + "\n  replay with VELO_SCHEDULE_SEED=" + std::to_string(seed);
}

TEST_P(EveryPolicy, KeepsTheInvariantsAfterEveryEventAndStrandsNothingOnDrain) {
    const std::uint64_t replay = from_environment("VELO_SCHEDULE_SEED", 0);
    const std::uint64_t budget =
        from_environment("VELO_SCHEDULE_EVENTS", 6'000'000) / (names().size() * all_patterns().size());
    std::uint64_t events = 0;
    std::uint64_t schedules = 0;

    for (std::uint64_t seed = replay != 0 ? replay : 1; events < budget; ++seed) {
        const std::string broken = run_schedule(policy(), pattern(), seed, &events);
        ASSERT_EQ(broken, "");
        ++schedules;
        if (replay != 0) break;
    }

    RecordProperty("events", std::to_string(events));
    RecordProperty("schedules", std::to_string(schedules));
}

// What an ended process held is free for the others, and its place as good as new for the next one, whatever
// was under way in either direction.
TEST_P(EveryPolicy, KeepsTheInvariantsWhileProcessesEndAndOthersTakeTheirPlaces) {
    const std::uint64_t replay = from_environment("VELO_SCHEDULE_SEED", 0);
    const std::uint64_t budget =
        from_environment("VELO_SCHEDULE_EVENTS", 1'500'000) / (names().size() * all_patterns().size());
    // One schedule in which processes hardly ever end can use up a small budget.
    constexpr std::uint64_t kLeastSchedules = 20;
    std::uint64_t events = 0, ends = 0, replacements = 0;

    for (std::uint64_t seed = replay != 0 ? replay : 1; events < budget || seed <= kLeastSchedules; ++seed) {
        Random random(seed);
        Scenario scenario = Scenario::random(policy(), random);
        if (scenario.processes < 3) continue;
        World<PolicyParty> world(scenario);
        Driver driver(world, pattern(), random);
        driver.ends_every(random.chance(1, 2) ? 30 : 300);
        std::string broken = driver.run(schedule_length(random));
        if (broken.empty()) broken = driver.drain();
        ASSERT_EQ(broken, "") << scenario.describe() << ", " << to_string(pattern()) << ", event "
                              << driver.events() << "\n  replay with VELO_SCHEDULE_SEED=" << seed;
        events += driver.events();
        ends += driver.ends();
        replacements += driver.replacements();
        if (replay != 0) return;
    }
    EXPECT_GT(ends, 50U);
    EXPECT_GT(replacements, 50U);
}

INSTANTIATE_TEST_SUITE_P(Schedules, EveryPolicy,
                         ::testing::Combine(::testing::ValuesIn(names()),
                                            ::testing::ValuesIn(all_patterns())),
                         [](const auto& test) {
                             return std::get<0>(test.param) + "_" + to_string(std::get<1>(test.param));
                         });

}  // namespace
}  // namespace velo::schedule
