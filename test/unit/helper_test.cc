// The helper thread, alone and of a performer: when it works and when it is parked, what it says and where.
#include "collectives/performing/helper.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <string_view>

#include "performer_party.h"

namespace velo::test {
namespace {

using performing::Helper;

using namespace std::chrono_literals;

struct Program {
    Program() {
        config.context = this;
        config.log = [](void* context, int level, const char* text) {
            static_cast<Program*>(context)->hear(std::to_string(level) + " " + text);
        };
        config.fatal = [](void* context, velo_status status, const char* text) {
            static_cast<Program*>(context)->hear(std::to_string(status) + "! " + text);
        };
    }
    void hear(std::string line) {
        EXPECT_EQ(std::this_thread::get_id(), thread);
        heard.push_back(std::move(line));
    }

    const std::thread::id thread = std::this_thread::get_id();
    std::vector<std::string> heard;
    velo_config config{};
};

// Nobody calls anything meanwhile.
bool comes(const std::function<bool()>& what) {
    for (int i = 0; i < 60'000 && !what(); ++i) std::this_thread::sleep_for(1ms);
    return what();
}

TEST(HelperTest, works_while_a_run_is_under_way_and_is_parked_without_one) {
    Program program;
    Helper helper(program.config);
    std::atomic<unsigned> steps{0};
    std::atomic<Helper::Step> step{Helper::Step::kNothing};
    helper.start([&] {
        ++steps;
        return step.load();
    });
    for (unsigned run = 0; run < 20; ++run) {
        const unsigned wakes = static_cast<unsigned>(helper.wakes());
        // It parks in its own time; who finds it awake wakes nobody.
        EXPECT_TRUE(comes([&] {
            const unsigned before = steps;
            helper.run_begins();
            helper.wake();
            const bool works = comes([&] { return steps > before; });
            helper.run_ends();
            return works && helper.wakes() > wakes;
        }));
    }
    // Something is left to do after the end of the run, for longer than its patience.
    step = Helper::Step::kOwed;
    helper.run_begins();
    helper.wake();
    helper.run_ends();
    for (unsigned look = 0; look < 5; ++look) {
        const unsigned before = steps;
        EXPECT_TRUE(comes([&] { return steps > before; }));
        std::this_thread::sleep_for(2ms);
    }
    helper.stop();
    const unsigned steps_in_all = steps;
    helper.run_begins();
    helper.wake();
    EXPECT_EQ(steps, steps_in_all);
}

TEST(HelperTest, what_the_engine_says_is_heard_in_the_programs_thread) {
    Program program;
    velo_config& engine = program.config;
    Helper helper(engine);
    engine.log(engine.context, 1, "at once");
    EXPECT_EQ(program.heard, std::vector<std::string>{"1 at once"});
    std::atomic<bool> said{false};
    helper.start([&] {
        if (said) return Helper::Step::kNothing;
        EXPECT_NE(std::this_thread::get_id(), program.thread);
        engine.log(engine.context, 5, "of the helper");
        engine.fatal(engine.context, VELO_ERR_PROTOCOL, "broken");
        said = true;
        return Helper::Step::kMoved;
    });
    helper.run_begins();
    helper.wake();
    EXPECT_TRUE(comes([&] { return said.load(); }));
    EXPECT_EQ(program.heard.size(), 1U);
    { const Helper::StandBy stand_by(&helper); }
    { const Helper::StandBy stand_by(&helper); }
    const std::vector<std::string> all{"1 at once", "5 of the helper",
                                       std::to_string(VELO_ERR_PROTOCOL) + "! broken"};
    EXPECT_EQ(program.heard, all);
}

TEST(HelperTest, stands_by_while_the_program_makes_progress) {
    Program program;
    Helper helper(program.config);
    std::atomic<unsigned> steps{0}, wrong{0};
    std::atomic<bool> within{false};
    helper.start([&] {
        wrong += within ? 1 : 0;
        ++steps;
        return Helper::Step::kMoved;
    });
    helper.run_begins();
    helper.wake();
    for (unsigned round = 0; round < 20; ++round) {
        const unsigned before = steps;
        EXPECT_TRUE(comes([&] { return steps > before; }));
        const Helper::StandBy stand_by(&helper);
        within = true;
        std::this_thread::sleep_for(1ms);
        within = false;
    }
    helper.stop();
    EXPECT_LE(wrong, 20U);  // those that had been decided on
}

// A handler of the program's runs in a thread of the program's.
TEST(HelperTest, signals_are_the_programs) {
    Program program;
    Helper helper(program.config);
    sigset_t before, of_helper, after;
    std::atomic<bool> asked{false};
    pthread_sigmask(SIG_SETMASK, nullptr, &before);
    helper.start([&] {
        if (!asked) pthread_sigmask(SIG_SETMASK, nullptr, &of_helper);
        asked = true;
        return Helper::Step::kNothing;
    });
    pthread_sigmask(SIG_SETMASK, nullptr, &after);
    helper.run_begins();
    helper.wake();
    ASSERT_TRUE(comes([&] { return asked.load(); }));
    for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGALRM, SIGCHLD}) {
        EXPECT_TRUE(sigismember(&of_helper, signal));
        EXPECT_EQ(sigismember(&after, signal), sigismember(&before, signal));
    }
}

// Members with a helper each, from 100,000 bytes on.
class HelpedTest : public ::testing::TestWithParam<const char*> {
 protected:
    static constexpr std::uint32_t kSize = 3;
    static constexpr std::size_t kWords = 120'000;

