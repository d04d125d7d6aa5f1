// Who collects whose acknowledgements.
#include "collectives/multicast/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace velo::multicast {
namespace {

Config planned(Scheme scheme, std::uint32_t members, std::uint32_t co_roots = kSquareRoot) {
    Config config;
    config.scheme = scheme;
    config.members = members;
    config.co_roots = co_roots;
    return config;
}

TEST(MulticastPlan, every_member_but_the_source_is_in_one_set_and_reports_reach_the_source) {
    for (const Scheme scheme : {Scheme::kBasic, Scheme::kWindow, Scheme::kTree, Scheme::kCoroot})
        for (std::uint32_t members = 2; members <= 20; ++members)
            for (std::uint32_t source = 0; source < members; ++source)
                for (const std::uint32_t co_roots : {0U, 1U, members / 2, members - 1, kSquareRoot}) {
                    const Plan plan(planned(scheme, members, co_roots), source);
                    std::vector<std::uint32_t> collected;
                    for (std::uint32_t m = 0; m < members; ++m)
                        for (const std::uint32_t child : plan.set_of(m)) {
                            EXPECT_EQ(plan.collector_of(child), m);
                            collected.push_back(child);
                        }
                    EXPECT_EQ(collected.size(), members - 1);
                    std::ranges::sort(collected);
                    EXPECT_EQ(std::ranges::adjacent_find(collected), collected.end());
                    EXPECT_EQ(std::ranges::count(collected, source), 0);
                    for (std::uint32_t m = 0; m < members; ++m) {
                        std::uint32_t steps = 0;
                        for (std::uint32_t at = m; at != source; ++steps) at = plan.collector_of(at);
                        EXPECT_LE(steps, scheme == Scheme::kTree ? 5U : scheme == Scheme::kCoroot ? 2U : 1U);
                    }
                }
}

TEST(MulticastPlan, sets_are_alike_and_do_not_move_with_the_source) {
    for (std::uint32_t source = 0; source < 64; ++source) {
        const Plan plan(planned(Scheme::kCoroot, 64), source);
        EXPECT_EQ(plan.co_roots(), 7U);
        EXPECT_EQ(Plan(planned(Scheme::kCoroot, 64, 0), source).set_of(source).size(), 63U);
        for (std::uint32_t m = 0; m < 64; ++m) {
            if (m / 8 == source / 8) continue;
            EXPECT_EQ(plan.collector_of(m), m % 8 == 0 ? source : m / 8 * 8);
        }
    }
}

TEST(MulticastPlan, point_to_point_transfers_reach_every_co_root_once) {
    for (std::uint32_t co_roots = 1; co_roots < 40; ++co_roots)
        for (const std::uint32_t source : {0U, 3U, 39U}) {
            Config config = planned(Scheme::kCoroot, 40, co_roots);
            config.reliable_transfer = true;
            const Plan plan(config, source);
            std::vector<std::uint32_t> reached = {source};
            for (std::size_t i = 0; i < reached.size(); ++i)
                for (const std::uint32_t relay : plan.relays_of(reached[i])) {
                    EXPECT_TRUE(plan.repairs(relay));
                    EXPECT_EQ(std::ranges::count(reached, relay), 0);
                    reached.push_back(relay);
                }
            EXPECT_EQ(reached.size(), plan.co_roots() + 1);
        }
}

}  // namespace
}  // namespace velo::multicast
