// The counters that can be watched while an engine runs.
#include <gtest/gtest.h>

#include <set>

#include "engine_party.h"

namespace velo::test {
namespace {

std::vector<std::uint64_t> of_peers(Member& member, const std::string& name) {
    std::vector<std::uint64_t> values(velo_counter_peers(member.engine), 12345);
    velo_counter_of_peers(member.engine, counter_index(name), values.data(),
                          static_cast<std::uint32_t>(values.size()));
    return values;
}

TEST(Counters, have_names_of_their_own_and_descriptions) {
    std::set<std::string> names;
    for (unsigned index = 0; velo_counter_at(index) != nullptr; ++index) {
        EXPECT_TRUE(names.insert(velo_counter_at(index)->name).second);
        EXPECT_GT(std::string(velo_counter_at(index)->help).size(), 10U);
    }
    EXPECT_GE(names.size(), 20U);
    EXPECT_EQ(velo_counter_at(1000), nullptr);
}

TEST(Counters, of_a_new_engine_are_zero_but_for_credits_and_names) {
    Party party(PartyConfig{.size = 3, .flow_control = "static"});
    EXPECT_EQ(counter(party[0], "messages_sent"), 0U);
    EXPECT_EQ(counter(party[0], "stalls"), 0U);
    EXPECT_EQ(counter(party[0], "credits"), 12U);
    EXPECT_EQ(of_peers(party[0], "peer_credits"), (std::vector<std::uint64_t>{6, 6}));
    EXPECT_EQ(of_peers(party[0], "peer_names"), (std::vector<std::uint64_t>{101, 102}));
}

TEST(Counters, tell_of_a_stall_while_it_lasts_and_afterwards) {
    for (const auto& [policy, by_reference] : {std::pair{"none", "auto"}, std::pair{"static", "auto"},
                                               std::pair{"dynamic", "auto"}, std::pair{"dynamic", "never"}}) {
        SCOPED_TRACE(std::string(policy) + ", by reference " + by_reference);
        Party party(PartyConfig{.size = 3, .flow_control = policy, .by_reference = by_reference});
        for (unsigned i = 0; i < 30; ++i) party.send(0, 2, 9, pattern(500, i));
        EXPECT_EQ(counter(party[0], "stalls"), 1U);
        EXPECT_EQ(of_peers(party[0], "peer_stalls"), (std::vector<std::uint64_t>{0, 1}));
        EXPECT_GT(counter(party[0], "queued_bytes"), 10'000U);
        EXPECT_EQ(of_peers(party[0], "peer_queued_bytes")[1], counter(party[0], "queued_bytes"));
        EXPECT_EQ(of_peers(party[0], "peer_credits")[1], 0U);
        EXPECT_GT(counter(party[0], "stalled_time"), 0U);
        party.settle();
        EXPECT_EQ(counter(party[0], "queued_bytes"), 0U);
        std::uint64_t after = counter(party[0], "stalled_time");
        EXPECT_EQ(counter(party[0], "stalled_time"), after);
        EXPECT_EQ(of_peers(party[0], "peer_stalled_time"), (std::vector<std::uint64_t>{0, after}));
        EXPECT_EQ(counter(party[0], "messages_sent"), 30U);
        EXPECT_EQ(counter(party[0], "messages_delayed"), party.queued());
    }
}

TEST(Counters, count_the_credits_that_came_back) {
    Party party(PartyConfig{.flow_control = "static"});
    for (unsigned i = 0; i < 30; ++i) party.send(0, 1, 9, pattern(500, i));
    party.settle();
    EXPECT_EQ(counter(party[0], "data_packets") - counter(party[1], "credits_in_packets"),
              6 - counter(party[0], "credits"));
    EXPECT_GT(counter(party[1], "credit_packets"), 0U);
}

TEST(Counters, that_do_not_exist_are_zero) {
    Party party(PartyConfig{});
    EXPECT_EQ(velo_counter_value(party[0].engine, 1000), 0U);
    std::uint64_t values[3] = {1, 2, 3};
    velo_counter_of_peers(party[0].engine, counter_index("peer_credits"), values, 3);
    EXPECT_EQ(values[1], 0U);
    EXPECT_EQ(values[2], 0U);
    velo_counter_of_peers(party[0].engine, counter_index("messages_sent"), values, 1);
    EXPECT_EQ(values[0], 0U);
}

TEST(StallWarning, names_the_peer_and_the_numbers_and_says_when_it_is_over) {
    PartyConfig config{.flow_control = "static"};
    config.stall_warning_seconds = 1;
    Party party(config);
    for (unsigned i = 0; i < 30; ++i) party.send(0, 1, 9, pattern(500, i));
    auto& log = party[0].log;
    log.clear();
    auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (log.empty() && std::chrono::steady_clock::now() < end) velo_progress(party[0].engine);
    ASSERT_EQ(log.size(), 1U);
    for (const char* part :
         {"[0,101]", "process id", "0 credits left", "bytes wait for credits", "btl_velo_stall_warning"})
        EXPECT_NE(log[0].find(part), std::string::npos) << part << " in " << log[0];
    party.settle();
    ASSERT_EQ(log.size(), 2U);
    EXPECT_NE(log[1].find("have left"), std::string::npos);
}

}  // namespace
}  // namespace velo::test
