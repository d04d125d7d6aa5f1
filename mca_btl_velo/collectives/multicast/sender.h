// The source's end of a stream: a ring of datagrams that some member may still lack.
#pragma once

#include "collectives/multicast/share.h"

namespace velo::multicast {

class Sender {
 public:
    explicit Sender(const Config& config) : next_(config.first), low_(config.first), share_(config) {}

    Sequence next() const { return next_; }  // what is sent next
    Sequence low() const { return low_; }    // all have what is before it: slots that may be written again
    std::uint32_t under_way() const { return next_ - low_; }
    // False: a slot would be written that somebody may still ask for, or receivers have no room.
    bool has_room(std::uint32_t datagrams) const { return share_.allows(under_way(), datagrams); }
    std::uint32_t share() const { return share_.now(); }
    bool holds(Sequence sequence) const {
        return distance(low_, sequence) >= 0 && distance(sequence, next_) > 0;
    }

    Sequence send() { return next_++; }
    void free_before(Sequence low) {
        share_.got_on(low - low_, low);
        low_ = low;
    }
    void lost(Sequence sequence) { share_.lost(sequence, next_); }
    template <typename Numbers>
    void append_state(Numbers& numbers) const {
        numbers.insert(numbers.end(), {next_, low_});
        share_.append_state(numbers);
    }

 private:
    Sequence next_, low_;
    Share share_;
};

}  // namespace velo::multicast
