// The numbers that the thesis publishes, from the formulas that Velo uses.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "flow_testing.h"

namespace velo::flow {
namespace {

std::uint32_t formula_a(std::uint32_t quota, std::uint32_t n) {
    return quota / n + 1;
}
std::uint32_t formula_b(std::uint32_t quota, std::uint32_t n) {
    return quota / n;
}

enum class Outcome { kWorks, kDeadlock, kOverflow };

// One static sender that always has more to send, and its receiver. The sender looks at its credit packets
// only when it has no credit left: the worst case for the credit region. Several rounds, event by event.
Outcome run_static_flow(std::uint32_t quota, std::uint32_t n, std::uint32_t threshold) {
    std::uint32_t credit = quota;
    std::uint32_t retrieved = 0;
    for (int round = 0; round < 8; ++round) {
        std::uint32_t data_in_mailbox = credit;
        std::uint32_t credit_packets = 0;
        std::uint32_t credits_back = 0;
        for (credit = 0; data_in_mailbox > 0; --data_in_mailbox) {
            if (++retrieved < threshold) continue;
            if (++credit_packets > n) return Outcome::kOverflow;
            credits_back += retrieved;
            retrieved = 0;
        }
        if (credits_back == 0) return Outcome::kDeadlock;
        credit = credits_back;
    }
    return Outcome::kWorks;
}

TEST(Thresholds, AreThoseOfTable51) {
    struct Row {
        std::uint32_t quota, n, eq51, a, b;
    };
    for (const Row& row :
         {Row{100, 1, 51, 101, 100}, Row{100, 2, 34, 51, 50}, Row{100, 3, 26, 34, 33},
          Row{100, 4, 21, 26, 25}, Row{100, 5, 17, 21, 20}, Row{60, 2, 21, 31, 30}, Row{40, 2, 14, 21, 20},
          Row{20, 2, 7, 11, 10}, Row{10, 2, 4, 6, 5}, Row{3, 2, 2, 2, 1}}) {
        EXPECT_EQ(return_threshold(row.quota, row.n), row.eq51);
        EXPECT_EQ(formula_a(row.quota, row.n), row.a);
        EXPECT_EQ(formula_b(row.quota, row.n), row.b);
    }
}

TEST(Thresholds, OfEquation51NeverDeadlockAndNeverOverflow) {
    for (std::uint32_t n = 1; n <= 8; ++n)
        for (std::uint32_t quota = 1; quota <= 200; ++quota)
            EXPECT_EQ(run_static_flow(quota, n, return_threshold(quota, n)), Outcome::kWorks)
                << "quota " << quota << " n " << n;
}

TEST(Thresholds, OfFormulaADeadlockExactlyWithOneCreditSlot) {
    for (std::uint32_t n = 1; n <= 8; ++n)
        for (std::uint32_t quota = 1; quota <= 200; ++quota)
            EXPECT_EQ(run_static_flow(quota, n, formula_a(quota, n)),
                      n == 1 ? Outcome::kDeadlock : Outcome::kWorks)
                << "quota " << quota << " n " << n;
}

// A quota below n makes no threshold at all: 0.
TEST(Thresholds, OfFormulaBOverflowExactlyWhenTheRestOfTheDivisionReachesTheQuotient) {
    for (std::uint32_t n = 1; n <= 8; ++n)
        for (std::uint32_t quota = n; quota <= 200; ++quota)
            EXPECT_EQ(run_static_flow(quota, n, formula_b(quota, n)),
                      quota % n >= quota / n ? Outcome::kOverflow : Outcome::kWorks)
                << "quota " << quota << " n " << n;
}

TEST(Buffers, ThatStopTheOverheadAreThoseOfTable52) {
    constexpr std::uint32_t kPackets = 37;  // of a 2 KB message
    struct Row {
        std::uint32_t n, slots, smallest;
    };
    for (const Row& row : {Row{1, 75, 74}, Row{2, 57, 57}, Row{3, 52, 52}, Row{4, 50, 50}, Row{5, 49, 49}}) {
        EXPECT_EQ(kPackets * (row.n + 1) / row.n + row.n, row.slots);  // Eq 5.5

        std::uint32_t quota = kPackets;
        while (quota - (return_threshold(quota, row.n) - 1) < kPackets) ++quota;  // Eq 5.3
        EXPECT_EQ(quota + row.n, row.smallest);
    }
}

// Eq 7.2 with 64-byte slots: 64 of them for a peer in static, 16 in dynamic. The table rounds downwards.
TEST(Memory, PerReceiverIsThatOfTable71) {
    struct Row {
        double processes, static_mb, dynamic_mb;
    };
    for (const Row& row :
         {Row{1, 4, 1.14}, Row{4, 16, 4.6}, Row{16, 64, 18.3}, Row{64, 256, 73.3}, Row{256, 1024, 293.5}}) {
        const double processes = row.processes * 1024;
        const double structures_static = 4 * processes + 2;
        const double structures_dynamic = 150 * processes;
        const double mb = 1024 * 1024;

        EXPECT_NEAR((structures_static + 64 * 64 * processes) / mb, row.static_mb, row.static_mb * 0.006);
        EXPECT_NEAR((structures_dynamic + 16 * 64 * processes) / mb, row.dynamic_mb, row.dynamic_mb * 0.006);
    }
}

TEST(Memory, OfTheDynamicPolicyStaysWellBelowThe150BytesOfTheThesis) {
    const auto policy = open_policy("dynamic", config_of(10, 160, 2), 2);

    EXPECT_LE(policy->traits().bytes_per_peer, 96U);
    EXPECT_EQ(policy->traits().bytes_per_peer, 36U);
    EXPECT_EQ(sizeof(PeerFlow), 16U);
}

}  // namespace
}  // namespace velo::flow
