// The receives that wait for a message.
#pragma once

#include <array>
#include <cstdint>

#include "matching/keyed_queue.h"

namespace velo::matching {

// A receive, in memory of whoever posted it. Its pattern may hold kAnySource and kAnyTag.
struct Posted {
    Key pattern;
    std::uint64_t sequence;  // the order of posting
    Hook<Posted> hook;
};

class PostedQueue {
 public:
    void push(Posted* receive) { push(receive, receive->pattern); }
    void push(Posted* receive, const Key& pattern) {
        receive->pattern.context = pattern.context;
        receive->pattern.source = pattern.source;
        receive->pattern.tag = pattern.tag;
        receive->sequence = next_sequence_++;
        ++waiting_[kind_of(pattern)];
        queue_.push(receive, pattern);
    }

    // Takes out the receive that was posted first of those that the message matches, or nullptr.
    Posted* match(const Key& message) {
        if ((waiting_[kAnySourceOnly] | waiting_[kAnyTagOnly] | waiting_[kAnything]) == 0) [[likely]] {
            Posted* first = queue_.pop(message);
            waiting_[kExact] -= first != nullptr;
            return first;
        }
        Posted* first = find(message);
        if (first != nullptr) remove(first);
        return first;
    }

    // The same, and it stays.
    Posted* find(const Key& message) const {
        Posted* first = nullptr;
        consider(message, kExact, &first);
        consider({message.context, kAnySource, message.tag}, kAnySourceOnly, &first);
        if (message.tag >= 0) {
            consider({message.context, message.source, kAnyTag}, kAnyTagOnly, &first);
            consider({message.context, kAnySource, kAnyTag}, kAnything, &first);
        }
        return first;
    }

    void remove(Posted* receive) {
        --waiting_[kind_of(receive->pattern)];
        queue_.remove(receive);
    }

    // The receive that was posted first of those with the same pattern, or nullptr.
    Posted* front(const Key& pattern) const { return queue_.front(pattern); }
    // That of each pattern.
    template <typename Visit>
    void for_each_front(Visit visit) const {
        queue_.for_each_front(visit);
    }

    bool empty() const { return (waiting_[0] | waiting_[1] | waiting_[2] | waiting_[3]) == 0; }
    std::size_t size() const { return waiting_[0] + waiting_[1] + waiting_[2] + waiting_[3]; }

 private:
    enum Kind : std::size_t { kExact = 0, kAnySourceOnly = 1, kAnyTagOnly = 2, kAnything = 3 };

    static Kind kind_of(const Key& pattern) {
        if (pattern.source == kAnySource) return pattern.tag == kAnyTag ? kAnything : kAnySourceOnly;
        return pattern.tag == kAnyTag ? kAnyTagOnly : kExact;
    }
    static Key key_of(const Posted& receive) { return receive.pattern; }

    void consider(const Key& pattern, Kind kind, Posted** first) const {
        if (waiting_[kind] == 0) return;
        Posted* found = queue_.front(pattern);
        if (found != nullptr && (*first == nullptr || found->sequence < (*first)->sequence)) *first = found;
    }

    KeyedQueue<Posted, &Posted::hook, key_of> queue_;
    std::array<std::size_t, 4> waiting_{};  // by kind
    std::uint64_t next_sequence_ = 0;
};

}  // namespace velo::matching
