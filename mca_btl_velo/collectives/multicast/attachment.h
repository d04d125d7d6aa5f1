// Whether a process that gets its data from the leader of its node joins the multicast group itself: who has
// waited too long for a late leader too often does, and goes back when the leader has long been in time.
// Pure, as Member is; the Member of a process that has joined is `attached`.
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/multicast/timer.h"

namespace velo::multicast {

class Attachment {
 public:
    struct Config {
        bool dynamic = true;                      // static: never
        std::uint64_t attach_after_ns = 800'000;  // longer than that is late
        std::uint32_t patience = 3;               // late runs that are borne
        std::uint32_t detach_after = 1000;        // runs in time, one after the other, that make up for them
        std::uint32_t window = 8;                 // runs that the process may be ahead of its leader
    };
    enum class Change { kNone, kJoin, kLeave };

    explicit Attachment(const Config& config) : config_(config), entered_ns_(config.window) {}

    bool attached() const { return attached_; }
    std::uint64_t joins() const { return joins_; }
    std::uint64_t leaves() const { return leaves_; }
    std::uint64_t late() const { return late_in_all_; }

    // The process wants the data of the next run. False: it is too far ahead of its leader to go on.
    bool entered(std::uint64_t now_ns);
    // The leader has the data of the next run for it.
    Change led(std::uint64_t now_ns);
    // When the leader will be late; kNever: the process waits for nothing that is not counted already.
    std::uint64_t deadline() const;
    Change tick(std::uint64_t now_ns);

 private:
    std::uint64_t& entry(std::uint64_t run) { return entered_ns_[run % entered_ns_.size()]; }
    Change changed();

    Config config_;
    std::vector<std::uint64_t> entered_ns_;  // by run, of those between led_ and entered_
    // Runs: those that the leader has passed on, that are known to be late or passed on, that were entered.
    std::uint64_t led_ = 0, judged_ = 0, entered_ = 0;
    std::uint32_t late_ = 0, in_time_ = 0;
    std::uint64_t joins_ = 0, leaves_ = 0, late_in_all_ = 0;
    bool attached_ = false;
};

}  // namespace velo::multicast
