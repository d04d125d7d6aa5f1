// Whoever stores something into the mailbox of a process that sleeps wakes it.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>
#include <utility>

#include "api/handle.h"
#include "engine/peers/sizing.h"
#include "engine_party.h"
#include "fabric/shm/segment.h"
#include "platform/doze.h"

namespace velo::test {
namespace {

// Where nothing else runs nobody would sleep.
[[maybe_unused]] const bool kWanted = (
    engine::Idle::processor_is_wanted = [] { return true; }, true);

// Says for a member that it sleeps, as it does itself before it does; nobody is asleep in these tests, so
// that what counts is whether the word is taken back.
class Sleeper {
 public:
    explicit Sleeper(Member& member) : segment_(segment_of(member.engine)) {}
    bool is_asleep() { return segment_.header().pointers.doze != 0; }
    bool woken_by(const std::function<void()>& action) {
        std::atomic<std::uint32_t>& word = segment_.header().pointers.doze;
        word = 1;
        action();
        return word.exchange(0) == 0;
    }

 private:
    fabric::shm::Segment segment_;
};

class WakeTest : public ::testing::TestWithParam<std::string> {
 protected:
    PartyConfig config(std::uint32_t idle_sleep_us) const {
        PartyConfig config;
        config.flow_control = GetParam().c_str();
        config.slots_per_peer = config.lazy_slots = 64;
        config.preposted_buffers = config.initial_buffers = 16;
        config.delay_credits = false;
        config.idle_sleep_us = idle_sleep_us;
        return config;
    }
};

INSTANTIATE_TEST_SUITE_P(EveryPolicy, WakeTest, ::testing::ValuesIn(policies()),
                         [](const auto& info) { return info.param; });

TEST_P(WakeTest, every_message_wakes_its_receiver) {
    Party party(config(1));
    party.send(1, 0, 1, "the first one opens a window where one is needed");
    party.send(0, 1, 1, "in both directions");
    party.settle();
    Sleeper sleeper(party[1]);
    for (std::size_t bytes : {0, 10, 56, 57, 100}) {
        velo_status status = VELO_QUEUED;
        const std::string text = pattern(bytes, 1);
        EXPECT_TRUE(sleeper.woken_by([&] { status = party.send(0, 1, 1, text); })) << bytes;
        EXPECT_EQ(status, VELO_OK);
        party.settle();
        EXPECT_TRUE(sleeper.woken_by([&] {
            status = velo_send_now(party[0].peers[1], 1, text.data(), bytes, nullptr, 0);
        })) << bytes;
        EXPECT_EQ(status, VELO_OK);
        party.settle();
    }
}

// Of a policy that opens windows on demand: the question, which rings a bell, and its answer.
TEST(WakeRules, a_question_and_its_answer_wake) {
    PartyConfig config{.flow_control = "lazy"};
    config.delay_credits = false;
    config.idle_sleep_us = 1;
    Party party(config);
    Sleeper first(party[0]), other(party[1]);
    EXPECT_TRUE(other.woken_by([&] { EXPECT_EQ(party.send(0, 1, 1, "?"), VELO_QUEUED); }));
    EXPECT_TRUE(first.woken_by([&] { velo_progress(party[1].engine); }));
    party.settle();
}

TEST(WakeRules, credits_wake_a_sender_that_waits_for_them) {
    PartyConfig config{.flow_control = "static"};
    config.delay_credits = false;
    config.by_reference = "never";
    config.idle_sleep_us = 1;
    Party party(config);
    EXPECT_EQ(party.send(0, 1, 1, pattern(5000, 1)), VELO_QUEUED);
    Sleeper sender(party[0]);
    EXPECT_TRUE(sender.woken_by([&] { velo_progress(party[1].engine); }));
    EXPECT_GT(counter(party[1], "credit_packets"), 0U);
    party.settle();
}

TEST_P(WakeTest, who_never_sleeps_is_not_looked_at) {
    Party party(config(0));
    Sleeper sleeper(party[1]);
    EXPECT_FALSE(sleeper.woken_by([&] {
        party.send(0, 1, 1, "text");
        velo_progress(party[0].engine);
    }));
    party.settle();
}

// The second engine of a process, which would not sleep by itself.
struct Companions {
    explicit Companions(std::uint32_t idle_sleep_us)
        : one(config(idle_sleep_us)), two(config(0), false), first(one[1]), second(two[1]) {
        two[1].engine->engine.idle().pair_with(one[1].engine->engine.idle());
        two.connect(0, 1);
        two.connect(1, 0);
    }
    static PartyConfig config(std::uint32_t idle_sleep_us) {
        PartyConfig config{.flow_control = "dynamic"};
        config.delay_credits = false;
        config.idle_sleep_us = idle_sleep_us;
        return config;
    }

