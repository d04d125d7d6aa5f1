// Matching against a model that searches lists from the front, and with very many receives at once.
#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <vector>

#include "matching/posted_queue.h"
#include "matching/unexpected_queue.h"

namespace velo::matching {
namespace {

// MPI's rules, word for word.
struct Model {
    struct Entry {
        Key key;
        void* object;
    };

    static bool matches(const Key& pattern, const Key& message) {
        return pattern.context == message.context &&
               (pattern.source == kAnySource || pattern.source == message.source) &&
               (pattern.tag == kAnyTag ? message.tag >= 0 : pattern.tag == message.tag);
    }
    void* match_posted(const Key& message) {
        for (auto entry = posted.begin(); entry != posted.end(); ++entry) {
            if (!matches(entry->key, message)) continue;
            void* object = entry->object;
            posted.erase(entry);
            return object;
        }
        return nullptr;
    }
    void* front_posted(const Key& pattern) const {
        for (const Entry& entry : posted) {
            if (entry.key == pattern) return entry.object;
        }
        return nullptr;
    }
    void* find_unexpected(const Key& pattern) const {
        for (const Entry& entry : unexpected) {
            if (matches(pattern, entry.key)) return entry.object;
        }
        return nullptr;
    }

    std::list<Entry> posted, unexpected;
};

class MatchingTest : public ::testing::TestWithParam<unsigned> {
 protected:
    std::int32_t number(std::int32_t most) {
        return static_cast<std::int32_t>(random() % static_cast<unsigned>(most));
    }
    Key message() { return {static_cast<std::uint32_t>(number(3)), number(4), number(8) - 2}; }
    Key pattern() {
        Key key = message();
        if (number(3) == 0) key.source = kAnySource;
        if (number(3) == 0) key.tag = kAnyTag;
        return key;
    }

