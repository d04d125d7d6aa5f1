// Two implementations of the dynamic rules, and two policies that must coincide, run in lockstep: the same
// schedule has to produce the same packets with the same values in the same order.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "driver.h"
#include "lockstep.h"
#include "policy_party.h"
#include "reference_party.h"
#include "scenario.h"
#include "world.h"

namespace velo::schedule {
namespace {

class EveryPattern : public ::testing::TestWithParam<Pattern> {
 protected:
    // Runs seeds until this test's share of the events is used up. `run` returns what went wrong.
    template <class Run>
    void for_all_seeds(std::uint64_t default_events, Run run) {
        const std::uint64_t replay = from_environment("VELO_SCHEDULE_SEED", 0);
        const std::uint64_t budget =
            from_environment("VELO_SCHEDULE_EVENTS", default_events) / all_patterns().size();
        std::uint64_t events = 0;
        for (std::uint64_t seed = replay != 0 ? replay : 1; events < budget; ++seed) {
            const std::string broken = run(seed, &events);
            ASSERT_EQ(broken, "") << "replay with VELO_SCHEDULE_SEED=" << seed;
            if (replay != 0) break;
        }
        RecordProperty("events", std::to_string(events));
    }

    template <class First, class Second>
    std::string lockstep(First& first, Second& second, Random& random, std::uint64_t* events) {
        Lockstep both(first, second);
        Driver driver(both, GetParam(), random);
        std::string broken = driver.run(schedule_length(random));
        if (broken.empty()) broken = driver.drain();
        *events += driver.events();
        return broken.empty() ? broken : first.scenario().describe() + ": " + broken;
    }
};

// In the words of ReferenceParty::state.
std::string state_of(const flow::DynamicPolicy& policy, flow::PeerIndex peer) {
    std::string text;
    for (std::uint32_t i = 0; i <= policy.config().credit_slots; ++i)
        text += std::to_string(policy.threshold(peer, i)) + ",";
    text += " |";
    for (std::uint32_t v : {policy.intended(peer), policy.peer(peer).retrieved, policy.piggybacked(peer),
                            policy.peer(peer).current, policy.peer(peer).credit, policy.crossings(peer)})
        text += " " + std::to_string(v);
    text += " level " + std::to_string(static_cast<int>(policy.level(peer)));
    if (policy.blocked(peer)) text += " blocked";
    if (policy.request_waiting(peer)) text += " REQ";
    if (policy.response_waiting(peer)) text += " RESP";
    return text;
}

TEST_P(EveryPattern, TheDynamicPolicySendsWhatTheReferenceModelSends) {
    for_all_seeds(2'000'000, [&](std::uint64_t seed, std::uint64_t* events) {
        Random random(seed);
        Scenario scenario = Scenario::random("dynamic", random);
        scenario.delay_credits = false;
        World<PolicyParty> policies(scenario);
        World<ReferenceParty> models(scenario);

        std::string broken = lockstep(policies, models, random, events);

        for (std::uint32_t p = 0; p < scenario.processes && broken.empty(); ++p)
            for (flow::PeerIndex q = 0; q + 1 < scenario.processes && broken.empty(); ++q) {
                const auto& policy = dynamic_cast<const flow::DynamicPolicy&>(policies.party(p).policy());
                const std::string ours = state_of(policy, q);
                const std::string theirs = models.party(p).state(q);
                if (ours != theirs)
                    broken = scenario.describe() + ": state " + ours + " as against " + theirs;
            }
        return broken;
    });
}

TEST_P(EveryPattern, WithoutADynamicRegionTheDynamicPolicyIsTheStaticOne) {
    for_all_seeds(500'000, [&](std::uint64_t seed, std::uint64_t* events) {
        Random random(seed);
        Scenario scenario = Scenario::random("dynamic", random);
        scenario.data_slots = (scenario.processes - 1) * scenario.credit_slots;
        scenario.intended_max = flow::kMaxQuota;
        scenario.delay_credits = false;
        World<PolicyParty> dynamics(scenario);
        scenario.policy = "static";
        World<PolicyParty> statics(scenario);

        return lockstep(dynamics, statics, random, events);
    });
}

// Quotas that shrink while credits leave early, a few at a time.
TEST(AdjustmentByExcess, IsTheSameInThePolicyAndInTheReferenceModel) {
    std::uint64_t adjustments = 0;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        Random random(from_environment("VELO_SCHEDULE_SEED", seed));
        Scenario scenario;
        scenario.delay_credits = false;
        scenario.processes = random.between(3, 5);
        scenario.credit_slots = random.between(2, 4);
        scenario.data_slots = (scenario.processes - 1) * random.between(20, 80);
        World<PolicyParty> policies(scenario);
        World<ReferenceParty> models(scenario);
        Lockstep both(policies, models);
        Driver driver(both, Pattern::kTides, random);
        driver.chatty();

        ASSERT_EQ(driver.run(20'000), "") << scenario.describe() << ", VELO_SCHEDULE_SEED=" << seed;
        ASSERT_EQ(driver.drain(), "") << scenario.describe() << ", VELO_SCHEDULE_SEED=" << seed;

        for (std::uint32_t p = 0; p < scenario.processes; ++p)
            adjustments += models.party(p).excess_adjustments();
    }

    EXPECT_GT(adjustments, 100U);
}

INSTANTIATE_TEST_SUITE_P(Schedules, EveryPattern, ::testing::ValuesIn(all_patterns()),
                         [](const auto& test) { return to_string(test.param); });

}  // namespace
}  // namespace velo::schedule
