#include "engine/idle/idle.h"

#include <algorithm>
#include <mutex>

namespace velo::engine {
namespace {

// Where something waits for room, a poll may last milliseconds: a crowded process yields after each.
constexpr std::uint32_t kWorkPollsBetweenLooks = 16;
// A process with threads sleeps without being oversubscribed. Where each thread has its processor, a question
// costs as much as 50 polls; where not, the kernel takes a time slice for it.
constexpr std::uint32_t kUnaskedIfFree = 15, kUnaskedIfCrowded = 63;

}  // namespace

Idle::Idle(IdleHost& host, platform::OptionalMutex& mutex, fabric::shm::SegmentHeader& own,
           std::uint32_t most_us, bool alone)
    : host_(host), mutex_(mutex), own_(own), most_us_(most_us), alone_(alone) {
    own_.may_doze = sleeps();
}

Idle::~Idle() {
    if (pair_ == nullptr) return;
    if (!pair_->alone_) pair_->most_us_ = 0;
    pair_->pair_ = nullptr;
}

void Idle::always(Work& work) {
    always_.push_back(&work);
    if (!has_work()) state_.store(State::kAlways, std::memory_order_relaxed);
}

void Idle::when_wanted(Work& work) {
    when_wanted_.push_back(&work);
}

void Idle::limit_sleep(std::uint32_t most_us) {
    most_us_ = std::min(most_us_, most_us);
}

void Idle::pair_with(Idle& other) {
    most_us_ = other.most_us_;
    own_.may_doze = sleeps();
    if (!sleeps()) return;
    pair_ = &other;
    other.pair_ = this;
}

int Idle::run(int handled) {
    for (Work* work : always_) handled += work->run(handled > 0);
    const bool wanted = is_wanted();
    bool may_sleep = true;
    if (wanted) {
        for (Work* work : when_wanted_) handled += work->run(handled > 0);
        // What is wanted from here on, by a callback or another thread, is seen by the next poll.
        std::lock_guard lock(mutex_);
        bool any = false;
        for (const auto* list : {&always_, &when_wanted_})
            for (const Work* work : *list) {
                any |= work->any();
                may_sleep &= work->lets_sleep();
            }
        const State rest = always_.empty() ? State::kNone : State::kAlways;
        state_.store(any ? State::kWanted : rest, std::memory_order_relaxed);
    }
    if (handled > 0) return handled;
    if (may_sleep && sleeps()) sleep();
    if (wanted && ++work_polls_ % kWorkPollsBetweenLooks == 0) host_.look_around();
    return 0;
}

bool Idle::may_idle_with(const Idle& other) {
    return other.empty_polls_ >= platform::kPollsToSleep / 2 && !other.is_wanted();
}

bool Idle::asks_whether_crowded() {
    if (!mutex_.is_real()) return processor_is_wanted();
    if (pair_ != nullptr || unasked_ == 0) {
        crowded_.store(processor_is_wanted(), std::memory_order_relaxed);
        unasked_ = crowded_.load(std::memory_order_relaxed) ? kUnaskedIfCrowded : kUnaskedIfFree;
    } else {
        --unasked_;
    }
    // A thread whose message has come is woken by the one that polls, inside of Open MPI. If it displaced
    // that one, it would spin until it has the processor back: for a time slice (opal/threads/wait_sync.h,
    // WAIT_SYNC_RELEASE).
    const bool crowded = crowded_.load(std::memory_order_relaxed);
    if (crowded) platform::stop_displacing();
    return crowded;
}

// Threads count together: none is right, and any is often enough.
void Idle::turned_away() {
    if (!crowded_.load(std::memory_order_relaxed)) return;
    const std::uint32_t away = away_.load(std::memory_order_relaxed) + 1;
    away_.store(away, std::memory_order_relaxed);
    if (away % platform::kPollsToSleep == 0) (void)processor_is_wanted();
}

void Idle::sleep() {
    const std::uint32_t limit_us = platform::sleep_after(++empty_polls_, most_us_);
    if (limit_us == 0) return;
    if (!asks_whether_crowded()) {
        empty_polls_ = 0;
        return;
    }
    if (has_new_work() || (mutex_.is_real() && pair_ != nullptr)) return;
    std::atomic<std::uint32_t>& word = own_.pointers.doze;
    if (pair_ == nullptr) {
        platform::doze(word, limit_us, [this] { return host_.is_quiet() && !has_new_work(); });
    } else {
        Idle& other = *pair_;
        if (!may_idle_with(other)) return;
        other.empty_polls_ = empty_polls_;
        platform::doze(word, other.own_.pointers.doze, limit_us,
                       [&] { return host_.is_quiet() && other.host_.is_quiet(); });
    }
    host_.look_around();
}

}  // namespace velo::engine
