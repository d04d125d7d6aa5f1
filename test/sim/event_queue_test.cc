#include "core/event_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "core/random.h"

namespace velo::sim {
namespace {

TEST(EventQueue, TakesEventsInTheOrderOfTimeAndThenOfInsertion) {
    Random random(1);
    EventQueue queue;
    // (time, number) of what is in the queue; taking must follow a stable sort by time.
    std::vector<std::pair<Time, std::uint32_t>> expected;
    std::uint32_t number = 0;
    for (int round = 0; round < 20000; ++round) {
        for (std::uint32_t i = random.below(4); i > 0; --i) {
            const Time time = queue.now() + (random.below(3) == 0 ? 0 : random.below(1U << random.below(28)));
            queue.push(time, 1, 2, number);
            expected.emplace_back(time, number++);
        }
        if (queue.empty()) continue;
        const auto first = std::min_element(expected.begin(), expected.end());
        const Event event = queue.pop();
        ASSERT_EQ(event.time, first->first);
        ASSERT_EQ(event.train, first->second);
        ASSERT_EQ(queue.now(), event.time);
        expected.erase(first);
    }
    EXPECT_EQ(queue.size(), expected.size());
}

TEST(EventQueue, KeepsKindSubjectAndTrain) {
    EventQueue queue;
    queue.push(5, 15, 0xfffffff, 0xfffffffe);
    const Event event = queue.pop();
    EXPECT_EQ(event.kind, 15U);
    EXPECT_EQ(event.subject, 0xfffffffU);
    EXPECT_EQ(event.train, 0xfffffffeU);
}

}  // namespace
}  // namespace velo::sim