    static PerformerPartyConfig config() {
        PerformerPartyConfig config;
        config.size = kSize;
        config.flow_control = GetParam();
        config.slots_per_peer = 64;
        config.helper = 100'000;
        return config;
    }
    velo_goal_run* start(PerformerParty& party, std::uint32_t rank, const char* operation, std::size_t words,
                         velo_goal_start start = {}, velo_goal_operator op = VELO_GOAL_ADD) {
        velo_goal_request request{};
        request.operation = operation;
        request.op = op;
        request.type = VELO_GOAL_UINT;
        request.width = op == VELO_GOAL_OWN ? 8 : 32;
        request.element = 4;
        request.bytes = 4 * words;
        in_[rank].resize(kSize * words);
        out_[rank].assign(kSize * words, 0);
        for (std::size_t i = 0; i < in_[rank].size(); ++i)
            in_[rank][i] = static_cast<std::uint32_t>(1000 * i + rank);
        void* const arguments[] = {in_[rank].data(), out_[rank].data()};
        start.arguments = arguments;
        start.argument_count = 2;
        velo_goal_schedule* schedule = nullptr;
        velo_goal_run* run = nullptr;
        EXPECT_EQ(velo_goal_group_schedule(party[rank], &request, &schedule), VELO_OK);
        EXPECT_EQ(velo_goal_run_start(party[rank], schedule, &start, &run), VELO_OK);
        return run;
    }
    void expect_sums(std::uint32_t rank) const {
        for (std::size_t i = 0; i < kWords; ++i) ASSERT_EQ(out_[rank][i], 3000 * i + 3);
    }

