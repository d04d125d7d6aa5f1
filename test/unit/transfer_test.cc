// Dual copy, and sleeping on a mailbox: the parts, and the engine with them.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine_party.h"
#include "fabric/shm/segment.h"
#include "platform/doze.h"
#include "rma/dual_copy.h"
#include "rma/share.h"

namespace velo::test {
namespace {

using rma::Share;

TEST(ShareTest, two_threads_claim_every_byte_exactly_once) {
    constexpr std::uint64_t kBytes = 3 * 1024 * 1024 + 777;
    for (std::uint32_t generation = 1; generation < 60; ++generation) {
        fabric::shm::ShareCell cell{};
        std::vector<std::uint8_t> touched(kBytes);
        std::vector<Share::Range> all, of_peer;
        Share mine(&cell, generation, kBytes);
        mine.open();
        std::thread peer([&] {
            Share theirs(&cell, generation, kBytes);
            while (auto range = theirs.claim_back()) {
                std::memset(&touched[range->offset], 1, range->bytes);
                of_peer.push_back(*range);
                theirs.finish(*range);
            }
        });
        std::uint64_t own = 0;
        while (auto range = mine.claim_front()) {
            std::memset(&touched[range->offset], 1, range->bytes);
            all.push_back(*range);
            own += range->bytes;
        }
        std::uint64_t theirs = mine.peers_bytes();
        EXPECT_EQ(own + theirs, kBytes);
        while (mine.helped() != theirs) std::this_thread::yield();
        peer.join();
        all.insert(all.end(), of_peer.begin(), of_peer.end());
        std::sort(all.begin(), all.end(), [](auto& a, auto& b) { return a.offset < b.offset; });
        std::uint64_t end = 0;
        for (const Share::Range& range : all)
            EXPECT_EQ(range.offset, std::exchange(end, range.offset + range.bytes));
        EXPECT_EQ(end, kBytes);
    }
}

TEST(ShareTest, a_peer_that_comes_after_the_end_or_in_another_generation_gets_nothing) {
    fabric::shm::ShareCell cell{};
    Share first(&cell, 1, 100'000);
    first.open();
    while (first.claim_front()) {
    }
    EXPECT_EQ(first.peers_bytes(), 0U);
    EXPECT_FALSE(Share(&cell, 1, 100'000).claim_back());
    Share second(&cell, 2, 100'000);
    second.open();
    EXPECT_FALSE(first.claim_back());
    EXPECT_FALSE(Share(&cell, 1, 100'000).claim_back());
    EXPECT_TRUE(second.claim_back());
}

TEST(ShareTest, behind_the_last_generation_the_first_one_begins_again) {
    fabric::shm::ShareCell cell{};
    rma::ShareCells cells(&cell);
    const auto next = [&] { return cells.next_generation(0); };
    std::uint32_t last = 0;
    while (last != Share::kGenerations - 1) last = next();
    EXPECT_EQ(rma::generation_of(rma::ticket_of(7, last)), last);
    Share before(&cell, last, 100'000);
    before.open();
    Share after(&cell, next(), 100'000);
    after.open();
    EXPECT_FALSE(before.claim_back());
    EXPECT_TRUE(Share(&cell, rma::generation_of(rma::ticket_of(0, 0)), 100'000).claim_back());
    Share one_more(&cell, next(), 100'000);
    one_more.open();
    EXPECT_FALSE(after.claim_front());
    EXPECT_TRUE(one_more.claim_front());
}

// Who moves which lines decides in whose cache they are the next time.
TEST(ShareTest, when_both_come_at_once_each_moves_the_same_part_every_time_with_few_claims) {
    fabric::shm::ShareCell cell{};
    for (std::uint64_t bytes : {32UL << 10, 256UL << 10, 1UL << 20, 4UL << 20}) {
        for (std::uint32_t generation = 1; generation < 4; ++generation) {
            Share mine(&cell, generation, bytes), theirs(&cell, generation, bytes);
            mine.open();
            std::uint64_t own = 0, claims = 0, end = bytes;
            for (bool left = true; left;) {
                auto front = mine.claim_front();
                // In step with the peer, as if both were equally fast.
                auto back = theirs.claim_back();
                if (front) EXPECT_EQ(front->offset, std::exchange(own, own + front->bytes));
                if (back) EXPECT_EQ(back->offset + back->bytes, std::exchange(end, back->offset));
                claims += (front ? 1 : 0) + (back ? 1 : 0);
                left = front || back;
            }
            EXPECT_EQ(own, bytes / 2 + 8192);
            EXPECT_EQ(end, own);
            EXPECT_LE(claims, 3 + bytes / (128 << 10)) << bytes;
        }
    }
}

TEST(ShareTest, who_has_done_his_part_takes_over_from_a_peer_that_does_not_come) {
    fabric::shm::ShareCell cell{};
    Share mine(&cell, 1, 1 << 20), theirs(&cell, 1, 1 << 20);
    mine.open();
    std::uint64_t own = 0;
    while (own < (3 << 20) / 4) own += mine.claim_front()->bytes;
    std::uint64_t helped = 0;
    while (auto range = theirs.claim_back()) helped += range->bytes;
    EXPECT_GT(helped, 0U);
    EXPECT_EQ(own + helped, 1U << 20);
}

TEST(ShareTest, sizes_beyond_the_counters_use_larger_units) {
    EXPECT_EQ(Share::unit_for(1), 4096U);
    EXPECT_EQ(Share::unit_for(std::uint64_t{4} << 30), 8192U);
    constexpr std::uint64_t kHuge = std::uint64_t{1} << 40;
    fabric::shm::ShareCell cell{};
    Share share(&cell, 7, kHuge);
    share.open();
    auto range = share.claim_back();
    ASSERT_TRUE(range);
    EXPECT_EQ(range->offset + range->bytes, kHuge);
}

// The word is in memory that the peer may write to.
TEST(ShareTest, a_peer_never_has_more_than_all_whatever_it_writes) {
    constexpr std::uint64_t kBytes = 100'000;
    fabric::shm::ShareCell cell{};
    Share share(&cell, 1, kBytes);
    share.open();
    for (const std::uint64_t word : {~std::uint64_t{0}, std::uint64_t{1} << 40 | 0xfffff,
                                     std::uint64_t{1} << 40 | 26, std::uint64_t{1} << 40 | 25}) {
        cell.claims = word;
        EXPECT_FALSE(share.claim_front()) << std::hex << word;
        EXPECT_EQ(share.peers_bytes(), kBytes) << std::hex << word;
    }
    for (std::uint64_t front = 0; front < 30; ++front) {
        cell.claims = std::uint64_t{1} << 40 | front << 20;
        while (const auto range = share.claim_front()) {
            EXPECT_LE(range->offset, kBytes);
            EXPECT_LE(range->bytes, kBytes - range->offset);
        }
    }
}

TEST(DozeTest, a_store_before_or_during_the_sleep_wakes_the_sleeper) {
    std::atomic<std::uint32_t> word{0};
    std::atomic<int> mailbox{0};
    constexpr int kRounds = 300;
    std::thread sleeper([&] {
        for (int round = 1; round <= kRounds; ++round) {
            auto idle = [&] { return mailbox.load(std::memory_order_acquire) < round; };
            while (idle()) platform::doze(word, 20'000'000, idle);
            mailbox.store(-round, std::memory_order_release);
        }
    });
    auto start = std::chrono::steady_clock::now();
    for (int round = 1; round <= kRounds; ++round) {
        mailbox.store(round, std::memory_order_release);
        platform::wake_if_asleep(word);
        while (mailbox.load(std::memory_order_acquire) != -round) std::this_thread::yield();
    }
    sleeper.join();
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20)) << "a wake-up was lost";
}

// What a helper has claimed is waited for, unless it cannot do it.
TEST(DualCopyTest, a_get_is_complete_when_the_part_of_its_helper_is) {
    struct HereMemory final : singlecopy::RemoteMemory {
        int read(void* local, std::uint64_t remote, std::size_t bytes) override {
            std::memcpy(local, reinterpret_cast<const void*>(remote), bytes);
            return 0;
        }
        int write(const void*, std::uint64_t, std::size_t) override { return EPERM; }
    } memory;
    for (bool refused : {false, true}) {
        std::string source = pattern(1 << 20, 1), target(source.size(), '\0');
        rma::ShareCell cell{};
        rma::SharedGet get{0,
                           rma::Share(&cell, 5, source.size()),
                           &memory,
                           reinterpret_cast<std::byte*>(target.data()),
                           reinterpret_cast<std::uint64_t>(source.data()),
                           source.size(),
                           {}};
        get.share.open();
        rma::Share helper(&cell, 5, source.size());
        const auto range = helper.claim_back();
        ASSERT_TRUE(range);
        get.copy_own_part();
        EXPECT_FALSE(get.complete());
        if (refused) {
            helper.give_up();
        } else {
            std::memcpy(target.data() + range->offset, source.data() + range->offset, range->bytes);
            helper.finish(*range);
        }
        EXPECT_TRUE(get.complete());
        EXPECT_EQ(target, source);
    }
}

// Both engines live in this process, so that the peer helps only when it is driven; the contents tell the
// rest.
TEST(DualCopyTest, large_gets_arrive_whole_whoever_has_copied_what) {
    PartyConfig config;
    config.slots_per_peer = 64;
    Party party(config);
    for (unsigned round = 0; round < 40; ++round) {
        std::string source = pattern((4U << 20) + round * 4097, round), target(source.size(), '\0');
        int calls = 0;
        std::thread peer([&] {
            for (int i = 0; i < 2000; ++i) velo_progress(party[1].engine);
        });
        velo_status status = velo_get(
            party[0].engine, party[0].peers[1], target.data(), reinterpret_cast<std::uint64_t>(source.data()),
            source.size(), [](void* count, velo_status, std::uint64_t) { ++*static_cast<int*>(count); },
            &calls);
        EXPECT_GE(status, VELO_OK);
        peer.join();
        for (int i = 0; i < 100'000 && calls == 0; ++i) party.step();
        EXPECT_EQ(calls, 1);
        ASSERT_EQ(target, source) << round;
    }
}

}  // namespace
}  // namespace velo::test
