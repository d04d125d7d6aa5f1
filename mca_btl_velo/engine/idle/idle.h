// What a process does beside its mailbox when it polls: the work of its units; and its sleep.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "fabric/shm/segment.h"
#include "platform/doze.h"
#include "platform/gate.h"

namespace velo::engine {

// What a unit does beside the mailbox.
class Work {
 public:
    // Something is left: it is run at each poll. Under the mutex.
    virtual bool any() const = 0;
    // Does what can be done now, under the gate. `busy`: this poll has handled packets. Returns the number of
    // packets that were handled here.
    virtual int run(bool busy) = 0;
    // What is left needs no poll before something arrives. Under the mutex.
    virtual bool lets_sleep() const { return !any(); }

 protected:
    ~Work() = default;
};

// What Idle asks of the engine, under the gate.
class IdleHost {
 public:
    // Nothing has arrived.
    virtual bool is_quiet() const = 0;
    virtual void look_around() = 0;

 protected:
    ~IdleHost() = default;
};

class Idle {
 public:
    // Tests say themselves whether somebody waits for the processor.
    static inline bool (*processor_is_wanted)() = platform::processor_is_wanted;

    // `own`: the mailbox that others wake this process by. `most_us`: of a sleep; 0: never. `alone`: it
    // sleeps without another engine, too.
    Idle(IdleHost& host, platform::OptionalMutex& mutex, fabric::shm::SegmentHeader& own,
         std::uint32_t most_us, bool alone);
    ~Idle();
    Idle(const Idle&) = delete;
    Idle& operator=(const Idle&) = delete;

    // Before the first poll. Each poll runs what was added first first.
    void always(Work& work);       // at each poll
    void when_wanted(Work& work);  // from `want` until nothing is left
    // The network wakes nobody.
    void limit_sleep(std::uint32_t most_us);
    // Another engine of this process, which is driven as well: each sleeps only when neither has anything to
    // do, until something comes for either. Before the first peer connects.
    void pair_with(Idle& other);

    // There is work. Under the mutex, so that it is not taken for done. Another thread may sleep.
    void want() {
        state_.store(State::kWanted, std::memory_order_relaxed);
        if (mutex_.is_real()) platform::wake_if_asleep(own_.pointers.doze);
    }
    bool is_wanted() const { return state_.load(std::memory_order_relaxed) == State::kWanted; }
    // Whoever uses the engine has something to do, or waits for what would not wake it.
    void reset() noexcept {
        if (sleeps() && !mutex_.is_real()) empty_polls_ = 0;
    }
    // Another thread is in the gate.
    void turned_away();

    // Of each poll, under the gate.

    // A poll is more than a look at the mailbox.
    bool has_work() const { return state_.load(std::memory_order_relaxed) != State::kNone; }
    // `handled`: packets of this poll so far. Returns it with those that were handled here.
    int run(int handled);
    bool sleeps() const { return most_us_ > 0; }
    // Nothing has arrived. Under the gate.
    bool is_quiet() const { return host_.is_quiet(); }
    void look_around() { host_.look_around(); }
    // The poll has found nothing to do. A process with several threads and two engines offers its processor
    // instead: each mailbox has a reader of its own.
    void sleep();
    void found_some() { empty_polls_ = 0; }

 private:
    enum class State : std::uint8_t { kNone, kAlways, kWanted };
    static bool may_idle_with(const Idle& other);
    bool asks_whether_crowded();
    bool has_new_work() const { return mutex_.is_real() && is_wanted(); }

    IdleHost& host_;
    platform::OptionalMutex& mutex_;
    fabric::shm::SegmentHeader& own_;
    std::vector<Work*> always_, when_wanted_;
    std::uint32_t most_us_;
    bool alone_;
    std::uint32_t empty_polls_ = 0;       // in a row
    std::uint32_t work_polls_ = 0;        // empty ones while there is work
    std::atomic<bool> crowded_{false};    // somebody wanted the processor at the last question
    std::uint32_t unasked_ = 0;           // the next so many are answered like that one
    std::atomic<std::uint32_t> away_{0};  // polls that were turned away, roughly
    Idle* pair_ = nullptr;
    std::atomic<State> state_{State::kNone};
};

}  // namespace velo::engine
