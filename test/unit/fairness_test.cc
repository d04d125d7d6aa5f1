// Seven processes send to one as fast as they can. Each gets its turn equally often here, so that how often
// each is served depends on the flow control alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "engine_party.h"

namespace velo::test {
namespace {

// How much more often the one that is served most may be served than the one that is served least. Windows
// that grow with what has waited, and windows that go around among the senders, make a difference.
double largest_ratio(const std::string& policy) {
    if (policy == "mvapich_dynamic") return 1.5;
    if (policy == "lazy") return 2;
    return 1.1;
}

class FairnessTest : public testing::TestWithParam<std::string> {};

TEST_P(FairnessTest, seven_senders_of_equal_turns_are_served_alike) {
    constexpr std::size_t kSenders = 7, kRounds = 1500, kBytes = 1000, kUnderWay = 4;
    PartyConfig config;
    config.size = kSenders + 1;
    config.flow_control = GetParam().c_str();
    config.slots_per_peer = 64;
    config.preposted_buffers = 64;
    config.lazy_slots = 64;
    Party party(config);
    std::vector<std::size_t> sent(config.size), served(config.size);
    party[0].on_message = [&](const Received& message) { ++served[message.tag]; };
    for (std::size_t round = 0; round < kRounds; ++round) {
        for (std::size_t turn = 0; turn < kSenders; ++turn) {
            // Who is first differs from round to round.
            const std::size_t sender = 1 + (turn + round) % kSenders;
            for (; sent[sender] < served[sender] + kUnderWay; ++sent[sender])
                party.send(sender, 0, static_cast<std::uint8_t>(sender), pattern(kBytes, 0));
            velo_progress(party[sender].engine);
        }
        velo_progress(party[0].engine);
        party[0].received.clear();
    }
    const auto [least, most] = std::minmax_element(served.begin() + 1, served.end());
    std::string counts;
    for (std::size_t sender = 1; sender <= kSenders; ++sender) counts += " " + std::to_string(served[sender]);
    EXPECT_GE(*least, kRounds / 10) << counts;
    EXPECT_LE(static_cast<double>(*most), largest_ratio(GetParam()) * static_cast<double>(*least)) << counts;
    party.settle();
}

INSTANTIATE_TEST_SUITE_P(policies, FairnessTest, testing::ValuesIn(policies()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace velo::test
