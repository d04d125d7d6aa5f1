#include "collectives/multicast/attachment.h"

#include <algorithm>

namespace velo::multicast {

bool Attachment::entered(std::uint64_t now_ns) {
    if (entered_ >= led_ + config_.window) return false;
    if (entered_ >= led_) entry(entered_) = now_ns;
    ++entered_;
    return true;
}

std::uint64_t Attachment::deadline() const {
    const std::uint64_t run = std::max(judged_, led_);
    return run < entered_ ? entered_ns_[run % entered_ns_.size()] + config_.attach_after_ns : kNever;
}

Attachment::Change Attachment::tick(std::uint64_t now_ns) {
    while (deadline() <= now_ns) {
        judged_ = std::max(judged_, led_) + 1;
        ++late_in_all_;
        ++late_;
        in_time_ = 0;
    }
    return changed();
}

Attachment::Change Attachment::led(std::uint64_t now_ns) {
    Change change = tick(now_ns);
    if (judged_ <= led_ && ++in_time_ >= config_.detach_after) {
        late_ = in_time_ = 0;
        change = changed();
    }
    ++led_;
    return change;
}

Attachment::Change Attachment::changed() {
    const bool wanted = config_.dynamic && (attached_ ? late_ > 0 : late_ > config_.patience);
    if (wanted == attached_) return Change::kNone;
    attached_ = wanted;
    ++(wanted ? joins_ : leaves_);
    return wanted ? Change::kJoin : Change::kLeave;
}

}  // namespace velo::multicast
