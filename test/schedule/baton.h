// Runs threads one at a time and decides with a seed, at every atomic operation, which goes on: the same seed
// replays the same interleaving of the mailbox's reader and writers.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

namespace velo::test {

class Baton {
 public:
    explicit Baton(std::uint64_t seed) : random_(seed) {}

    // Runs all bodies to their ends.
    void run(const std::vector<std::function<void()>>& bodies) {
        alive_.assign(bodies.size(), true);
        std::vector<std::thread> threads;
        for (std::size_t i = 0; i < bodies.size(); ++i) {
            threads.emplace_back([this, i, &body = bodies[i]] {
                self() = this;
                wait_for_turn(i);
                body();
                alive_[i] = false;
                hand_on();
            });
        }
        {
            std::lock_guard lock(mutex_);
            turn_ = next();
        }
        changed_.notify_all();
        for (auto& thread : threads) thread.join();
    }

    // An atomic operation is about to happen in the calling thread; nothing outside of `run`.
    static void point() {
        if (self() != nullptr) self()->yield();
    }

 private:
    static Baton*& self() {
        thread_local Baton* baton = nullptr;
        return baton;
    }

    void yield() {
        std::size_t me = turn_;
        hand_on();
        wait_for_turn(me);
    }
    void hand_on() {
        {
            std::lock_guard lock(mutex_);
            turn_ = next();
        }
        changed_.notify_all();
    }
    void wait_for_turn(std::size_t me) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return turn_ == me; });
    }
    std::size_t next() {
        std::vector<std::size_t> candidates;
        for (std::size_t i = 0; i < alive_.size(); ++i) {
            if (alive_[i]) candidates.push_back(i);
        }
        return candidates.empty() ? kNobody : candidates[random_() % candidates.size()];
    }

    static constexpr std::size_t kNobody = ~std::size_t{0};
    std::mt19937_64 random_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::size_t turn_ = kNobody;
    std::vector<bool> alive_;
};

// The atomic that the mailbox is instantiated with: sequentially consistent, with a scheduling point before
// each operation. Memory orders are not modelled; memory_order_test.cc looks at those.
template <typename T>
class ScheduledAtom {
 public:
    T load(std::memory_order) const {
        Baton::point();
        return value_;
    }
    void store(T value, std::memory_order) {
        Baton::point();
        value_ = value;
    }
    T fetch_add(T amount, std::memory_order) {
        Baton::point();
        T old = value_;
        value_ += amount;
        return old;
    }
    bool compare_exchange_weak(T& expected, T desired, std::memory_order, std::memory_order) {
        Baton::point();
        if (value_ != expected) {
            expected = value_;
            return false;
        }
        value_ = desired;
        return true;
    }

 private:
    T value_{};
};

}  // namespace velo::test
