// More active peers than slots and windows: under lazy they take turns.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "driver.h"
#include "policy_party.h"
#include "scenario.h"
#include "world.h"

namespace velo::schedule {
namespace {

constexpr std::uint32_t kProcesses = 13;

Scenario crowded(std::uint32_t slots, std::uint32_t peers) {
    Scenario scenario;
    scenario.policy = "lazy";
    scenario.processes = kProcesses;
    scenario.credit_slots = 2;
    scenario.parameters.lazy_slots = slots;
    scenario.parameters.lazy_peers = peers;
    return scenario;
}

struct Share {
    std::uint64_t least = UINT64_MAX;
    std::uint64_t most = 0;

    void add(std::uint64_t packets) {
        least = std::min(least, packets);
        most = std::max(most, packets);
    }
};

TEST(TimeSharing, GivesEverySenderOfACrowdItsTurn) {
    for (const auto& [slots, peers] : {std::pair{2U, 12U}, std::pair{6U, 3U}, std::pair{1U, 1U}}) {
        Random random(from_environment("VELO_SCHEDULE_SEED", 3));
        World<PolicyParty> world(crowded(slots, peers));
        Driver driver(world, Pattern::kIncast, random);
        driver.check_every(64);

        ASSERT_EQ(driver.run(400'000), "");

        Share share;
        for (std::uint32_t p = 1; p < kProcesses; ++p) share.add(world.data_packets(p, 0));
        EXPECT_GT(share.least, 200U);
        EXPECT_LT(share.most, 2 * share.least) << slots << " slots, " << peers << " peers at once";
        ASSERT_EQ(driver.drain(), "");
    }
}

TEST(TimeSharing, GivesEveryReceiverItsTurnWhenASenderHasOneWindow) {
    Random random(from_environment("VELO_SCHEDULE_SEED", 5));
    World<PolicyParty> world(crowded(16, 1));
    Driver driver(world, Pattern::kAllToAll, random);
    driver.check_every(64);

    ASSERT_EQ(driver.run(400'000), "");

    Share share;
    for (std::uint32_t p = 0; p < kProcesses; ++p)
        for (std::uint32_t q = 0; q < kProcesses; ++q)
            if (p != q) share.add(world.data_packets(p, q));
    EXPECT_GT(share.least, 50U);
    EXPECT_LT(share.most, 3 * share.least);
    ASSERT_EQ(driver.drain(), "");
}

TEST(TimeSharing, KeepsTheMailboxOfAProcessThatOnlyAFewSpeakToSmall) {
    // 12 peers, of which 2 send: nobody is ever asked to give way, and one HELLO each is all it costs.
    Random random(from_environment("VELO_SCHEDULE_SEED", 7));
    Scenario scenario = crowded(64, 4);
    World<PolicyParty> world(scenario);
    for (int round = 0; round < 20'000; ++round) {
        for (std::uint32_t p : {1U, 2U}) world.send(p, 0, 1, true);
        while (!world.quiet())
            for (std::uint32_t p : {1U, 2U}) {
                if (world.in_channel(p, 0) > 0) world.pass(p, 0);
                if (world.in_channel(0, p) > 0) world.pass(0, p);
            }
    }

    EXPECT_EQ(world.check(), "");
    EXPECT_EQ(world.data_packets(1, 0), 20'000U);
    EXPECT_EQ(world.party(1).policy().counters().hellos, 1U);
    EXPECT_EQ(world.party(0).policy().counters().releases, 0U);
    EXPECT_LE(world.party(0).policy().counters().credit_packets, 2U * 20'000 / 7);
}

}  // namespace
}  // namespace velo::schedule
