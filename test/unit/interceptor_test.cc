// Packets that are delayed or refused change nothing that a user could see; packets that are lost, which no
// fabric of Velo's loses, take their messages along and nothing else.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <tuple>
#include <vector>

#include "engine_party.h"

namespace velo::test {
namespace {

constexpr std::size_t kProcesses = 3, kMessages = 60;

class Intercepted {
 public:
    explicit Intercepted(const std::string& faults) { setenv("VELO_INTERCEPT", faults.c_str(), 1); }
    ~Intercepted() { unsetenv("VELO_INTERCEPT"); }
};

PartyConfig config_of(const char* policy, std::size_t ranks_per_node = 0) {
    PartyConfig config;
    config.size = kProcesses;
    config.flow_control = policy;
    config.ranks_per_node = ranks_per_node;
    return config;
}

std::string contents(std::size_t from, std::size_t to, std::size_t index) {
    constexpr std::size_t kSizes[] = {0, 8, 30, 54, 55, 56, 57, 119, 120, 500, 2000, 9000};
    std::string text =
        pattern(kSizes[(index * 5 + from + to) % std::size(kSizes)], static_cast<unsigned>(index));
    return std::to_string(index) + ":" + text;
}

void send_to_all(Party& party) {
    for (std::size_t index = 0; index < kMessages; ++index) {
        for (std::size_t from = 0; from < kProcesses; ++from)
            for (std::size_t to = 0; to < kProcesses; ++to)
                if (from != to)
                    party.send(from, to, static_cast<std::uint8_t>(from), contents(from, to, index));
        velo_progress(party[index % kProcesses].engine);
    }
}

// Longer than any delay.
void settle(Party& party) {
    for (int idle = 0; idle < 40;) idle = party.step() == 0 ? idle + 1 : 0;
}

// Of what the engines say at their end: "12 delayed" in all of them together.
std::uint64_t counted(Party& party, const std::string& what) {
    std::uint64_t sum = 0;
    for (std::size_t rank = 0; rank < party.size(); ++rank) {
        velo_engine_close(party[rank].engine);
        party[rank].engine = nullptr;
        for (const std::string& line : party[rank].log) {
            if (line.find("intercepted: ") != 0) continue;
            const std::size_t end = line.find(" " + what), begin = line.rfind(' ', end - 1) + 1;
            sum += std::stoull(line.substr(begin, end - begin));
        }
    }
    return sum;
}

using Choice = std::tuple<std::string, unsigned>;

class InterceptorTest : public ::testing::TestWithParam<Choice> {
 protected:
    static const std::string& policy() { return std::get<0>(GetParam()); }
    static std::string seed() { return "seed=" + std::to_string(std::get<1>(GetParam())); }
};

INSTANTIATE_TEST_SUITE_P(Interceptor, InterceptorTest,
                         ::testing::Combine(::testing::ValuesIn(policies()), ::testing::Values(1U, 2U, 3U)),
                         [](const auto& info) {
                             return std::get<0>(info.param) + "_" + std::to_string(std::get<1>(info.param));
                         });

TEST_P(InterceptorTest, what_is_delayed_or_refused_arrives_whole_and_in_order) {
    const Intercepted faults(seed() + ",delay_out=0.2,delay_in=0.1,refuse_out=0.3");
    const bool may_refuse = policy() == "none" || policy() == "rnr";
    for (const std::size_t ranks_per_node : {0, 2}) {
        Party party(config_of(policy().c_str(), ranks_per_node));
        send_to_all(party);
        settle(party);
        EXPECT_EQ(party.queued(), party.completed());
        for (std::size_t to = 0; to < kProcesses; ++to) {
            ASSERT_TRUE(party[to].fatal.empty()) << party[to].fatal.front();
            ASSERT_EQ(party[to].received.size(), (kProcesses - 1) * kMessages);
            std::size_t next[kProcesses] = {};
            for (const Received& message : party[to].received)
                ASSERT_TRUE(message.data == contents(message.tag, to, next[message.tag]++));
        }
        for (std::size_t rank = 0; rank < party.size(); ++rank) EXPECT_TRUE(party[rank].gone.empty());
        const std::uint64_t refused = counted(party, "refused");
        EXPECT_EQ(refused > 0, may_refuse || ranks_per_node > 0);
    }
}

TEST_P(InterceptorTest, packets_are_really_delayed) {
    const Intercepted faults(seed() + ",delay_out=0.2");
    PartyConfig each_in_packets = config_of(policy().c_str());
    each_in_packets.by_reference = "never";
    Party party(each_in_packets);
    send_to_all(party);
    settle(party);
    EXPECT_GT(counted(party, "delayed"), 20U);
}

// No fabric of Velo's loses packets, and no message has a number: of longer ones a part would be missing.
TEST_P(InterceptorTest, a_lost_packet_takes_its_own_message_along_and_no_other) {
    for (const char* where : {",drop_out=0.03", ",drop_in=0.03"}) {
        const Intercepted faults(seed() + where);
        PartyConfig each_in_packets = config_of(policy().c_str());
        each_in_packets.by_reference = "never";  // a batch would take several along
        Party party(each_in_packets);
        std::size_t sent = 0, received = 0;
        for (std::size_t index = 0; index < 5 * kMessages; ++index) {
            for (std::size_t to = 1; to < kProcesses; ++to, ++sent)
                party.send(0, to, 0, "message " + std::to_string(index));
            party.step();
        }
        settle(party);
        for (std::size_t to = 1; to < kProcesses; ++to) {
            std::size_t next = 0;
            for (const Received& message : party[to].received) {
                const std::size_t index = std::stoul(message.data.substr(sizeof "message"));
                EXPECT_EQ(message.data, "message " + std::to_string(index));
                EXPECT_GE(index, next);
                next = index + 1;
                ++received;
            }
            EXPECT_TRUE(party[to].fatal.empty());
        }
        // Of those that a lost credit holds up, none has disappeared either.
        const std::size_t waiting = party.queued() - party.completed();
        const std::uint64_t dropped = counted(party, "dropped");
        EXPECT_GT(dropped, 0U);
        EXPECT_LE(received + waiting, sent);
        EXPECT_GE(received + waiting + dropped, sent);
    }
}

TEST(InterceptorSettings, that_say_nothing_sensible_are_named) {
    for (const char* wrong :
         {"drop_out", "drop_out=2", "drop_out=-1", "drop=0.5", "seed=x", "drop_in=", "drop_in=0.1x"}) {
        const Intercepted faults(std::string("seed=1,") + wrong);
        velo_config config = velo_default_config();
        config.backing_directory = "/dev/shm";
        velo_engine* engine = nullptr;
        char error[512] = "";
        EXPECT_NE(velo_engine_open(&config, &engine, error, sizeof error), VELO_OK);
        EXPECT_NE(std::string(error).find(wrong), std::string::npos) << error;
        EXPECT_NE(std::string(error).find("VELO_INTERCEPT"), std::string::npos) << error;
    }
}

TEST(InterceptorSettings, are_none_by_default) {
    Party party(config_of("dynamic"));
    send_to_all(party);
    party.settle();
    for (std::size_t rank = 0; rank < party.size(); ++rank) {
        velo_engine_close(party[rank].engine);
        party[rank].engine = nullptr;
        for (const std::string& line : party[rank].log)
            EXPECT_EQ(line.find("intercepted"), std::string::npos);
    }
}

}  // namespace
}  // namespace velo::test
