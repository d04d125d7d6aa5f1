// What a process does beside its mailbox: whose work is run when, and when it sleeps.
#include "engine/idle/idle.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <climits>
#include <memory>
#include <string>
#include <thread>
#include <utility>

namespace velo::engine {
namespace {

// Work that counts down, and says in one text who was run in which order.
struct FakeWork final : Work {
    FakeWork(char its_name, std::string& in) : name(its_name), runs(in) {}
    bool any() const override { return left > 0; }
    bool lets_sleep() const override { return lets || left == 0; }
    int run(bool busy) override {
        runs += busy ? static_cast<char>(name - 'a' + 'A') : name;
        left -= left > 0;
        return packets;
    }
    char name;
    std::string& runs;
    int left = 0, packets = 0;
    bool lets = false;
};

struct FakeEngine final : IdleHost {
    bool is_quiet() const override { return true; }
    void look_around() override { ++looks; }
    int looks = 0;
};

class IdleTest : public testing::Test {
 protected:
    IdleTest() {
        Idle::processor_is_wanted = [] { return wanted_; };
    }
    ~IdleTest() override {
        Idle::processor_is_wanted = [] { return true; };
    }

    Idle make(std::uint32_t most_us, bool alone = true) { return {host_, mutex_, *own_, most_us, alone}; }
    // Until the process has slept; how often it was polled.
    unsigned polls_until_sleep(Idle& idle) {
        const int looks = host_.looks;
        for (unsigned polls = 1; polls < 10 * platform::kPollsToSleep; ++polls) {
            if (idle.has_work())
                idle.run(0);
            else
                idle.sleep();
            if (host_.looks > looks) return polls;
        }
        return 0;
    }
    std::string take_runs() { return std::exchange(runs_, ""); }

    static inline bool wanted_ = true;
    FakeEngine host_;
    platform::OptionalMutex mutex_{false};
    std::unique_ptr<fabric::shm::SegmentHeader> own_ = std::make_unique<fabric::shm::SegmentHeader>();
    std::string runs_;
    FakeWork always_{'a', runs_}, first_{'f', runs_}, second_{'s', runs_};
};

TEST_F(IdleTest, work_is_run_from_its_want_until_nothing_is_left) {
    Idle idle = make(0);
    idle.when_wanted(first_);
    idle.when_wanted(second_);
    EXPECT_FALSE(idle.has_work());
    second_.left = 2;
    idle.want();
    idle.run(0);
    EXPECT_TRUE(idle.has_work());
    idle.run(0);
    EXPECT_FALSE(idle.has_work());
    EXPECT_EQ(take_runs(), "fsfs");
}

TEST_F(IdleTest, some_work_is_run_at_each_poll_and_hears_whether_it_was_busy) {
    Idle idle = make(0);
    idle.always(always_);
    idle.when_wanted(first_);
    idle.run(0);
    idle.want();
    always_.packets = 3;
    EXPECT_EQ(idle.run(0), 3);
    EXPECT_EQ(idle.run(2), 5);
    EXPECT_EQ(take_runs(), "aaFA");
    EXPECT_TRUE(idle.has_work());
}

TEST_F(IdleTest, it_sleeps_after_many_empty_polls_if_somebody_wants_the_processor) {
    Idle idle = make(1);
    EXPECT_TRUE(own_->may_doze);
    EXPECT_EQ(polls_until_sleep(idle), platform::kPollsToSleep);
    idle.found_some();
    EXPECT_EQ(polls_until_sleep(idle), platform::kPollsToSleep);
    wanted_ = false;
    EXPECT_EQ(polls_until_sleep(idle), 0U);
    wanted_ = true;
}

// Work is looked around after so many polls, too, which are fewer than those of a sleep.
TEST_F(IdleTest, it_sleeps_beside_work_that_lets_it) {
    Idle idle = make(1);
    idle.when_wanted(first_);
    first_.left = INT_MAX;
    idle.want();
    for (unsigned polls = 1; polls <= platform::kPollsToSleep; ++polls) idle.run(0);
    const int awake = host_.looks;
    first_.lets = true;
    idle.found_some();
    for (unsigned polls = 1; polls <= platform::kPollsToSleep; ++polls) idle.run(0);
    EXPECT_EQ(host_.looks, 2 * awake + 1);
}

TEST_F(IdleTest, of_a_pair_each_sleeps_only_if_the_other_has_nothing_to_do) {
    FakeEngine other_host;
    auto other_own = std::make_unique<fabric::shm::SegmentHeader>();
    Idle idle = make(0, false);
    {
        Idle other(other_host, mutex_, *other_own, 1, true);
        idle.pair_with(other);
        EXPECT_TRUE(idle.sleeps());
        EXPECT_EQ(polls_until_sleep(idle), 0U) << "the other has not been polled";
        for (unsigned polls = 0; polls < platform::kPollsToSleep; ++polls) other.sleep();
        EXPECT_GT(polls_until_sleep(idle), 0U);
        other.want();
        EXPECT_EQ(polls_until_sleep(idle), 0U) << "the other has work";
    }
    EXPECT_FALSE(idle.sleeps()) << "alone it does not";
}

// Of a process that several threads poll, with processors of their own or not.
class ThreadsIdleTest : public IdleTest {
 protected:
    ThreadsIdleTest() {
        questions_ = 0;
        Idle::processor_is_wanted = [] { return ++questions_, wanted_; };
    }
    ~ThreadsIdleTest() override { wanted_ = true; }
    // How often the processor was offered at so many looks for it.
    static int questions_at(unsigned looks, Idle& idle) {
        const int before = questions_;
        for (unsigned polls = 0; polls < looks * platform::kPollsToSleep; ++polls) idle.sleep();
        return questions_ - before;
    }

