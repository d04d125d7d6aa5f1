// Acknowledgements of the members of one set: how far the slowest is, who is behind, what they lack.
#pragma once

#include <vector>

#include "collectives/multicast/config.h"

namespace velo::multicast {

class Collector {
 public:
    Collector(const std::vector<std::uint32_t>& set, const Config& config);

    bool empty() const { return set_.empty(); }
    std::size_t size() const { return set_.size(); }
    bool collects(std::uint32_t member) const { return find(member) < set_.size(); }

    // The first that somebody lacks: of the set and of the collector itself, who has all before `own`.
    Sequence low(Sequence own) const { return set_.empty() || distance(low_, own) < 0 ? own : low_; }

    enum class Heard { kNothingNew, kProgress, kImpossible };
    // `most`: one past the last that can have been received. `slowest`: of those that `member` speaks for.
    Heard acknowledge(std::uint32_t member, Sequence next, Sequence most, std::uint32_t slowest);

    // Somebody of the set is behind.
    std::uint32_t slowest() const {
        std::size_t least = 0;
        for (std::size_t i = 1; i < set_.size(); ++i)
            if (distance(set_[i].next, set_[least].next) > 0) least = i;
        return set_[least].slowest;
    }

    template <typename Visit>
    void for_each_behind(Sequence next, Visit visit) const {
        for (const Position& position : set_)
            if (distance(position.next, next) > 0) visit(position.member);
    }

    // `member` lacks it. True: more than a quarter of the set does, two at least, so that one multicast is
    // less than what is left to be sent.
    bool asked(std::uint32_t member, Sequence sequence);
    // A new datagram takes the slot.
    void holds(Sequence sequence) {
        if (!set_.empty()) asked_[slot(sequence)] = {};
    }

    void append_state(std::vector<std::uint32_t>& state) const;

 private:
    struct Position {
        std::uint32_t member;
        Sequence next;
        std::uint32_t slowest;
    };
    std::size_t find(std::uint32_t member) const;
    std::size_t slot(Sequence sequence) const { return sequence & (asked_.size() - 1); }

    std::vector<Position> set_;  // by member
    Sequence low_;               // the least of the set
    std::size_t at_low_;         // how many are there: looked for again when none is left
    struct Asked {
        std::uint32_t lacking = 0;
        std::uint32_t last = UINT32_MAX;  // who asks again is none more
    };
    std::vector<Asked> asked_;  // by slot, since it was sent to all
};

}  // namespace velo::multicast
