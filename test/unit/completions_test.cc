// When the callbacks of sends that have waited are called.
#include "endpoint/completions.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

namespace velo::endpoint {
namespace {

// A send that writes its name when it is done, and then does something more.
struct Named {
    Named(char its_name, std::string& in, std::uint8_t flags = 0) : name(its_name), done_in_order(in) {
        send.flags = flags;
        send.status = VELO_ERR_REMOTE;
        send.done = [](velo_send* done, velo_status status) {
            auto& self = *reinterpret_cast<Named*>(done);
            self.done_in_order += status == VELO_OK ? self.name : '!';
            if (self.then) self.then();
        };
    }
    velo_send send{};
    char name;
    std::string& done_in_order;
    std::function<void()> then;
};

class CompletionsTest : public testing::Test, private IdleHost {
 protected:
    bool is_quiet() const override { return true; }
    void look_around() override {}

    std::string done_;
    OptionalMutex mutex_{true};
    std::unique_ptr<fabric::shm::SegmentHeader> own_ = std::make_unique<fabric::shm::SegmentHeader>();
    Idle idle_{*this, mutex_, *own_, 0, true};
    Completions completions_{mutex_, idle_};
};

TEST_F(CompletionsTest, they_are_called_in_order_when_the_process_polls) {
    Named a('a', done_), b('b', done_);
    completions_.add(&a.send);
    completions_.add(&b.send);
    EXPECT_TRUE(completions_.any() && idle_.is_wanted());
    EXPECT_EQ(done_, "");
    completions_.call_back();
    EXPECT_EQ(done_, "ab");
    EXPECT_FALSE(completions_.any());
    completions_.call_back();
    EXPECT_EQ(done_, "ab") << "once";
}

TEST_F(CompletionsTest, the_engines_own_are_done_at_once) {
    Named own('o', done_, wire::kInternal);
    completions_.add(&own.send);
    EXPECT_EQ(done_, "o");
    EXPECT_FALSE(completions_.any() || idle_.is_wanted());
}

TEST_F(CompletionsTest, what_a_callback_completes_waits_for_the_next_poll_and_takes_the_mutex) {
    Named a('a', done_), b('b', done_);
    a.then = [&] {
        std::lock_guard lock(mutex_);
        completions_.add(&b.send);
    };
    completions_.add(&a.send);
    completions_.call_back();
    EXPECT_EQ(done_, "a");
    EXPECT_TRUE(completions_.any());
    completions_.call_back();
    EXPECT_EQ(done_, "ab");
}

}  // namespace
}  // namespace velo::endpoint
