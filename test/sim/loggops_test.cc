// LogGOPSim's machine: its numbers, and what it does not say.
#include "machine/loggops.h"

#include <gtest/gtest.h>

#include <bit>
#include <stdexcept>
#include <string>

#include "collectives/algorithms/collectives.h"

namespace velo::sim {
namespace {

using Times = std::vector<std::uint64_t>;

goal::Program read(const std::string& text) {
    std::string error;
    auto program = goal::read_program(text, &error);
    EXPECT_TRUE(program) << error;
    return program ? std::move(*program) : goal::Program();
}

// As LogGOPSim's generator of schedules writes a binomial reduction: the farthest child last, and sends
// first.
std::string reduction(std::uint32_t size, std::uint64_t bytes) {
    std::string text = "num_ranks " + std::to_string(size) + "\n";
    const std::string size_of = std::to_string(bytes) + "b ";
    for (std::uint32_t rank = 0; rank < size; ++rank) {
        text += "rank " + std::to_string(rank) + " {\n";
        std::string requirements;
        if (rank > 0)
            text += "s: send " + size_of + "to " + std::to_string(rank - std::bit_floor(rank)) + "\n";
        for (std::uint32_t mask = 1; mask < size; mask <<= 1) {
            if (mask <= rank || rank + mask >= size) continue;
            const std::string label = "r" + std::to_string(mask);
            text += label + ": recv " + size_of + "from " + std::to_string(rank + mask) + "\n";
            if (rank > 0) requirements += "s requires " + label + "\n";
        }
        text += requirements + "}\n";
    }
    return text;
}

// The example of LogGOPSim's README.
TEST(LogGops, GivesTheTimesOfTheReadmeOfLogGOPSim) {
    const std::string text = reduction(8, 1024);
    const LogGopsOutcome outcome = run_loggops(read(text), {});
    EXPECT_EQ(outcome.end, (Times{34914, 24776, 13138, 13138, 1500, 1500, 1500, 1500}));
    EXPECT_EQ(outcome.events, 21U);
    EXPECT_TRUE(outcome.complete());
}

// The numbers from here on are what LogGOPSim prints of the same files (revision 76451de, g++ 12).
constexpr const char* kMixed =
    "num_ranks 3\n"
    "rank 0 {\na: send 70000b to 1 tag 4\nb: calc 5000 cpu 1\nc: recv 8b from -1 tag -1\nc irequires a\n"
    "d: calc 300\nd requires a\nd requires c\n}\n"
    "rank 1 {\na: calc 20000\nb: recv 70000b from 0 tag 4\nb requires a\nc: send 8b to 0 tag 9 nic 1\n"
    "c irequires b\n}\n"
    "rank 2 {\na: send 100b to 2\nb: recv 100b from 2\nc: calc 7\nc requires b\n}\n";

TEST(LogGops, GivesTheTimesOfLogGOPSimForRendezvousCalculationsAndWildcards) {
    const std::string text = kMixed;
    const goal::Program program = read(text);
    EXPECT_EQ(run_loggops(program, {}).end, (Times{447336, 442994, 6101}));
    LogGops other;
    other.L = 1200;
    other.o = 300;
    other.g = 50;
    other.G = 1;
    other.O = 2;
    other.S = 10;
    EXPECT_EQ(run_loggops(program, other).end, (Times{162412, 160612, 2005}));
}

// More than 16 operations that are ready at once, where the order of std::sort shows.
TEST(LogGops, GivesTheTimesOfLogGOPSimForTwentyRanksThatExchangeAll) {
    std::string text = "num_ranks 20\n";
    for (int rank = 0; rank < 20; ++rank) {
        text += "rank " + std::to_string(rank) + " {\n";
        for (int step = 1; step < 20; ++step) {
            text += "send 1000b to " + std::to_string((rank + step) % 20) + "\n";
            text += "recv 1000b from " + std::to_string((rank + 20 - step) % 20) + "\n";
        }
        text += "}\n";
    }
    const LogGopsOutcome outcome = run_loggops(read(text), {});
    EXPECT_EQ(*std::ranges::max_element(outcome.end), 218386U);
}

TEST(LogGops, SaysWhatLogGOPSimDoesNot) {
    const std::string lonely = "num_ranks 2\nrank 0 {\nrecv 8b from 1\n}\nrank 1 {\nsend 8b to 0 tag 1\n}\n";
    const LogGopsOutcome outcome = run_loggops(read(lonely), {});
    EXPECT_EQ(outcome.unmatched, 1U);
    EXPECT_EQ(outcome.waiting, 1U);
    EXPECT_EQ(outcome.unfinished, std::vector<std::uint32_t>{0});
    EXPECT_FALSE(outcome.complete());
}

TEST(LogGops, RefusesTimesBelowZero) {
    const std::string empty =
        "num_ranks 2\nrank 0 {\nsend 0b to 1\nsend 0b to 1\n}\nrank 1 {\nrecv 0b from 0\nrecv 0b from 0\n}\n";
    LogGops backwards;
    backwards.o = 1;
    backwards.O = 11;
    EXPECT_THROW(run_loggops(read(empty), backwards), std::runtime_error);
    EXPECT_TRUE(run_loggops(read(empty), {}).complete());
}

TEST(LogGops, SkewAndNoiseDelayByWhatTheySayAndASeedIsARun) {
    const std::string text = "num_ranks 1\nrank 0 {\na: calc 10000\n}\n";
    LogGops p;
    p.skew = 1000;
    const std::uint64_t begun = run_loggops(read(text), p).end[0] - 10000;
    EXPECT_LE(begun, 1000U);
    EXPECT_EQ(run_loggops(read(text), p).end[0] - 10000, begun);
    p.skew = 0;
    // Ten interruptions of 7 ns in any 10000 ns.
    p.noise = 7;
    p.noise_period = 1000;
    for (p.seed = 1; p.seed < 50; ++p.seed) EXPECT_EQ(run_loggops(read(text), p).end[0], 10070U);
}

TEST(LogGops, LocalOperationsCostWhatTheyAreSaidTo) {
    goal::collectives::Request request;
    request.bytes = 1000;
    goal::Program program;
    std::string error;
    program.schedules.push_back(
        *goal::compile(goal::collectives::find("scan", "linear")->make(request), &error));
    LogGops p;
    p.local_ns_per_byte = 0.5;
    EXPECT_EQ(run_loggops(program, p).end[0], 500U);  // one copy
}

}  // namespace
}  // namespace velo::sim
