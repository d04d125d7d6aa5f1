// The other end: takes datagrams in any order, hands them on in theirs, each once.
#pragma once

#include <vector>

#include "collectives/multicast/config.h"

namespace velo::multicast {

class Receiver {
 public:
    explicit Receiver(const Config& config)
        : expected_(config.first), known_(config.first), present_(config.window) {}

    Sequence expected() const { return expected_; }       // the first that is not here
    bool has_gap() const { return expected_ != known_; }  // something has been sent that is not here
    // Between the first that is missing and the end of the window: nothing else is ever on its way but what
    // is old.
    bool in_window(Sequence sequence) const {
        return distance(expected_, sequence) >= 0 && sequence - expected_ < present_.size();
    }
    bool has(Sequence sequence) const {
        return distance(expected_, sequence) < 0 || (in_window(sequence) && present_[slot(sequence)]);
    }
    // Everything before `end` has been sent.
    void learn(Sequence end) {
        if (distance(known_, end) > 0) known_ = end;
    }

    // In the window and not here yet.
    void take(Sequence sequence) {
        present_[slot(sequence)] = true;
        learn(sequence + 1);
    }
    // The next in order, if it is here.
    bool next_is_here() const { return present_[slot(expected_)]; }
    Sequence pass_on() {
        present_[slot(expected_)] = false;
        return expected_++;
    }
    // Nothing has been taken yet: the stream begins there.
    void start_at(Sequence first) { expected_ = known_ = first; }
    // Everything before `next`, which is ahead of expected(), has come another way.
    void skip_to(Sequence next) {
        for (std::uint32_t i = 0; i < present_.size() && distance(expected_ + i, next) > 0; ++i)
            present_[slot(expected_ + i)] = false;
        expected_ = next;
        learn(next);
    }

    // Bit i: expected() + i is missing.
    std::uint64_t missing() const {
        std::uint64_t mask = 0;
        for (std::uint32_t i = 0; i < Datagram::kMissing && distance(expected_ + i, known_) > 0; ++i)
            if (!present_[slot(expected_ + i)]) mask |= std::uint64_t{1} << i;
        return mask;
    }

    void append_state(std::vector<std::uint32_t>& state) const {
        state.insert(state.end(), {expected_, known_});
        state.insert(state.end(), present_.begin(), present_.end());
    }

 private:
    std::size_t slot(Sequence sequence) const { return sequence & (present_.size() - 1); }

    Sequence expected_, known_;
    std::vector<bool> present_;
};

}  // namespace velo::multicast
