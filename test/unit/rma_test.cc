// RMA through the engine: by single copy and through the mailbox, any size, atomics, bad requests.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "engine_party.h"
#include "rma/atomic.h"

namespace velo::test {
namespace {

class RmaTest : public ::testing::TestWithParam<const char*> {
 protected:
    RmaTest() : party_(config()) {}

    static PartyConfig config() {
        PartyConfig config;
        config.single_copy = GetParam();
        config.slots_per_peer = 64;
        return config;
    }

    Party party_;
};

INSTANTIATE_TEST_SUITE_P(EveryMechanism, RmaTest, ::testing::Values("copy", "auto"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(RmaTest, atomics_return_the_old_value_and_change_the_word) {
    alignas(8) std::int64_t word = 10;
    alignas(4) std::int32_t half[2] = {7, 99};
    auto run = [&](velo_atomic operation, unsigned width, void* target, std::uint64_t operand,
                   std::uint64_t compare) {
        Outcome outcome;
        EXPECT_EQ(velo_atomic_start(party_[0].engine, party_[0].peers[1], operation, width,
                                    address_of(target), operand, compare, Outcome::done, &outcome),
                  VELO_QUEUED);
        party_.settle();
        EXPECT_EQ(outcome.calls, 1);
        return outcome.result;
    };
    EXPECT_EQ(run(VELO_ATOMIC_ADD, 8, &word, 5, 0), 10U);
    EXPECT_EQ(run(VELO_ATOMIC_MIN, 8, &word, static_cast<std::uint64_t>(-3), 0), 15U);
    EXPECT_EQ(word, -3);
    EXPECT_EQ(run(VELO_ATOMIC_MAX, 8, &word, 4, 0), static_cast<std::uint64_t>(-3));
    EXPECT_EQ(run(VELO_ATOMIC_CSWAP, 8, &word, 50, 5), 4U);
    EXPECT_EQ(word, 4) << "compare failed: unchanged";
    EXPECT_EQ(run(VELO_ATOMIC_CSWAP, 8, &word, 50, 4), 4U);
    EXPECT_EQ(run(VELO_ATOMIC_SWAP, 8, &word, 0xff, 0), 50U);
    run(VELO_ATOMIC_AND, 8, &word, 0x3c, 0);
    run(VELO_ATOMIC_OR, 8, &word, 0x41, 0);
    run(VELO_ATOMIC_XOR, 8, &word, 0x01, 0);
    EXPECT_EQ(word, 0x7c);
    EXPECT_EQ(run(VELO_ATOMIC_ADD, 4, half, 1, 0), 7U);
    EXPECT_EQ(half[0], 8);
    EXPECT_EQ(half[1], 99) << "the neighbour stays";
}

TEST_P(RmaTest, impossible_atomics_are_refused_at_once) {
    alignas(8) std::int64_t word = 0;
    Outcome outcome;
    auto start = [&](unsigned width, std::uint64_t address) {
        return velo_atomic_start(party_[0].engine, party_[0].peers[1], VELO_ATOMIC_ADD, width, address, 1, 0,
                                 Outcome::done, &outcome);
    };
    EXPECT_EQ(start(8, address_of(&word) + 1), VELO_ERR_UNSUPPORTED);
    EXPECT_EQ(start(2, address_of(&word)), VELO_ERR_UNSUPPORTED);
    EXPECT_EQ(start(8, 0), VELO_ERR_UNSUPPORTED);
    EXPECT_EQ(outcome.calls, 0);
}

TEST(SingleCopyTest, the_kernels_refusal_of_an_address_is_an_error_and_no_callback) {
    PartyConfig config;
    config.single_copy = "cma";
    Party party(config);
    char local[16];
    Outcome outcome;
    EXPECT_EQ(velo_get(party[0].engine, party[0].peers[1], local, 16, sizeof local, Outcome::done, &outcome),
              VELO_ERR_REMOTE);
    EXPECT_EQ(outcome.calls, 0);
    const auto told = [&] {
        return std::count_if(party[0].log.begin(), party[0].log.end(), [](const std::string& line) {
            return line.find("with rank 101 on ") != std::string::npos &&
                   line.find("has failed: ") != std::string::npos;
        });
    };
    EXPECT_EQ(told(), 1);
    velo_get(party[0].engine, party[0].peers[1], local, 16, sizeof local, Outcome::done, &outcome);
    EXPECT_EQ(told(), 1) << "it is said once";
}

TEST(CloseTest, an_engine_with_transfers_under_way_closes_without_a_leak) {
    PartyConfig config;
    config.single_copy = "copy";
    std::string remote(1 << 20, 'r'), local(1 << 20, 'l');
    Outcome outcome;
    Party party(config);
    velo_get(party[0].engine, party[0].peers[1], local.data(), address_of(remote.data()), remote.size(),
             Outcome::done, &outcome);
    party.step();
    EXPECT_EQ(outcome.calls, 0);
}

}  // namespace
}  // namespace velo::test
