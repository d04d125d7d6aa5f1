// The helper thread alone: when it works and when it is parked, what it says and where.
#include "performing/helper.h"

#include <gtest/gtest.h>

#include <csignal>

namespace velo::performing {
namespace {

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

}  // namespace
}  // namespace velo::performing