    std::vector<std::uint32_t> in_[kSize], out_[kSize];
};

INSTANTIATE_TEST_SUITE_P(PerformerTest, HelpedTest, ::testing::Values("none", "dynamic", "lazy"));

TEST_P(HelpedTest, large_runs_come_to_their_end_while_the_programs_compute) {
    PerformerParty party(config());
    for (unsigned round = 0; round < 5; ++round) {
        for (const char* operation : {"allreduce", "alltoall", "allgather"}) {
            velo_goal_run* runs[kSize];
            for (std::uint32_t rank = 0; rank < kSize; ++rank)
                runs[rank] = start(party, rank, operation, kWords);
            for (velo_goal_run* run : runs) ASSERT_TRUE(comes([&] { return velo_goal_run_is_over(run); }));
            for (std::uint32_t rank = 0; rank < kSize; ++rank) {
                EXPECT_EQ(velo_goal_run_end(runs[rank]).status, VELO_OK);
                if (operation == std::string_view("allreduce")) {
                    expect_sums(rank);
                    continue;
                }
                const bool all = operation == std::string_view("alltoall");
                for (std::size_t i = 0; i < kSize * kWords; ++i)
                    ASSERT_EQ(out_[rank][i], 1000 * (i % kWords + (all ? rank * kWords : 0)) + i / kWords)
                        << operation << " at " << rank;
            }
        }
    }
    for (std::uint32_t rank = 0; rank < kSize; ++rank) {
        EXPECT_EQ(party.state(rank).helped, party.state(rank).operations);
        EXPECT_EQ(velo_performer_counter(party.at(rank), "helper_operations"), party.state(rank).operations);
        EXPECT_GE(velo_performer_counter(party.at(rank), "helper_wakes"), 1U);
    }
}

TEST_P(HelpedTest, it_calls_nothing_of_the_program_and_does_all_else) {
    PerformerParty party(config());
    struct Told {
        std::thread::id thread = std::this_thread::get_id();
        unsigned combined = 0, done = 0;
        velo_status status = VELO_ERR_RESOURCE;
    } told[kSize];
    for (std::uint32_t rank = 0; rank < kSize; ++rank) {
        velo_goal_start own{};
        own.context = &told[rank];
        own.combine = [](void* context, const void* a, const void* b, void* result, std::uint64_t bytes) {
            auto& self = *static_cast<Told*>(context);
            EXPECT_EQ(self.thread, std::this_thread::get_id());
            ++self.combined;
            for (std::uint64_t i = 0; i < bytes / 4; ++i)
                static_cast<std::uint32_t*>(result)[i] =
                    static_cast<const std::uint32_t*>(a)[i] + static_cast<const std::uint32_t*>(b)[i];
        };
        own.done = [](void* context, velo_goal_run* run) {
            auto& self = *static_cast<Told*>(context);
            EXPECT_EQ(self.thread, std::this_thread::get_id());
            ++self.done;
            self.status = velo_goal_run_end(run).status;
        };
        (void)start(party, rank, "allreduce", kWords, own, VELO_GOAL_OWN);
    }
    for (std::uint32_t rank = 0; rank < kSize; ++rank)
        EXPECT_TRUE(comes([&] { return party.state(rank).helped > 0; }));
    EXPECT_TRUE(
        party.until([&] { return std::ranges::all_of(told, [](const Told& t) { return t.done == 1; }); }));
    for (std::uint32_t rank = 0; rank < kSize; ++rank) {
        EXPECT_EQ(told[rank].status, VELO_OK);
        EXPECT_GT(told[rank].combined, 0U);
        expect_sums(rank);
    }
}

// Its own thread makes progress for them.
TEST_P(HelpedTest, small_runs_and_those_that_are_awaited_wake_nobody) {
    PerformerParty party(config());
    for (const bool awaited : {false, true}) {
        velo_goal_run* runs[kSize];
        velo_goal_start how{};
        how.awaited = awaited;
        for (std::uint32_t rank = 0; rank < kSize; ++rank)
            runs[rank] = start(party, rank, "allreduce", awaited ? kWords : 1000, how);
        ASSERT_TRUE(party.until([&] { return std::ranges::all_of(runs, velo_goal_run_is_over); }));
        for (velo_goal_run* run : runs) EXPECT_EQ(velo_goal_run_end(run).status, VELO_OK);
    }
    for (std::uint32_t rank = 0; rank < kSize; ++rank) {
        expect_sums(rank);
        EXPECT_EQ(party.state(rank).helped, 0U);
        EXPECT_EQ(party.state(rank).helper_wakes, 0U);
    }
}

// Small runs meanwhile, whose operations any of the two may start.
TEST_P(HelpedTest, the_program_goes_on_with_other_runs) {
    PerformerParty party(config());
    std::vector<std::uint32_t> small_in[kSize], small_out[kSize];
    for (unsigned round = 0; round < 10; ++round) {
        velo_goal_run* runs[kSize];
        for (std::uint32_t rank = 0; rank < kSize; ++rank)
            runs[rank] = start(party, rank, "allreduce", kWords);
        for (std::uint32_t i = 0; i < 20; ++i) {
            velo_goal_run* small[kSize];
            velo_goal_request request{};
            request.operation = "allreduce";
            request.op = VELO_GOAL_MAX;
            request.type = VELO_GOAL_UINT;
            request.width = 32;
            request.bytes = 8000;
            for (std::uint32_t rank = 0; rank < kSize; ++rank) {
                small_in[rank].assign(2000, i + rank);
                small_out[rank].assign(2000, 0);
                void* const arguments[] = {small_in[rank].data(), small_out[rank].data()};
                velo_goal_start how{};
                how.arguments = arguments;
                how.argument_count = 2;
                velo_goal_schedule* schedule = nullptr;
                ASSERT_EQ(velo_goal_group_schedule(party[rank], &request, &schedule), VELO_OK);
                ASSERT_EQ(velo_goal_run_start(party[rank], schedule, &how, &small[rank]), VELO_OK);
            }
            ASSERT_TRUE(party.until([&] { return std::ranges::all_of(small, velo_goal_run_is_over); }));
            for (std::uint32_t rank = 0; rank < kSize; ++rank) {
                EXPECT_EQ(velo_goal_run_end(small[rank]).status, VELO_OK);
                EXPECT_EQ(std::ranges::count(small_out[rank], i + kSize - 1), 2000);
            }
        }
        for (std::uint32_t rank = 0; rank < kSize; ++rank) {
            ASSERT_TRUE(comes([&] { return velo_goal_run_is_over(runs[rank]); }));
            EXPECT_EQ(velo_goal_run_end(runs[rank]).status, VELO_OK);
            expect_sums(rank);
        }
    }
}

TEST_P(HelpedTest, a_member_that_ends_ends_the_run_and_a_run_under_way_holds_nothing_up) {
    PerformerParty party(config());
    velo_goal_run* const run = start(party, 0, "allreduce", kWords);
    ASSERT_TRUE(comes([&] { return party.state(0).helped > 0; }));
    party.close(1);
    ASSERT_TRUE(party.until([&] { return velo_goal_run_is_over(run); }));
    const velo_goal_result result = velo_goal_run_end(run);
    EXPECT_LT(result.status, VELO_OK);  // of a send or a receive, whichever is noticed first
    EXPECT_EQ(result.peer, 1U);
    (void)start(party, 2, "bcast", kWords);
}

TEST_P(HelpedTest, where_a_member_is_out_of_reach_the_program_alone_goes_on) {
    PerformerParty party(config());
    party.hide(1);
    velo_goal_run* const run = start(party, 0, "allreduce", kWords);
    ASSERT_TRUE(party.until([&] { return velo_goal_run_is_over(run); }));
    EXPECT_EQ(velo_goal_run_end(run).status, VELO_ERR_UNREACHABLE);
    EXPECT_EQ(party.state(0).helped, 0U);
    EXPECT_EQ(party.state(0).helper_wakes, 0U);
}

}  // namespace
}  // namespace velo::test
