// The memory model that memory_order_test.cc relies on, itself: the litmus tests of the literature have the
// outcomes that C++ permits, all of them and no others.
#include "memory_model.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>

namespace velo::order {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;
constexpr auto kAcquire = std::memory_order_acquire;
constexpr auto kRelease = std::memory_order_release;

class MemoryModelTest : public ::testing::Test {
 protected:
    using Threads = std::vector<std::function<void()>>;
    using Outcomes = std::set<std::string>;

    // The values of a, b, c, d at the end of every execution, a digit for each of the first `count`.
    Outcomes outcomes(std::size_t count, const Threads& threads) {
        Outcomes all;
        const Verdict verdict = explore({"", {}, threads, [&] { all.insert(results(count)); }, {}});
        EXPECT_EQ(verdict.fault, "") << verdict.execution;
        return all;
    }
    static std::string fault(const Threads& threads) { return explore({"", {}, threads, {}, {}}).fault; }

    static std::function<void()> load_both(ModelAtom<int>& first, std::uint64_t& into_first,
                                           ModelAtom<int>& second, std::uint64_t& into_second,
                                           std::memory_order order, bool fence = false) {
        return [=, &first, &into_first, &second, &into_second] {
            note(into_first, first.load(order));
            if (fence) full_fence(std::source_location::current());
            note(into_second, second.load(order));
        };
    }
    static void note(std::uint64_t& result, int value) { write(&result, static_cast<std::uint64_t>(value)); }

    ModelAtom<int> x, y;
    std::uint64_t a = 0, b = 0, c = 0, d = 0, plain = 0;

