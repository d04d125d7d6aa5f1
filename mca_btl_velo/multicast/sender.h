// The source's end of a stream: a ring of datagrams that some member may still lack.
#pragma once

#include "multicast/config.h"

namespace velo::multicast {

class Sender {
 public:
    explicit Sender(const Config& config) : next_(config.first), low_(config.first), window_(config.window) {}

    Sequence next() const { return next_; }  // what is sent next
    Sequence low() const { return low_; }    // all have what is before it: slots that may be written again
    std::uint32_t under_way() const { return next_ - low_; }
    // False: a slot would be written that somebody may still ask for.
    bool has_room() const { return under_way() < window_; }
    bool holds(Sequence sequence) const {
        return distance(low_, sequence) >= 0 && distance(sequence, next_) > 0;
    }

    Sequence send() { return next_++; }
    void free_before(Sequence low) { low_ = low; }

 private:
    Sequence next_, low_;
    std::uint32_t window_;
};

}  // namespace velo::multicast
