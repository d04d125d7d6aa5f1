// The counters that can be watched while an engine runs.
#include <gtest/gtest.h>

#include "engine_party.h"

namespace velo::test {
namespace {

std::vector<std::uint64_t> of_peers(Member& member, const std::string& name) {
    std::vector<std::uint64_t> values(velo_counter_peers(member.engine), 12345);
    velo_counter_of_peers(member.engine, counter_index(name), values.data(),
                          static_cast<std::uint32_t>(values.size()));
    return values;
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
    for (const char* policy : {"none", "static", "dynamic"}) {
        SCOPED_TRACE(policy);
        Party party(PartyConfig{.size = 3, .flow_control = policy, .by_reference = "never"});
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

}  // namespace
}  // namespace velo::test
