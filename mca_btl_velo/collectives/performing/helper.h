// A thread of the process that goes on with large runs while the program computes. Without one it is parked;
// while the program makes progress itself it stands by. It calls nothing of the program's: what the engine
// says on this thread is kept until the program makes progress.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "types/engine.h"

namespace velo::performing {

class Helper {
 public:
    // Takes over what the engine that is opened with it tells its user; lives longer than that engine.
    explicit Helper(velo_config& engine);
    ~Helper() { stop(); }
    Helper(const Helper&) = delete;

    // Of what there is to do: there was nothing; it is not over, and waits for others; a little has been
    // done.
    enum class Step : std::uint8_t { kNothing, kOwed, kMoved };
    // `step` does not wait.
    void start(std::function<Step()> step);
    // It has ended then.
    void stop();
    // The process exits: it does nothing more, from soon on.
    void abandon() noexcept { state_.store(kStopped, std::memory_order_relaxed); }

    // A large run: from its start to its end, which the helper may tell.
    void run_begins() { runs_.fetch_add(1); }
    void run_ends() { runs_.fetch_sub(1); }
    // If it is parked; after run_begins, without a lock that the step needs.
    void wake();
    // While there is one the program makes progress itself. Tells what has been said; nullptr: nothing to do.
    class StandBy {
     public:
        explicit StandBy(Helper* helper) : helper_(helper) {
            if (helper == nullptr) [[likely]]
                return;
            helper->calls_.fetch_add(1, std::memory_order_relaxed);
            helper->within_.fetch_add(1, std::memory_order_relaxed);
            if (helper->has_said_.load(std::memory_order_relaxed)) [[unlikely]]
                helper->speak();
        }
        ~StandBy() {
            if (helper_ != nullptr) [[unlikely]]
                helper_->within_.fetch_sub(1, std::memory_order_relaxed);
        }
        StandBy(const StandBy&) = delete;

     private:
        Helper* helper_;
    };
    std::uint64_t wakes() const { return wakes_.load(std::memory_order_relaxed); }

 private:
    enum State : std::uint32_t { kAwake, kParked, kStopped };
    struct Said {
        velo_status status;
        int level;  // of a line of the log; kFatal: it is none
        std::string text;
    };
    static constexpr int kFatal = -1;

    void help();
    Step look();
    void park();
    void say(Said said);
    void speak();
    static void log(void* context, int level, const char* text);
    static void fatal(void* context, velo_status status, const char* text);

    void (*log_)(void* context, int level, const char* text);
    void (*fatal_)(void* context, velo_status status, const char* text);
    void* context_;
    std::function<Step()> step_;
    std::thread thread_;
    alignas(64) std::atomic<std::uint32_t> state_{kAwake};
    std::atomic<std::uint32_t> runs_{0};  // large ones that are under way
    std::atomic<std::uint64_t> wakes_{0};
    // Of the program: calls that make progress, and those of them that have not returned.
    alignas(64) std::atomic<std::uint64_t> calls_{0};
    std::atomic<std::uint32_t> within_{0};
    std::atomic<bool> has_said_{false};
    std::uint64_t seen_ = 0;  // of calls_
    std::mutex said_mutex_;
    std::vector<Said> said_;  // under said_mutex_
};

}  // namespace velo::performing