    std::mt19937 random{GetParam()};
    Model model;
    PostedQueue posted;
    UnexpectedQueue unexpected;
};

INSTANTIATE_TEST_SUITE_P(Seeds, MatchingTest, ::testing::Range(0U, 12U));

TEST_P(MatchingTest, receives_match_messages_as_in_the_model) {
    std::list<Posted> storage;
    std::vector<Posted*> waiting;
    for (int step = 0; step < 5000; ++step) {
        // In phases, so that the queue is long at times.
        const bool fill = number(8) < (step / 500 % 2 == 0 ? 6 : 2);
        if (fill) {
            storage.push_back(Posted{pattern(), 0, {}});
            Posted* receive = &storage.back();
            posted.push(receive);
            model.posted.push_back({receive->pattern, receive});
        } else if (number(4) == 0 && !model.posted.empty()) {
            auto victim = std::next(model.posted.begin(), number(static_cast<int>(model.posted.size())));
            posted.remove(static_cast<Posted*>(victim->object));
            model.posted.erase(victim);
        } else {
            const Key key = message();
            Posted* const found = posted.find(key);
            ASSERT_EQ(found, model.match_posted(key)) << "step " << step;
            ASSERT_EQ(posted.match(key), found) << "step " << step;
        }
        ASSERT_EQ(posted.size(), model.posted.size());
        ASSERT_EQ(posted.empty(), model.posted.empty());
        const Key like = pattern();
        ASSERT_EQ(posted.front(like), model.front_posted(like)) << "step " << step;
        if (step % 16 != 0) continue;
        std::set<const Posted*> fronts, visited;
        for (const Model::Entry& entry : model.posted)
            fronts.insert(static_cast<const Posted*>(model.front_posted(entry.key)));
        posted.for_each_front([&](const Posted& receive) { EXPECT_TRUE(visited.insert(&receive).second); });
        ASSERT_EQ(visited, fronts) << "step " << step;
    }
}

TEST_P(MatchingTest, messages_are_found_as_in_the_model) {
    std::list<Unexpected> storage;
    for (int step = 0; step < 5000; ++step) {
        const bool fill = number(8) < (step / 500 % 2 == 0 ? 6 : 2);
        if (fill) {
            storage.push_back(Unexpected{});
            storage.back().key = message();
            unexpected.push(&storage.back());
            model.unexpected.push_back({storage.back().key, &storage.back()});
            continue;
        }
        // The first thousand steps leave nothing open: the orders for that are made when they are needed.
        const Key wanted = step < 1000 ? message() : pattern();
        Unexpected* found = unexpected.find(wanted);
        ASSERT_EQ(found, model.find_unexpected(wanted)) << "step " << step;
        if (found == nullptr || number(4) == 0) continue;
        unexpected.remove(found);
        model.unexpected.remove_if([found](const Model::Entry& entry) { return entry.object == found; });
        ASSERT_EQ(unexpected.size(), model.unexpected.size());
    }
    for (std::uint32_t context = 0; context < 3; ++context) {
        while (Unexpected* left = unexpected.any_of(context)) unexpected.remove(left);
    }
    EXPECT_EQ(unexpected.size(), 0U);
}

// Nanoseconds for a post and a match, while `count` other receives wait.
double cost(int count, bool same_key) {
    std::deque<Posted> storage;
    PostedQueue queue;
    for (std::int32_t i = 0; i < count; ++i) {
        storage.push_back(Posted{same_key ? Key{1, 1, 1} : Key{1, i % 64, i}, 0, {}});
        queue.push(&storage.back());
    }
    Posted last{{1, 3, -7}, 0, {}};
    constexpr int kRounds = 100'000;
    auto started = std::chrono::steady_clock::now();
    for (int round = 0; round < kRounds; ++round) {
        queue.push(&last);
        EXPECT_EQ(queue.match({1, 3, -7}), &last);
    }
    std::chrono::duration<double, std::nano> lasted = std::chrono::steady_clock::now() - started;
    for (std::int32_t i = count; i-- > 0;) {
        const std::int32_t at = same_key ? count - 1 - i : i;  // equal ones match in the order of posting
        EXPECT_EQ(queue.match(storage[static_cast<std::size_t>(i)].pattern),
                  &storage[static_cast<std::size_t>(at)]);
    }
    EXPECT_EQ(queue.size(), 0U);
    return lasted.count() / kRounds;
}

TEST(MatchingScale, a_hundred_thousand_posted_receives_cost_no_more_than_ten) {
    for (bool same_key : {false, true}) {
        double few = cost(10, same_key), many = cost(100'000, same_key);
        std::printf("post and match, %s: %.0f ns with 10 receives waiting, %.0f ns with 100000\n",
                    same_key ? "equal keys" : "different keys", few, many);
        // A search would cost thousands of times as much.
        EXPECT_LT(many, 50 * few + 1000);
    }
}

TEST(MatchingScale, a_hundred_thousand_unexpected_messages_are_found_at_once_whatever_is_left_open) {
    constexpr std::int32_t kCount = 100'000;
    std::deque<Unexpected> storage;
    UnexpectedQueue queue;
    for (std::int32_t i = 0; i < kCount; ++i) {
        storage.push_back(Unexpected{});
        storage.back().key = {static_cast<std::uint32_t>(i % 2), i % 64, i};
        queue.push(&storage.back());
    }
    for (std::int32_t i = 0; i < kCount; ++i) {
        const auto context = static_cast<std::uint32_t>(i % 2);
        const Key wanted[] = {{context, i % 64, i},
                              {context, kAnySource, i},
                              {context, i % 64, kAnyTag},
                              {context, kAnySource, kAnyTag}};
        Unexpected* found = queue.find(wanted[i % 4]);
        ASSERT_EQ(found, &storage[static_cast<std::size_t>(i)]);
        queue.remove(found);
    }
    EXPECT_EQ(queue.size(), 0U);
}

}  // namespace
}  // namespace velo::matching