 private:
    std::string results(std::size_t count) {
        std::string digits;
        for (const std::uint64_t* result : {&a, &b, &c, &d}) digits += std::to_string(read(result));
        return digits.substr(0, count);
    }
};

TEST_F(MemoryModelTest, a_message_may_overtake_its_contents_unless_it_is_released_and_acquired) {
    auto passing = [this](std::memory_order publish, std::memory_order look) {
        return outcomes(2, {[=, this] {
                                x.store(1, kRelaxed);
                                y.store(1, publish);
                            },
                            load_both(y, a, x, b, look)});
    };
    const Outcomes all{"00", "01", "10", "11"}, ordered{"00", "01", "11"};
    EXPECT_EQ(passing(kRelaxed, kRelaxed), all);
    EXPECT_EQ(passing(kRelease, kRelaxed), all);
    EXPECT_EQ(passing(kRelaxed, kAcquire), all);
    EXPECT_EQ(passing(kRelease, kAcquire), ordered);
}

TEST_F(MemoryModelTest, two_stores_may_both_be_missed_unless_both_sides_have_a_full_fence) {
    auto buffering = [this](bool first_fence, bool second_fence) {
        return outcomes(2, {[=, this] {
                                x.store(1, kRelease);
                                if (first_fence) full_fence(std::source_location::current());
                                note(a, y.load(kAcquire));
                            },
                            [=, this] {
                                y.store(1, kRelease);
                                if (second_fence) full_fence(std::source_location::current());
                                note(b, x.load(kAcquire));
                            }});
    };
    const Outcomes all{"00", "01", "10", "11"}, ordered{"01", "10", "11"};
    EXPECT_EQ(buffering(false, false), all);
    EXPECT_EQ(buffering(true, false), all);
    EXPECT_EQ(buffering(true, true), ordered);
}

TEST_F(MemoryModelTest, loads_are_not_buffered) {
    EXPECT_EQ(outcomes(2, {[this] {
                               note(a, x.load(kRelaxed));
                               y.store(1, kRelaxed);
                           },
                           [this] {
                               note(b, y.load(kRelaxed));
                               x.store(1, kRelaxed);
                           }}),
              (Outcomes{"00", "01", "10"}));
}

TEST_F(MemoryModelTest, one_location_is_never_seen_to_go_back) {
    EXPECT_EQ(outcomes(2, {[this] {
                               x.store(1, kRelaxed);
                               x.store(2, kRelaxed);
                           },
                           load_both(x, a, x, b, kRelaxed)}),
              (Outcomes{"00", "01", "02", "11", "12", "22"}));
}

TEST_F(MemoryModelTest, stores_of_two_threads_may_be_ordered_crosswise_unless_fenced) {
    auto store_both = [](ModelAtom<int>& first, ModelAtom<int>& second, bool fence) {
        return [&first, &second, fence] {
            first.store(1, kRelease);
            if (fence) full_fence(std::source_location::current());
            second.store(2, kRelease);
        };
    };
    // The last in each location's history.
    auto ends = [&](bool fence) {
        Outcomes all;
        const Verdict verdict =
            explore({"",
                     {},
                     {store_both(x, y, fence), store_both(y, x, fence)},
                     [&] { all.insert(std::to_string(x.load(kRelaxed)) + std::to_string(y.load(kRelaxed))); },
                     {}});
        EXPECT_EQ(verdict.fault, "");
        return all;
    };
    EXPECT_EQ(ends(false), (Outcomes{"11", "12", "21", "22"}));
    EXPECT_EQ(ends(true), (Outcomes{"12", "21", "22"}));
}

TEST_F(MemoryModelTest, observers_may_disagree_about_independent_stores_unless_fenced) {
    auto independent = [this](bool fence) {
        return outcomes(4, {[this] { x.store(1, kRelease); }, [this] { y.store(1, kRelease); },
                            load_both(x, a, y, b, kAcquire, fence), load_both(y, c, x, d, kAcquire, fence)});
    };
    EXPECT_EQ(independent(false).size(), 16U);
    Outcomes agreed = independent(true);
    EXPECT_EQ(agreed.size(), 15U);
    EXPECT_FALSE(agreed.contains("1010"));
}

TEST_F(MemoryModelTest, read_modify_writes_are_never_lost) {
    auto add = [this](std::uint64_t& result) {
        return [this, &result] { note(result, x.fetch_add(1, kRelaxed)); };
    };
    EXPECT_EQ(outcomes(3, {add(a), add(b), add(c)}), (Outcomes{"012", "021", "102", "120", "201", "210"}));
    auto swap = [this](std::uint64_t& result) {
        return [this, &result] {
            int expected = 0;
            note(result, x.compare_exchange_weak(expected, 1, kRelaxed, kRelaxed) ? 1 : 0);
        };
    };
    EXPECT_EQ(outcomes(3, {swap(a), swap(b), swap(c)}), (Outcomes{"001", "010", "100"}));
}

TEST_F(MemoryModelTest, a_release_reaches_through_read_modify_writes_but_not_through_stores) {
    auto relayed = [this](const std::function<void()>& relay) {
        return fault({[this] {
                          write(&plain, 7);
                          y.store(1, kRelease);
                      },
                      relay,
                      [this] {
                          if (y.load(kAcquire) == 3) require(read(&plain) == 7, "an old value");
                      }});
    };
    EXPECT_EQ(relayed([this] { y.fetch_add(2, kRelaxed); }), "");
    EXPECT_NE(relayed([this] {
                  if (y.load(kRelaxed) == 1) y.store(3, kRelaxed);
              }),
              "");
}

TEST_F(MemoryModelTest, fences_order_what_relaxed_operations_pass_on) {
    auto passed = [this](bool first, bool second) {
        return fault({[=, this] {
                          write(&plain, 7);
                          if (first) full_fence(std::source_location::current());
                          y.store(1, kRelaxed);
                      },
                      [=, this] {
                          if (y.load(kRelaxed) != 1) return;
                          if (second) full_fence(std::source_location::current());
                          require(read(&plain) == 7, "an old value");
                      }});
    };
    EXPECT_EQ(passed(true, true), "");
    EXPECT_NE(passed(true, false), "");
    EXPECT_NE(passed(false, true), "");
}

TEST_F(MemoryModelTest, plain_accesses_without_an_order_are_races) {
    auto set = [this] { write(&plain, 1); };
    auto look = [this] { read(&plain); };
    EXPECT_NE(fault({set, look}), "");
    EXPECT_NE(fault({set, set}), "");
    EXPECT_EQ(fault({look, look}), "");
}

TEST_F(MemoryModelTest, who_waits_for_what_never_comes_is_found) {
    auto wait = [this] { await([this] { return x.load(kRelaxed) == 1; }); };
    EXPECT_NE(fault({wait}), "");
    EXPECT_EQ(fault({wait, [this] { x.store(1, kRelaxed); }}), "");
    // What is there may be overlooked, but not for ever.
    EXPECT_NE(fault({wait,
                     [this] {
                         x.store(1, kRelaxed);
                         x.store(2, kRelaxed);
                     }}),
              "");
}

}  // namespace
}  // namespace velo::order