    Party one, two;
    Sleeper first, second;
};

TEST(WakeRules, who_sleeps_with_another_engine_is_woken_for_either) {
    Companions both(1);
    EXPECT_TRUE(both.first.woken_by([&] { both.one.send(0, 1, 1, "text"); }));
    EXPECT_TRUE(both.second.woken_by([&] { both.two.send(0, 1, 1, "text"); }));
}

TEST(WakeRules, who_drives_one_of_two_engines_sleeps_on_both_mailboxes) {
    Companions both(1'000'000);
    std::thread owner([&] {
        while (both.one[1].received.empty() || both.two[1].received.empty())
            for (Party* each : {&both.two, &both.one}) velo_progress((*each)[1].engine);
    });
    for (Party* each : {&both.one, &both.two}) {
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
        bool asleep = false;
        while (!asleep && std::chrono::steady_clock::now() < end) {
            asleep = both.first.is_asleep() && both.second.is_asleep();
            std::this_thread::yield();
        }
        EXPECT_TRUE(asleep);
        each->send(0, 1, 1, "text");
    }
    owner.join();
}

TEST(WakeRules, who_waits_for_what_wakes_nobody_does_not_sleep) {
    Companions both(100);
    const auto sleeps_while = [&](bool stays_awake) {
        rusage before, after;
        getrusage(RUSAGE_THREAD, &before);
        for (unsigned i = 0; i < 2000; ++i) {
            if (stays_awake) both.two[1].engine->engine.idle().reset();
            for (Party* each : {&both.two, &both.one}) velo_progress((*each)[1].engine);
        }
        getrusage(RUSAGE_THREAD, &after);
        return after.ru_nvcsw - before.ru_nvcsw;
    };
    EXPECT_GE(sleeps_while(false), 20);
    EXPECT_LT(sleeps_while(true), 5);
}

TEST(WakeRules, the_longest_sleep_is_short_where_few_share_a_processor) {
    velo_config config{};
    config.idle_sleep = -1;
    constexpr std::uint32_t kAll = 0xffffffffU;
    for (const auto& [processes, us] :
         {std::pair{1U, 0U}, {2U, 300U}, {8U, 320U}, {64U, 2560U}, {256U, 10'000U}, {kAll, 10'000U}}) {
        config.processes_per_processor = processes;
        EXPECT_EQ(engine::longest_sleep(config), us) << processes;
    }
    config.idle_sleep = 77;
    EXPECT_EQ(engine::longest_sleep(config), 77U);
    config.threads = true;
    EXPECT_EQ(engine::longest_sleep(config), 77U);
    config.idle_sleep = -1;
    config.processes_per_processor = 1;
    EXPECT_EQ(engine::longest_sleep(config), 100U);
}

TEST(WakeRules, who_waits_long_sleeps_longer_but_not_longer_than_it_has) {
    constexpr std::uint32_t kMost = 10'000;
    std::uint32_t slept = 0, longest = 0, sleeps = 0;
    for (std::uint32_t polls = 1; polls <= 1000; ++polls) {
        const std::uint32_t us = platform::sleep_after(polls, kMost);
        EXPECT_EQ(us != 0, polls % platform::kPollsToSleep == 0) << polls;
        EXPECT_LE(us, slept + 50);
        if (us == 0) continue;
        EXPECT_GE(us, longest);
        longest = us;
        slept += us;
        ++sleeps;
    }
    EXPECT_EQ(longest, kMost);
    EXPECT_EQ(sleeps, 20U);
    EXPECT_EQ(platform::sleep_after(platform::kPollsToSleep, 1), 1U);
    EXPECT_EQ(platform::sleep_after(0U - 96, 1'000'000), 1'000'000U);  // 50 divides it
}

TEST(WakeRules, a_processor_is_wanted_by_who_shares_it) {
    cpu_set_t all, one;
    ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0) GTEST_SKIP() << "no affinity permitted";
    std::atomic<bool> done{false};
    std::thread other([&] {
        while (!done) {
        }
    });
    bool wanted = false;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!wanted && std::chrono::steady_clock::now() < end) wanted = platform::processor_is_wanted();
    done = true;
    other.join();
    sched_setaffinity(0, sizeof all, &all);
    EXPECT_TRUE(wanted);
}

// A process with nothing to do comes back from each poll; one with something to do does not sleep before.
TEST_P(WakeTest, an_engine_that_sleeps_gets_everything) {
    Party party(config(1));
    for (unsigned i = 0; i < 300; ++i) party.step();
    for (unsigned i = 0; i < 20; ++i) party.send(i % 2, 1 - i % 2, 1, pattern(i * 100, i));
    party.settle();
    EXPECT_EQ(party[0].received.size() + party[1].received.size(), 20U);
}

}  // namespace
}  // namespace velo::test