    static inline int questions_ = 0;
    platform::OptionalMutex threads_{true};
};

TEST_F(ThreadsIdleTest, it_sleeps_many_times_for_one_offer_of_the_processor) {
    Idle idle(host_, threads_, *own_, 1, true);
    EXPECT_EQ(questions_at(64, idle), 1);
    EXPECT_EQ(host_.looks, 64);
    EXPECT_EQ(questions_at(1, idle), 1);
}

TEST_F(ThreadsIdleTest, where_each_thread_has_its_processor_it_is_seldom_offered) {
    Idle idle(host_, threads_, *own_, 1, true);
    wanted_ = false;
    EXPECT_EQ(questions_at(32, idle), 2);
    wanted_ = true;
    EXPECT_EQ(questions_at(16, idle), 1);
    EXPECT_GT(host_.looks, 0);
}

TEST_F(ThreadsIdleTest, what_another_thread_wants_wakes_it_and_keeps_it_awake) {
    Idle idle(host_, threads_, *own_, 1, true);
    idle.when_wanted(first_);
    own_->pointers.doze = 1;
    idle.want();
    EXPECT_EQ(own_->pointers.doze, 0U);
    questions_at(3, idle);
    EXPECT_EQ(host_.looks, 0);
}

TEST_F(ThreadsIdleTest, who_is_turned_away_offers_its_processor_if_that_is_wanted) {
    Idle idle(host_, threads_, *own_, 1, true);
    for (unsigned polls = 0; polls < 10 * platform::kPollsToSleep; ++polls) idle.turned_away();
    EXPECT_EQ(questions_, 0);
    questions_at(1, idle);
    questions_ = 0;
    for (unsigned polls = 0; polls < 10 * platform::kPollsToSleep; ++polls) idle.turned_away();
    EXPECT_EQ(questions_, 10);
}

// The scheduling policy of a thread that has polled for long.
TEST_F(ThreadsIdleTest, a_thread_displaces_no_other_once_its_processor_is_wanted) {
    const auto policy_after = [this](platform::OptionalMutex& mutex, bool wanted, int before = SCHED_OTHER) {
        wanted_ = wanted;
        int policy = -1;
        std::thread([&] {
            const sched_param none{};
            ASSERT_EQ(sched_setscheduler(0, before, &none), 0);
            Idle idle(host_, mutex, *own_, 1, true);
            questions_at(1, idle);
            policy = sched_getscheduler(0);
        }).join();
        return policy & ~SCHED_RESET_ON_FORK;
    };
    EXPECT_EQ(policy_after(threads_, true), SCHED_BATCH);
    EXPECT_EQ(policy_after(threads_, false), SCHED_OTHER);
    EXPECT_EQ(policy_after(mutex_, true), SCHED_OTHER) << "a process without threads yields and sleeps";
    EXPECT_EQ(policy_after(threads_, true, SCHED_IDLE), SCHED_IDLE) << "the program's own choice";
}

TEST_F(ThreadsIdleTest, of_a_pair_none_sleeps_and_each_offers_its_processor) {
    FakeEngine other_host;
    auto other_own = std::make_unique<fabric::shm::SegmentHeader>();
    Idle other(other_host, threads_, *other_own, 1, true);
    Idle idle(host_, threads_, *own_, 0, false);
    idle.pair_with(other);
    EXPECT_EQ(questions_at(10, idle), 10);
    EXPECT_EQ(questions_at(10, other), 10);
    EXPECT_EQ(host_.looks + other_host.looks, 0);
}

}  // namespace
}  // namespace velo::engine
