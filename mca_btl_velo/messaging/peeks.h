// What probes have asked a peer that holds messages back, and what it has answered: one for each pattern, and
// of so many patterns that one more would be too many, an answered one is forgotten.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "matching/key.h"

namespace velo::messaging {

struct Parked;

struct Peek {
    // Of kTaking the answer is waited for, and kTaken has it: neither is ever forgotten.
    enum class State : std::uint8_t { kAsked, kNothing, kSeen, kTaking, kTaken };
    matching::Key pattern;
    State state = State::kNothing;
    matching::Key found{};  // of the first message that the pattern matches there, if it was seen
    std::uint64_t bytes = 0, id = 0;
    Parked* taken = nullptr;
};

class Peeks {
 public:
    static constexpr std::size_t kMost = 64;

    bool empty() const { return list_.empty(); }
    // A pointer is valid until the next call that is not const.
    Peek* find(const matching::Key& pattern) {
        const auto found = std::find_if(list_.begin(), list_.end(),
                                        [&](const Peek& peek) { return peek.pattern == pattern; });
        return found == list_.end() ? nullptr : &*found;
    }
    // The one of that pattern, a new one if there is none. nullptr: of too many all wait for their answers.
    Peek* of(const matching::Key& pattern) {
        if (Peek* known = find(pattern)) return known;
        if (list_.size() >= kMost && !evict()) return nullptr;
        return &list_.emplace_back(Peek{.pattern = pattern});
    }
    // Returns what was taken, possibly nothing.
    Parked* end(const Peek* peek) {
        Parked* const taken = peek->taken;
        list_.erase(list_.begin() + (peek - list_.data()));
        return taken;
    }
    // The message with this id is not at its sender any more.
    void forget(std::uint64_t id) {
        std::erase_if(list_,
                      [id](const Peek& peek) { return peek.state == Peek::State::kSeen && peek.id == id; });
    }
    // The peer holds nothing back any more. What is being taken is answered in any case.
    void stop() {
        std::erase_if(list_, [](const Peek& peek) { return peek.state < Peek::State::kTaking; });
    }
    // The peer has departed: nothing is answered any more.
    void depart() {
        stop();
        for (Peek& peek : list_) peek.state = Peek::State::kTaken;
    }

 private:
    // Any one that is answered, by lot: whatever the order of the probes, each keeps a chance.
    bool evict() {
        lot_ = lot_ * 1664525 + 1013904223;
        const auto from = list_.begin() + static_cast<std::ptrdiff_t>((lot_ >> 16) % list_.size());
        const auto may_go = [](const Peek& peek) {
            return peek.state == Peek::State::kNothing || peek.state == Peek::State::kSeen;
        };
        auto old = std::find_if(from, list_.end(), may_go);
        if (old == list_.end()) old = std::find_if(list_.begin(), list_.end(), may_go);
        if (old == list_.end()) return false;
        list_.erase(old);
        return true;
    }

    std::vector<Peek> list_;
    std::uint32_t lot_ = 0;
};

}  // namespace velo::messaging
