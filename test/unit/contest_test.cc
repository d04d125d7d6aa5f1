// Which of several ways messages take, from how long blocks of them last.
#include "platform/contest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <utility>
#include <vector>

namespace velo::test {
namespace {

using Contest = platform::Contest<512, 3, 16>;

class ContestTest : public ::testing::Test {
 protected:
    // So many messages of 600 bytes; one takes so long by the first way, and by the second. Returns how many
    // went the first way.
    int send(std::uint32_t count, std::uint64_t first, std::uint64_t second, std::size_t bytes = 600) {
        int firsts = 0;
        for (std::uint32_t i = 0; i < count; ++i) {
            const bool goes_first = contest.way(bytes) == 0;
            firsts += goes_first ? 1 : 0;
            now += goes_first ? first : second;
            contest.went(bytes, [&] {
                ++looks;
                return now;
            });
        }
        return firsts;
    }
    // Until the first decision.
    void decide(std::uint64_t first, std::uint64_t second) { send(kBefore + kTrial, first, second); }

    static constexpr std::uint32_t kTrial = Contest::trial_of(600);  // the first
    static constexpr std::uint32_t kLater = Contest::trial_of(600, Contest::kRounds);
    const std::uint32_t kBefore = Contest().before_first_of(600);
    static constexpr std::uint32_t kShortest = Contest::kShortestRun * kLater;
    static constexpr std::uint32_t kLongest = Contest::kLongestRun * kLater;
    Contest contest;
    std::uint64_t now = 0;
    int looks = 0;
};

TEST_F(ContestTest, every_size_begins_with_the_first_way_and_tries_each_for_half_of_a_trial) {
    for (const std::size_t bytes : {512UL, 1024UL, 1UL << 30}) {
        const auto trial = static_cast<int>(Contest::trial_of(bytes));
        const auto before = static_cast<int>(contest.before_first_of(bytes));
        EXPECT_EQ(send(before, 10, 10, bytes), before);
        EXPECT_EQ(send(trial, 10, 10, bytes), trial / 2);
    }
}

TEST_F(ContestTest, the_faster_way_is_taken_after_a_trial) {
    decide(10, 8);
    EXPECT_EQ(contest.way(600), 1U);
    EXPECT_EQ(send(kShortest, 10, 8), 0);
    EXPECT_EQ(contest.way(1500), 0U);
}

TEST_F(ContestTest, a_way_that_is_much_faster_is_expected_of_all_larger_messages_until_one_of_them_was_met) {
    send(1, 10, 10, 3000);
    decide(10, 6);
    EXPECT_EQ(contest.way(1500), 1U);
    for (const std::size_t bytes : {3000UL, 6000UL}) EXPECT_EQ(contest.way(bytes), 0U) << bytes;
    contest = Contest();
    decide(10, 6);
    for (const std::size_t bytes : {1500UL, 3000UL, 1UL << 30}) EXPECT_EQ(contest.way(bytes), 1U) << bytes;
}

// One block of 20 messages goes the way that takes five times as long.
TEST_F(ContestTest, a_trial_costs_a_small_part_of_the_time_until_the_next) {
    for (const std::uint32_t part : {Contest::kWorthOfFirst, Contest::kWorth}) {
        for (std::uint32_t sent = 0; !contest.tries(600); ++sent) {
            ASSERT_LT(sent, kLongest);
            send(1, 50, 10);
        }
        while (contest.tries(600)) send(1, 50, 10);
        std::uint32_t until = 0;
        for (; !contest.tries(600) && until < kLongest; ++until) send(1, 50, 10);
        EXPECT_EQ(until, 4 * part * 20);
    }
}

TEST_F(ContestTest, a_size_that_was_met_does_not_learn_from_another) {
    send(1, 10, 6, 1500);
    decide(10, 6);
    EXPECT_EQ(contest.way(1500), 0U);
}

TEST_F(ContestTest, what_is_hardly_faster_changes_nothing) {
    decide(1000, 960);
    EXPECT_EQ(contest.way(600), 0U);
    EXPECT_EQ(send(4 * kShortest, 1000, 960), static_cast<int>(4 * kShortest));
}

TEST_F(ContestTest, a_change_within_a_job_is_followed) {
    decide(10, 5);
    EXPECT_EQ(contest.way(600), 1U);
    send(kShortest + kLater, 5, 10);
    EXPECT_EQ(contest.way(600), 0U);
}

TEST_F(ContestTest, runs_grow_as_long_as_the_outcome_stays_the_same) {
    decide(5, 10);
    std::uint32_t run = 0, longest = 0;
    for (std::uint32_t i = 0; i < 3 * kLongest; ++i) {
        run = send(1, 5, 10) == 1 ? run + 1 : 0;
        longest = std::max(longest, run);
    }
    EXPECT_GE(longest, kLongest);
    EXPECT_LT(longest, kLongest + kLater);
    const int before = looks;
    send(kLongest / 2, 5, 10);
    EXPECT_LE(looks, before + 4 * static_cast<int>(Contest::kRounds) + 1);
}

// What a program does between its messages makes blocks longer, of either way.
TEST_F(ContestTest, the_shortest_block_of_a_way_counts) {
    send(kBefore, 10, 8);
    for (std::uint32_t i = 0; i < kTrial; ++i) {
        if (i / 40 % 2 == 1) now += 1000;  // of two rounds one
        send(1, 10, 8);
    }
    EXPECT_EQ(contest.way(600), 1U);
}

TEST_F(ContestTest, longer_messages_of_a_class_are_no_slower_for_that) {
    // The second way happens to have the long ones.
    send(kBefore, 10, 10);
    for (std::uint32_t i = 0; i < kTrial; ++i) {
        const bool first = contest.way(600) == 0;
        send(1, 600, 1000, first ? 600 : 1000);
    }
    EXPECT_EQ(contest.way(600), 0U);
}

// Three ways, as gets have them, the last one from 2048 on.
class ThreeWays : public ::testing::Test {
 protected:
    std::array<std::uint32_t, 3> send(std::uint32_t count, std::array<std::uint64_t, 3> ticks,
                                      std::size_t bytes = 5000) {
        std::array<std::uint32_t, 3> taken{};
        for (std::uint32_t i = 0; i < count; ++i) {
            const unsigned way = contest.way(bytes);
            ++taken[way];
            now += ticks[way];
            contest.went(bytes, [&] { return now; });
        }
        return taken;
    }
    using Three = platform::Contest<512, 8, 16, 3, 2048>;
    static constexpr std::uint32_t kTrial = Three::trial_of(5000);  // the first
    static constexpr std::uint32_t kLater = Three::trial_of(5000, Three::kRounds);
    const std::uint32_t kBefore = Three().before_first_of(5000);
    Three contest;
    std::uint64_t now = 0;
};

TEST_F(ThreeWays, whichever_is_the_fastest_takes_all_messages_between_trials) {
    for (unsigned best = 0; best < 3; ++best) {
        contest = Three();
        std::array<std::uint64_t, 3> ticks{100, 105, 110};
        ticks[best] = 80;
        send(kBefore + kTrial, ticks);
        EXPECT_EQ(send(2 * kTrial, ticks)[best], 2 * kTrial) << best;
    }
}

TEST_F(ThreeWays, what_somebody_expects_holds_until_the_first_trial) {
    for (const unsigned way : {2U, 1U}) {
        contest.expect(5000, way);
        EXPECT_EQ(send(1, {100, 110, 90})[way], 1U);
    }
    for (std::uint32_t sent = 2; !contest.tries(5000); ++sent) {
        ASSERT_LT(sent, kTrial) << "it waits for a trial, the others for a round of it";
        send(1, {100, 110, 90});
        if (sent < kTrial - 1) {
            EXPECT_FALSE(contest.tries(5000)) << sent;
        }
    }
    const unsigned due = contest.way(5000);
    contest.expect(5000, (due + 1) % 3);
    EXPECT_EQ(contest.way(5000), due);
    send(kTrial, {100, 110, 90});
    contest.expect(5000, 0);
    EXPECT_EQ(contest.way(5000), 2U);
}

// Whoever knows better may notice late, as in the first window of many messages.
TEST_F(ThreeWays, what_somebody_expects_ends_a_first_trial_that_did_not_wait_for_it) {
    const auto clock = [this] { return ++now; };
    std::vector<Three::Ticket> tickets;
    while (!contest.tries(5000)) contest.ended(5000, contest.begin(5000, clock), clock);
    for (int i = 0; i < 8; ++i) tickets.push_back(contest.begin(5000, clock));
    contest.expect(5000, 2);
    EXPECT_EQ(contest.way(5000), 2U);
    EXPECT_FALSE(contest.tries(5000));
    for (const Three::Ticket ticket : tickets) contest.ended(5000, ticket, clock);
    EXPECT_EQ(contest.under_way(5000), 0U);
    EXPECT_EQ(send(kTrial - 1, {100, 110, 90})[2], kTrial - 1) << "those of the trial before do not count";
    send(1, {100, 110, 90});
    EXPECT_TRUE(contest.tries(5000));
    send(kTrial, {100, 80, 90});
    EXPECT_EQ(contest.way(5000), 1U);
}

TEST_F(ThreeWays, wherever_a_first_trial_was_ended_the_next_one_is_as_any) {
    constexpr std::array<std::uint64_t, 3> kTicks{14, 14, 10};
    for (std::uint32_t sent = kBefore + 1; sent < kBefore + kTrial; ++sent) {
        contest = Three();
        const auto send_one = [&] {
            const Three::Ticket ticket = contest.begin(5000, [this] { return now; });
            now += kTicks[Three::way_of(ticket)];
            contest.ended(5000, ticket, [this] { return now; });
        };
        for (std::uint32_t i = 0; i < sent; ++i) send_one();
        ASSERT_TRUE(contest.tries(5000));
        contest.expect(5000, 1);
        now += 100'000;
        for (std::uint32_t i = 0; i < kTrial; ++i) {
            EXPECT_FALSE(contest.tries(5000)) << sent << " " << i;
            send_one();
        }
        for (std::uint32_t i = 0; i < kTrial; ++i) {
            EXPECT_TRUE(contest.tries(5000)) << sent << " " << i;
            send_one();
        }
        EXPECT_FALSE(contest.tries(5000)) << sent;
        EXPECT_EQ(contest.way(5000), 2U) << sent;
    }
}

TEST_F(ThreeWays, a_choice_is_told_once_and_seen_as_a_digit) {
    EXPECT_EQ(contest.digits(), 11111111U);
    unsigned told = 0;
    for (std::uint32_t i = 0; i < kBefore + kTrial; ++i) {
        now += contest.way(5000) == 1 ? 90 : 100;
        told += contest.went(5000, [&] { return now; });
    }
    EXPECT_EQ(told, 1U);
    EXPECT_EQ(contest.digits(), 11121111U);
    EXPECT_EQ(contest.way(5000), 1U);
}

// It takes long at first, when nobody has used its memory for a while.
TEST_F(ThreeWays, a_way_whose_memory_is_cold_counts_when_that_has_been_gone_through) {
    constexpr std::uint32_t kCold = 200;
    contest.settles(1, kCold * std::size_t{4096});
    std::uint32_t used = 0;
    for (const std::uint32_t trial : {kTrial, kLater}) {
        const std::uint32_t expected = trial == kTrial ? kCold : 0;  // its memory, then nothing
        std::uint32_t messages = 0;
        used = 0;
        const unsigned before = contest.way(5000);
        while (!contest.tries(5000)) send(1, {70, 70, 70});
        for (; contest.tries(5000); ++messages) {
            const bool cold = contest.way(5000) == 1 && used++ < expected;
            send(1, {70, cold ? 300U : 50U, 60});
        }
        const std::uint32_t rounds = trial == kTrial ? Three::kRoundsOfFirst : Three::kRounds;
        EXPECT_EQ(messages, trial + rounds * kCold) << before;
        EXPECT_EQ(contest.way(5000), 1U);
    }
}

// Its lines lie where they are fast until it has gone through them, unless others go between.
TEST_F(ThreeWays, a_way_that_is_faster_after_others_than_in_use_is_judged_as_in_use) {
    constexpr std::uint32_t kLines = 200;
    std::uint32_t in_a_row = 0;
    const auto send_one = [&] {
        in_a_row = contest.way(5000) == 1 ? in_a_row + 1 : 0;
        send(1, {70, in_a_row <= kLines ? 50U : 90U, 80});
    };
    contest.settles(1, kLines * std::size_t{4096});
    for (const std::uint32_t trial : {kTrial, kLater, kLater}) {
        const std::uint32_t rounds = trial == kTrial ? Three::kRoundsOfFirst : Three::kRounds;
        std::uint32_t messages = 0;
        while (!contest.tries(5000)) send_one();
        for (; contest.tries(5000); ++messages) send_one();
        EXPECT_EQ(messages, trial + rounds * kLines);
        EXPECT_EQ(contest.way(5000), 0U);
    }
}

TEST_F(ThreeWays, the_last_way_may_be_what_is_expected_of_long_messages) {
    contest = Three(8192);
    EXPECT_EQ(contest.way(8191), 0U);
    const std::uint32_t before = contest.before_first_of(8192);
    EXPECT_EQ(before, Three::trial_of(8192));
    EXPECT_EQ(Three(8192, 3).before_first_of(8192), 3 * before);
    EXPECT_EQ(send(before, {1, 1, 10}, 8192)[2], before);
    send(Three::trial_of(8192), {1, 10, 10}, 8192);
    EXPECT_EQ(contest.way(8192), 0U);
    for (const std::size_t bytes : {16384UL, 32768UL})
        EXPECT_EQ(contest.way(bytes), 0U) << "not expected of a smaller size";
}

TEST_F(ThreeWays, the_last_way_is_for_long_messages_only) {
    for (const std::size_t bytes : {600UL, 2047UL}) {
        const auto taken = send(5 * Three::trial_of(bytes), {10, 10, 1}, bytes);
        EXPECT_EQ(taken[2], 0U);
        EXPECT_GT(taken[1], 0U);
    }
    EXPECT_GT(send(2 * kTrial, {10, 10, 1}, 2048)[2], 0U);
}

TEST_F(ThreeWays, a_hopeless_way_is_left_out_after_a_round) {
    const std::uint32_t round = kTrial / Three::kRoundsOfFirst;
    send(kBefore, {10, 10, 20});
    EXPECT_EQ(send(round, {10, 10, 20})[2], round / 3);
    EXPECT_EQ(send((Three::kRoundsOfFirst - 1) * round * 2 / 3, {10, 10, 20})[2], 0U);
    EXPECT_EQ(contest.way(5000), 0U) << "the trial is over";
}

// But not the last, which may be what is expected of longer ones.
TEST_F(ThreeWays, what_is_hopeless_is_left_out_of_the_first_trial_of_twice_the_size_and_of_no_other) {
    send(kBefore + kTrial, {10, 20, 30});
    send(Three().before_first_of(9000), {10, 20, 30}, 9000);
    ASSERT_TRUE(contest.tries(9000));
    std::array<std::uint32_t, 3> taken{};
    while (contest.tries(9000)) {
        const auto one = send(1, {10, 20, 30}, 9000);
        for (unsigned way = 0; way < 3; ++way) taken[way] += one[way];
    }
    EXPECT_EQ(taken[1], 0U);
    EXPECT_EQ(taken[2], kTrial / Three::kRoundsOfFirst / 3);
    while (!contest.tries(9000)) send(1, {10, 5, 30}, 9000);
    while (contest.tries(9000)) send(1, {10, 5, 30}, 9000);
    EXPECT_EQ(contest.way(9000), 1U);
}

TEST_F(ThreeWays, what_half_the_size_has_been_told_is_passed_on) {
    for (std::size_t bytes = 600; bytes <= 40'000; bytes *= 2) {
        EXPECT_EQ(contest.way(bytes), bytes == 600 ? 0U : 1U) << bytes;
        send(Three().before_first_of(bytes) + Three::trial_of(bytes), {42, 18, 43}, bytes);
        EXPECT_EQ(contest.way(bytes), 1U) << bytes;
    }
}

TEST_F(ThreeWays, a_first_trial_whose_only_way_waits_tries_the_others) {
    contest = Three(8192);
    send(kBefore + kTrial, {30, 30, 10});
    const auto clock = [&] { return now += 100; };
    std::array<std::uint32_t, 3> taken{};
    for (int i = 0; i < 1000 && contest.way(9000) == 2; ++i) {
        const Three::Ticket ticket = contest.begin(9000, clock);
        ++taken[Three::way_of(ticket)];
        if (Three::way_of(ticket) == 2 && contest.tries(9000))
            contest.waited(9000, ticket, clock);
        else
            contest.ended(9000, ticket, clock);
    }
    EXPECT_NE(contest.way(9000), 2U);
    EXPECT_LE(taken[2], Three(8192).before_first_of(9000) + 1);
}

// For somebody else: blocks that last as long as he is away tell nothing.
TEST_F(ThreeWays, a_way_that_waits_is_tried_once_and_if_it_is_in_use_it_brings_a_trial_about) {
    const auto clock = [&] { return now; };
    std::array<std::uint32_t, 3> taken{};
    const auto one = [&](unsigned waiting) {
        const Three::Ticket ticket = contest.begin(5000, clock);
        const unsigned way = Three::way_of(ticket);
        ++taken[way];
        now += way == 2 ? 100 : 101;  // in vain
        if (way == waiting)
            contest.waited(5000, ticket, clock);
        else
            contest.ended(5000, ticket, clock);
    };
    while (!contest.tries(5000)) one(2);
    taken.fill(0);
    while (contest.tries(5000)) one(2);
    EXPECT_EQ(taken[2], 1U);
    EXPECT_EQ(contest.way(5000), 0U);

    send(100 * kTrial, {100, 100, 50});
    while (contest.tries(5000)) send(1, {100, 100, 50});
    ASSERT_EQ(contest.way(5000), 2U);
    unsigned waited = 0;
    for (; !contest.tries(5000) && waited < 100; ++waited) one(2);
    EXPECT_EQ(waited, 8U);
    while (contest.tries(5000)) one(2);
    EXPECT_NE(contest.way(5000), 2U);
}

TEST_F(ThreeWays, where_all_wait_the_trial_ends_and_others_begin_theirs_with_all) {
    const auto clock = [&] { return now += 100; };
    const auto wait = [&](std::size_t bytes) { contest.waited(bytes, contest.begin(bytes, clock), clock); };
    while (!contest.tries(5000)) send(1, {1, 1, 1});
    for (int i = 0; contest.tries(5000); ++i) {
        ASSERT_LT(i, 100);
        wait(5000);
    }
    send(Three().before_first_of(9000), {1, 1, 1}, 9000);
    const auto taken = send(Three::trial_of(9000) / Three::kRoundsOfFirst, {1, 1, 1}, 9000);
    EXPECT_EQ(std::count(taken.begin(), taken.end(), 0U), 0);
}

// As in a window of a stream: all begin before the first one is complete.
TEST_F(ThreeWays, of_many_that_begin_together_no_more_are_tried_than_a_block_needs) {
    constexpr std::uint32_t kBlock = kTrial / Three::kRoundsOfFirst / 3;
    send(kBefore, {10, 10, 10});
    for (int block = 0; block < 6; ++block) {
        const unsigned due = contest.way(5000);
        std::array<std::uint32_t, 3> begun{};
        std::vector<Three::Ticket> tickets(10 * kBlock);
        for (Three::Ticket& ticket : tickets)
            ++begun[Three::way_of(ticket = contest.begin(5000, [&] { return now; }))];
        EXPECT_EQ(begun[due], due == 0 ? 10 * kBlock : kBlock);
        EXPECT_EQ(begun[0] + begun[due], due == 0 ? 20 * kBlock : 10 * kBlock);
        for (const Three::Ticket ticket : tickets) contest.ended(5000, ticket, [&] { return now += 10; });
    }
}

// Such as parts that travel in turns: what ends at once has not taken no time.
TEST_F(ThreeWays, a_block_that_ends_all_at_once_has_lasted_since_its_first_one_began) {
    for (int i = 0; i < 3 * static_cast<int>(kTrial); ++i) {
        std::array<Three::Ticket, 10> tickets{};
        for (Three::Ticket& ticket : tickets) ticket = contest.begin(5000, [&] { return now; });
        now += 10 * (Three::way_of(tickets[0]) == 0 ? 10 : 20);
        for (const Three::Ticket ticket : tickets) {
            contest.ended(5000, ticket, [&] { return now; });
        }
    }
    EXPECT_EQ(contest.way(5000), 0U);
}

// A stream, whose window is as long as a block or longer: what remains of a window when a block begins tells
// nothing about it, though messages pass each other, and what never ends keeps no block waiting for ever.
TEST_F(ThreeWays, the_fastest_way_is_found_in_windows_of_any_length) {
    std::mt19937 random(1);
    for (const bool slides : {false, true}) {
        for (const std::size_t window : {2U, 10U, 16U, 20U, 64U}) {
            for (unsigned best = 0; best < 3; ++best) {
                contest = Three();
                std::array<std::uint64_t, 3> ticks{27, 26, 28};
                ticks[best] = 14;
                std::vector<Three::Ticket> under_way;
                const auto begin = [&] {
                    under_way.push_back(contest.begin(5000, [&] { return now; }));
                    now += ticks[Three::way_of(under_way.back())];
                };
                const auto end = [&] {
                    const auto one =
                        under_way.begin() + random() % std::min<std::size_t>(3, under_way.size());
                    contest.ended(5000, *one, [&] { return now; });
                    under_way.erase(one);
                };
                std::size_t sent = 0;
                bool loses = true;
                while (sent < 6 * kTrial * (1 + window / 16) || contest.tries(5000)) {
                    ASSERT_LT(sent, 100'000U) << window;
                    do {
                        begin();
                        ++sent;
                    } while (under_way.size() < window);
                    if (sent > 200 && std::exchange(loses, false)) under_way.pop_back();
                    do end();
                    while (!slides && !under_way.empty());
                }
                EXPECT_EQ(contest.way(5000), best) << window << (slides ? ", slides" : "");
            }
        }
    }
}

// Of messages of which a block is four by itself.
TEST(WindowsTest, a_way_that_is_faster_if_a_whole_window_takes_it_is_found) {
    using Long = platform::Contest<4096, 8, 64, 2, 4096, 4 * 8192>;
    constexpr unsigned kWindow = 32;
    Long contest;
    std::uint64_t now = 1;
    const auto clock = [&] { return now; };
    unsigned windows = 0;
    for (; windows < 200 && (contest.way(8192) == 0 || contest.tries(8192)); ++windows) {
        std::array<Long::Ticket, kWindow> tickets{};
        for (Long::Ticket& ticket : tickets) ticket = contest.begin(8192, clock);
        const auto others = std::count_if(tickets.begin(), tickets.end(),
                                          [](Long::Ticket ticket) { return Long::way_of(ticket) == 1; });
        for (const Long::Ticket ticket : tickets) {
            now += others > kWindow / 2 ? 10 : 20;
            contest.ended(8192, ticket, clock);
        }
    }
    EXPECT_LT(windows, 30U) << "one trial";
    EXPECT_EQ(contest.way(8192), 1U);
}

// In which each block takes a window.
TEST(WindowsTest, where_the_last_way_is_expected_the_first_trial_waits_for_as_many_as_its_blocks_will_have) {
    using Long = platform::Contest<4096, 8, 64, 2, 4096, 2 * 65536>;
    constexpr unsigned kWindow = 16;
    Long contest(65536);
    std::uint64_t now = 0;
    const auto clock = [&] { return ++now; };
    std::uint32_t before = 0;
    for (; !contest.tries(65536); before += kWindow) {
        ASSERT_LT(before, 10'000U);
        std::array<Long::Ticket, kWindow> tickets{};
        for (Long::Ticket& ticket : tickets) ticket = contest.begin(65536, clock);
        for (const Long::Ticket ticket : tickets) contest.ended(65536, ticket, clock);
    }
    EXPECT_EQ(before, Long::kRoundsOfFirst * 2 * (kWindow + kWindow / 4));
    EXPECT_LT(Long().before_first_of(65536), before);
}

// Though it waits longer for its trial than another would.
TEST(WindowsTest, a_size_that_was_met_in_windows_does_not_learn_from_another) {
    using Long = platform::Contest<4096, 8, 64, 2, 4096, 2 * 65536>;
    Long contest(65536);
    std::uint64_t now = 0;
    const auto clock = [&] { return now; };
    std::array<Long::Ticket, 16> tickets{};
    for (Long::Ticket& ticket : tickets) ticket = contest.begin(65536, clock);
    for (const Long::Ticket ticket : tickets) contest.ended(65536, ticket, clock);
    ASSERT_FALSE(contest.tries(65536));
    for (std::uint32_t sent = 0; sent < Long().before_first_of(32768) + Long::trial_of(32768); ++sent) {
        const unsigned way = contest.way(32768);
        now += way == 0 ? 10 : 100;
        contest.went(32768, clock);
    }
    ASSERT_FALSE(contest.tries(32768));
    EXPECT_EQ(contest.way(65536), 1U);
}

TEST_F(ThreeWays, a_trial_of_long_messages_is_short) {
    using Gets = platform::Contest<4096, 15, 64, 3, 32768>;
    EXPECT_EQ(Gets::trial_of(4096), Gets::kRoundsOfFirst * 2 * 80);
    EXPECT_EQ(Gets().before_first_of(4096), 2 * 80U) << "one round";
    EXPECT_EQ(Gets::trial_of(1UL << 20), Gets::kRoundsOfFirst * 3 * 3);
    EXPECT_EQ(Gets().before_first_of(1UL << 20), Gets::trial_of(1UL << 20)) << "benchmarks send ten of 4 MiB";
}

}  // namespace
}  // namespace velo::test
