// Finds runs that come to no end: members have called different operations, or one is late. The tags of a
// collective operation's messages have its signature, so that none is taken for one of another operation: it
// stays unexpected, and tells what its sender is in.
#pragma once

#include <atomic>
#include <cstdint>

#include "collectives/performing/run.h"
#include "messaging/messenger.h"
#include "types/engine.h"

namespace velo::performing {

// What StallWatch asks of the performer.
class StallWatchHost {
 public:
    // Takes the turn, if nobody has it, to look at the runs.
    virtual void look_for_stalls() = 0;
    virtual LiveRun* first_run() = 0;
    // Ends a run because of what another member is in.
    virtual void stop_mismatched(LiveRun& run, const velo_goal_result& why) = 0;

 protected:
    ~StallWatchHost() = default;
};

class StallWatch {
 public:
    StallWatch(StallWatchHost& host, messaging::Messenger& messenger, const velo_config& config)
        : host_(host), messenger_(messenger), config_(config) {}

    // From anywhere.
    void moved() { has_moved_.store(true, std::memory_order_relaxed); }
    // Nothing has moved in this call of progress.
    void count_idle_look() {
        const std::uint32_t looks = idle_looks_.load(std::memory_order_relaxed) + 1;
        idle_looks_.store(looks, std::memory_order_relaxed);
        if (looks % kLooksAtTheClock == 0) [[unlikely]]
            host_.look_for_stalls();
    }
    // With the turn.
    void look(std::uint64_t now_ns);

 private:
    static constexpr std::uint32_t kLooksAtTheClock = 1024;

    void compare(LiveRun& run);
    void warn(const LiveRun& run, std::uint64_t quiet_ns) const;

    StallWatchHost& host_;
    messaging::Messenger& messenger_;
    const velo_config& config_;
    std::atomic<std::uint32_t> idle_looks_{0};
    std::atomic<bool> has_moved_{false};  // since the last look
    std::uint64_t looked_ns_ = 0, quiet_since_ns_ = 0, compare_after_ns_ = 0, warn_after_ns_ = 0;
};

}  // namespace velo::performing
