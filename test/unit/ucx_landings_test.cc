// Transfers that come from other nodes in fragments, as far as it needs no network: rubbish, order,
// completion.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <vector>

#include "fabric/ucx/landings.h"

namespace velo::fabric::ucx {
namespace {

constexpr std::size_t kTotal = 100, kGuard = 64;
// Of the engine, with every fragment.
constexpr std::array kHeader = {std::byte{7}, std::byte{8}, std::byte{9}};

Fragment fragment_at(std::uint64_t offset, std::uint32_t id = 1, std::uint64_t total = kTotal) {
    return Fragment{5, 77, total, offset, id, 0};
}

// Memory with untouchable bytes on both sides.
struct Memory {
    std::vector<std::byte> bytes = std::vector<std::byte>(kTotal + 2 * kGuard);
    std::byte* start() { return bytes.data() + kGuard; }
    bool guards_hold() const {
        auto zero = [](std::byte b) { return b == std::byte{0}; };
        return std::all_of(bytes.begin(), bytes.begin() + kGuard, zero) &&
               std::all_of(bytes.end() - kGuard, bytes.end(), zero);
    }
};

std::vector<std::byte> counted(std::size_t first, std::size_t count) {
    std::vector<std::byte> data(count);
    for (std::size_t i = 0; i < count; ++i) data[i] = static_cast<std::byte>(first + i + 1);
    return data;
}

TEST(UcxLandings, fragments_in_any_order_complete_once_and_with_every_byte_in_place) {
    Landings landings;
    Memory memory;
    int placed = 0, completed = 0;
    for (std::size_t offset : {60, 0, 90, 30}) {
        const auto data = counted(offset, offset == 90 ? 10 : 30);
        bool complete;
        ASSERT_EQ(
            landings.arrive(
                fragment_at(offset), kHeader, data, [&] { return ++placed, memory.start(); }, &complete),
            nullptr);
        completed += complete;
        EXPECT_EQ(complete, offset == 30);
    }
    EXPECT_EQ(placed, 1);
    EXPECT_EQ(completed, 1);
    EXPECT_EQ(std::memcmp(memory.start(), counted(0, kTotal).data(), kTotal), 0);
    EXPECT_TRUE(memory.guards_hold());
}

TEST(UcxLandings, transfers_do_not_disturb_each_other) {
    Landings landings;
    Memory one, other;
    bool complete;
    EXPECT_EQ(landings.arrive(
                  fragment_at(0, 1), kHeader, counted(0, 50), [&] { return one.start(); }, &complete),
              nullptr);
    EXPECT_EQ(landings.arrive(
                  fragment_at(50, 2), kHeader, counted(50, 50), [&] { return other.start(); }, &complete),
              nullptr);
    EXPECT_FALSE(complete);
    EXPECT_EQ(landings.arrive(
                  fragment_at(50, 1), kHeader, counted(50, 50), [] { return nullptr; }, &complete),
              nullptr);
    EXPECT_TRUE(complete);
    EXPECT_EQ(one.start()[99], std::byte{100});
    EXPECT_EQ(other.start()[0], std::byte{0});
}

TEST(UcxLandings, a_transfer_that_nobody_has_asked_for_is_refused) {
    Landings landings;
    bool complete = true;
    EXPECT_STREQ(landings.arrive(
                     fragment_at(0), kHeader, counted(0, 10), [] { return nullptr; }, &complete),
                 "a bulk transfer that nobody has asked for");
    EXPECT_FALSE(complete);
}

TEST(UcxLandings, fragments_that_leave_their_transfer_are_refused_before_anything_is_placed) {
    Landings landings;
    auto never = []() -> std::byte* {
        ADD_FAILURE() << "placed";
        return nullptr;
    };
    bool complete;
    EXPECT_NE(landings.arrive(fragment_at(95), kHeader, counted(0, 10), never, &complete), nullptr);
    EXPECT_NE(landings.arrive(fragment_at(101), kHeader, counted(0, 1), never, &complete), nullptr);
    EXPECT_NE(landings.arrive(fragment_at(~0ULL), kHeader, counted(0, 2), never, &complete), nullptr);
    EXPECT_NE(landings.arrive(fragment_at(0), kHeader, {}, never, &complete), nullptr);
}

TEST(UcxLandings, a_changed_total_and_more_bytes_than_announced_are_refused) {
    Landings landings;
    Memory memory;
    auto place = [&] { return memory.start(); };
    bool complete;
    ASSERT_EQ(landings.arrive(fragment_at(0), kHeader, counted(0, 60), place, &complete), nullptr);
    EXPECT_NE(landings.arrive(fragment_at(60, 1, kTotal + 30), kHeader, counted(0, 30), place, &complete),
              nullptr);
    EXPECT_NE(landings.arrive(fragment_at(0), kHeader, counted(0, 60), place, &complete), nullptr);
    EXPECT_FALSE(complete);
}

TEST(UcxLandings, a_fragment_with_another_header_for_the_receiver_is_refused) {
    const std::array longer = {std::byte{7}, std::byte{8}, std::byte{9}, std::byte{0}};
    const std::array other = {std::byte{7}, std::byte{8}, std::byte{0}};
    const std::span<const std::byte> wrong[] = {std::span(kHeader).first(2), {}, longer, other};
    for (const std::span<const std::byte> header : wrong) {
        Landings landings;
        Memory memory;
        auto place = [&] { return memory.start(); };
        bool complete;
        ASSERT_EQ(landings.arrive(fragment_at(0), kHeader, counted(0, 60), place, &complete), nullptr);
        EXPECT_NE(landings.arrive(fragment_at(60), header, counted(60, 40), place, &complete), nullptr);
        EXPECT_FALSE(complete);
        EXPECT_EQ(memory.start()[60], std::byte{0});
    }
}

// Random headers, many of them near the truth: nothing may be written outside of the memory.
TEST(UcxLandings, rubbish_writes_nothing_outside) {
    std::mt19937_64 random(20261);
    int accepted = 0, refused = 0, completed = 0;
    for (int round = 0; round < 5000; ++round) {
        Landings landings;
        Memory memory;
        for (int step = 0; step < 8; ++step) {
            Fragment fragment = fragment_at(random() % 110, random() % 2);
            auto* raw = reinterpret_cast<unsigned char*>(&fragment);
            if (random() % 4 == 0)
                raw[random() % sizeof fragment] ^= static_cast<unsigned char>(1U << random() % 8);
            // As the engine: memory of that size is there for this transfer, or none.
            auto place = [&]() -> std::byte* { return fragment.total == kTotal ? memory.start() : nullptr; };
            bool complete;
            const char* fault =
                landings.arrive(fragment, kHeader, counted(0, random() % 60), place, &complete);
            (fault == nullptr ? accepted : refused)++;
            completed += complete;
            ASSERT_TRUE(memory.guards_hold());
            ASSERT_FALSE(fault != nullptr && complete);
        }
    }
    EXPECT_GT(accepted, 1000);
    EXPECT_GT(refused, 1000);
    EXPECT_GT(completed, 50);
}

}  // namespace
}  // namespace velo::fabric::ucx
