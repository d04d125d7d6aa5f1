// The doorbell of a mailbox: several threads ring, the owner answers each ring once.
#include "fabric/shm/doorbell.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

namespace velo::test {
namespace {

TEST(DoorbellTest, every_ring_is_answered_and_none_twice) {
    constexpr std::uint32_t kSenders = 130, kRings = 2000;
    std::atomic<std::uint32_t> rings{0};
    std::atomic<std::uint64_t> bits[3] = {};
    fabric::shm::Doorbell owner(&rings, bits, kSenders);
    std::atomic<std::uint32_t> outstanding[kSenders] = {};
    std::vector<std::thread> senders;
    for (std::uint32_t sender : {0U, 63U, 64U, 129U}) {
        senders.emplace_back([&, sender] {
            fabric::shm::Doorbell bell(&rings, bits, kSenders);
            for (std::uint32_t i = 0; i < kRings; ++i) {
                while (outstanding[sender].load() != 0) std::this_thread::yield();
                outstanding[sender] = 1;
                bell.ring(sender);
            }
        });
    }
    std::uint32_t answered = 0;
    auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (answered < 4 * kRings && std::chrono::steady_clock::now() < deadline) {
        int callers = owner.answer([&](std::uint32_t sender) {
            ++answered;
            ASSERT_LT(sender, kSenders);
            EXPECT_EQ(outstanding[sender].exchange(0), 1U) << sender;
        });
        if (callers == 0) std::this_thread::yield();
    }
    EXPECT_EQ(answered, 4 * kRings);
    for (auto& sender : senders) sender.join();
}

}  // namespace
}  // namespace velo::test
