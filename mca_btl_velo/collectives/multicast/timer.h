// A moment at which something is due; what waits for an answer waits longer each time that none comes.
#pragma once

#include <cstdint>

namespace velo::multicast {

inline constexpr std::uint64_t kNever = UINT64_MAX;

class Timer {
 public:
    bool armed() const { return due_ != kNever; }
    bool due(std::uint64_t now_ns) const { return due_ <= now_ns; }
    std::uint64_t due_ns() const { return due_; }
    void disarm() {
        due_ = kNever;
        times_ = 1;
    }
    void arm(std::uint64_t now_ns, std::uint64_t after_ns) {
        due_ = now_ns + after_ns;
        times_ = 1;
    }
    // Anew, as long as it waits already.
    void rearm(std::uint64_t now_ns, std::uint64_t after_ns) { due_ = now_ns + after_ns * times_; }
    // At `at_ns`, if that is earlier than it is.
    void hasten(std::uint64_t at_ns) { due_ = at_ns < due_ ? at_ns : due_; }
    // Once more, twice as long as the last time, `most` times `after_ns` at most.
    void arm_again(std::uint64_t now_ns, std::uint64_t after_ns, std::uint32_t most) {
        times_ = times_ * 2 < most ? times_ * 2 : most;
        due_ = now_ns + after_ns * times_;
    }
    // What is left of it, and how long it waits the next time.
    std::uint64_t state(std::uint64_t now_ns) const {
        return (armed() ? (due_ > now_ns ? due_ - now_ns : 0) << 8 : kNever << 8) | times_;
    }

 private:
    std::uint64_t due_ = kNever;
    std::uint32_t times_ = 1;
};

}  // namespace velo::multicast
