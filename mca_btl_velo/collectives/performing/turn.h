// Who may start operations.
#pragma once

#include <mutex>

namespace velo::performing {

// As platform::OptionalMutex; with one thread, too, a second one finds it taken.
class Turn {
 public:
    explicit Turn(bool threads) : threads_(threads) {}
    void lock() {
        if (threads_) mutex_.lock();
        taken_ = true;
    }
    bool try_lock() {
        if (threads_ ? !mutex_.try_lock() : taken_) return false;
        taken_ = true;
        return true;
    }
    void unlock() {
        taken_ = false;
        if (threads_) mutex_.unlock();
    }

 private:
    bool threads_, taken_ = false;
    std::mutex mutex_;
};

}  // namespace velo::performing
