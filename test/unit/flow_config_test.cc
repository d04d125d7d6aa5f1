#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "flow_testing.h"

namespace velo::flow {
namespace {

std::string error_of(const std::string& policy, const PolicyConfig& config) {
    std::string error;
    EXPECT_EQ(make_policy(policy, config, &error), nullptr);
    return error;
}

void expect_mentions(const std::string& text, const std::vector<std::string>& parts) {
    for (const std::string& part : parts) EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(PolicyTable, ListsEveryPolicyOnce) {
    const std::vector<std::string_view> names = policy_names();
    EXPECT_EQ(std::set<std::string_view>(names.begin(), names.end()).size(), names.size());
    for (std::string_view known :
         {"none", "static", "dynamic", "rnr", "mvapich_static", "mvapich_dynamic", "lazy"})
        EXPECT_EQ(std::count(names.begin(), names.end(), known), 1) << known;
}

TEST(PolicyTable, MakesEveryPolicyItLists) {
    for (std::string_view name : policy_names()) {
        const auto policy = open_policy(std::string(name), config_of(3, 12, 2), 1);
        ASSERT_NE(policy, nullptr);
        EXPECT_EQ(policy->name(), name);
        EXPECT_EQ(policy->violation(), "");
    }
}

TEST(PolicyTable, HasExtensionsOfThePoliciesThatNeedThem) {
    for (std::string_view name : policy_names()) {
        const auto policy = open_policy(std::string(name), config_of(3, 12, 2), 1);
        const Extensions has = policy->extensions();
        EXPECT_EQ(has.requests != nullptr, name == "dynamic") << name;
        EXPECT_EQ(has.backlog != nullptr, name == "mvapich_dynamic") << name;
        EXPECT_EQ(has.refusal != nullptr, name == "rnr") << name;
        EXPECT_EQ(has.contact != nullptr, name == "lazy") << name;
    }
}

TEST(PolicyTable, TellsTheParametersThatAPolicyGoesBy) {
    PolicyConfig config = config_of(3, 12, 2);
    config.preposted_buffers = 8;
    config.initial_buffers = 4;
    config.lazy_slots = 16;
    config.lazy_peers = 2;
    for (const auto& [policy, beginning] : {std::pair{"rnr", "8 buffers per peer, refused packets are held "},
                                            {"mvapich_static", "8 buffers per peer, credit messages from 5 freed ones on"},
                                            {"mvapich_dynamic", "4 to 8 buffers per peer of "},
                                            {"lazy", "16 data slots for 2 active peers each way, "}}) {
        const std::string text = parameters_text(policy, config);
        EXPECT_TRUE(text.starts_with(beginning)) << text;
        EXPECT_EQ(text.find("slots per peer"), std::string::npos) << text;
    }
    EXPECT_NE(parameters_text("static", config).find("slots per peer"), std::string::npos);
}

TEST(PolicyTable, RefusesAnUnknownNameAndListsTheKnownOnes) {
    expect_mentions(error_of("bananas", config_of(3, 12, 2)),
                    {"btl_velo_flow_control", "bananas", "none", "static", "dynamic"});
    EXPECT_EQ(initial_credit("bananas", config_of(3, 12, 2), 0), 0U);
    EXPECT_EQ(minimum_data_slots("bananas", 3, 2), 0U);
}

TEST(Configuration, NeedsBetween1And255CreditSlots) {
    for (std::uint32_t n : {0U, 256U})
        for (std::string_view name : policy_names())
            expect_mentions(error_of(std::string(name), config_of(3, 3000, n)),
                            {"btl_velo_credit_slots", std::to_string(n), "1", "255"});
}

TEST(Configuration, NeedsADataSlotForEachCreditSlotUnderDynamic) {
    const std::string error = error_of("dynamic", config_of(5, 9, 2));

    // 10 data slots and 2 credit slots for each of 5 peers.
    expect_mentions(error, {"btl_velo_slots_per_peer", "btl_velo_credit_slots=2", "at least 4", "dynamic"});
    EXPECT_NE(open_policy("dynamic", config_of(5, 10, 2), 2), nullptr);
}

TEST(Configuration, NeedsADataSlotForEachPeerUnderStatic) {
    expect_mentions(error_of("static", config_of(5, 4, 2)),
                    {"btl_velo_slots_per_peer", "at least 3", "static"});
    EXPECT_NE(open_policy("static", config_of(5, 5, 2), 1), nullptr);
}

TEST(Configuration, KeepsEveryCountWithin16Bits) {
    expect_mentions(error_of("static", config_of(1, 65536, 2)), {"btl_velo_slots_per_peer", "65535"});
    expect_mentions(error_of("dynamic", config_of(1, 65534, 2)), {"btl_velo_slots_per_peer", "65533"});
    EXPECT_NE(open_policy("static", config_of(1, 65535, 2), 1), nullptr);
    EXPECT_NE(open_policy("dynamic", config_of(1, 65533, 2), 2), nullptr);
}

TEST(Configuration, AnEvenShareMayBeMoreThanTheIntendedMaximum) {
    PolicyConfig config = config_of(2, 21, 2);
    config.intended_max = 5;
    const auto policy = open_policy("dynamic", config, 2);
    EXPECT_EQ(policy->intended(0), 11U);
    EXPECT_EQ(policy->intended(1), 10U);
}

TEST(Configuration, RefusesAMailboxOfMoreSlotsThanCanBeCounted) {
    expect_mentions(error_of("static", config_of(65535, 65535U * 65000U, 2)), {"btl_velo_slots_per_peer"});
}

TEST(Configuration, NeedsSomebodyToTalkTo) {
    expect_mentions(error_of("static", config_of(0, 0, 2)), {"btl_velo_spare_peers"});
}

TEST(EvenShare, GivesTheRemainderToTheLowestPeers) {
    const PolicyConfig config = config_of(4, 14, 2);
    EXPECT_EQ(config.even_share(0), 4U);
    EXPECT_EQ(config.even_share(1), 4U);
    EXPECT_EQ(config.even_share(2), 3U);
    EXPECT_EQ(config.even_share(3), 3U);
}

TEST(EvenShare, IsTheSameForBothEndsOfAPair) {
    const PolicyConfig config = config_of(4, 14, 2);
    const auto receiver = open_policy("static", config, 0);
    for (PeerIndex q = 0; q < 4; ++q)
        EXPECT_EQ(initial_credit("static", config, q), receiver->peer(q).current);
    const auto dynamic = open_policy("dynamic", config, 0);
    for (PeerIndex q = 0; q < 4; ++q)
        EXPECT_EQ(initial_credit("dynamic", config, q), dynamic->peer(q).current);
}

TEST(SparePeers, OwnTheFloorBesideTheDataRegion) {
    PolicyConfig config = config_of(2, 20, 3);
    config.spare_peers = 2;

    EXPECT_EQ(config.total_data_slots(), 26U);
    EXPECT_EQ(config.mailbox_slots(), 26U + 4 * 3);
    for (const char* name : {"static", "dynamic"}) {
        const auto policy = open_policy(name, config, 0);
        EXPECT_EQ(policy->intended(0), 10U);
        EXPECT_EQ(policy->intended(2), 3U);
        EXPECT_EQ(policy->peer(3).current, 3U);
        EXPECT_EQ(initial_credit(name, config, 3), 3U);
        EXPECT_EQ(policy->violation(), "");
    }
}

TEST(SparePeers, StartOnTheNullListUnderDynamic) {
    PolicyConfig config = config_of(2, 20, 3);
    config.spare_peers = 1;
    const DynamicPolicy policy(config);

    EXPECT_EQ(policy.level(0), DynamicPolicy::Level::kLow);
    EXPECT_EQ(policy.level(1), DynamicPolicy::Level::kLow);
    EXPECT_EQ(policy.level(2), DynamicPolicy::Level::kNull);
}

TEST(SparePeers, MayBeTheOnlyPeers) {
    PolicyConfig config = config_of(0, 0, 2);
    config.spare_peers = 3;
    for (std::string_view name : policy_names())
        EXPECT_NE(open_policy(std::string(name), config, 2), nullptr);
}

TEST(NonePolicy, CountsNothing) {
    const auto policy = open_policy("none", config_of(2, 4, 1), 0);
    Recorder out;

    policy->take(0, 1000);
    policy->data_retrieved(1, out);
    policy->credit_received(1, 5);

    EXPECT_FALSE(policy->limited());
    EXPECT_EQ(policy->credits(0), UINT32_MAX);
    EXPECT_EQ(policy->piggyback(1, out), 0U);
    EXPECT_EQ(policy->intended(0), 0U);
    EXPECT_EQ(out.take(), std::vector<Sent>{});
}

}  // namespace
}  // namespace velo::flow
