// How much of its window a stream may have under way: what receivers have room for is shared among all
// streams (design/multicast.md).
#pragma once

#include <algorithm>

#include "collectives/multicast/config.h"

namespace velo::multicast {

class Share {
 public:
    explicit Share(const Config& config)
        : window_(config.window),
          least_(config.share == 0 ? config.window : std::min(config.share, config.window)),
          most_(config.shares == Shares::kStatic ? least_ : window_),
          now_(most_),
          judged_(config.first) {}

    // So many, while others are under way; alone, what is sent at once may be as much as the window.
    std::uint32_t now() const { return now_; }
    std::uint32_t least() const { return least_; }
    bool allows(std::uint32_t under_way, std::uint32_t more) const {
        return under_way + more <= (under_way == 0 ? window_ : now_);
    }

    // Somebody lacks this one, and `next` has not been sent: half as much, once for all that was under way.
    void lost(Sequence sequence, Sequence next) {
        if (now_ == least_ || distance(judged_, sequence) < 0) return;
        now_ = std::max(least_, now_ / 2);
        judged_ = next;
        got_on_ = 0;
    }
    // All have so many more, and what is before `low`. As many as may be under way: one part of the window
    // more. Nothing before `low` is lost any more, so judged_ follows it: left behind by half of the circle,
    // it would take each later loss for one that has been.
    void got_on(std::uint32_t datagrams, Sequence low) {
        if (distance(judged_, low) > 0) judged_ = low;
        if (now_ == most_) return;
        got_on_ += datagrams;
        if (got_on_ < now_) return;
        got_on_ = 0;
        now_ = std::min(most_, now_ + std::max(window_ / kParts, 1U));
    }

    template <typename Numbers>
    void append_state(Numbers& numbers) const {
        numbers.insert(numbers.end(), {now_, judged_, got_on_});
    }

 private:
    static constexpr std::uint32_t kParts = 16;

    std::uint32_t window_, least_, most_, now_;
    Sequence judged_;  // losses before it have been
    std::uint32_t got_on_ = 0;
};

}  // namespace velo::multicast
