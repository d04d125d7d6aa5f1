// Locks that cost one predictable branch when the process has a single thread.
#pragma once

#include <atomic>
#include <mutex>

namespace velo::platform {

// A mutex that is only taken if several threads may call the engine.
class OptionalMutex {
 public:
    explicit OptionalMutex(bool threads) : threads_(threads) {}
    bool is_real() const { return threads_; }
    void lock() {
        if (threads_) mutex_.lock();
    }
    void unlock() {
        if (threads_) mutex_.unlock();
    }

 private:
    bool threads_;
    std::mutex mutex_;
};

// Lets one caller at a time through and turns the others away: the mailbox has one reader, and a callback
// that calls progress again finds the gate shut.
template <template <class> class Atom>
class BasicGate {
 public:
    explicit BasicGate(bool threads) : threads_(threads) {}

    bool try_enter() {
        if (threads_) return !busy_.exchange(true, std::memory_order_acquire);
        if (busy_.load(std::memory_order_relaxed)) return false;
        busy_.store(true, std::memory_order_relaxed);
        return true;
    }
    bool is_entered() const { return busy_.load(std::memory_order_relaxed); }
    void leave() { busy_.store(false, std::memory_order_release); }

 private:
    bool threads_;
    Atom<bool> busy_{false};
};

using Gate = BasicGate<std::atomic>;

}  // namespace velo::platform
