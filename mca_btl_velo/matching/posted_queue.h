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
        const Kind kind = kind_of(pattern);
        if (kind == kExact && count_ < kFew && queue_is_empty()) [[likely]] {
            few_[count_++] = receive;
            return;
        }
        ++waiting_[kind];
        queue_.push(receive, pattern);
    }

    // Takes out the receive that was posted first of those that the message matches, or nullptr.
    [[gnu::always_inline]] Posted* match(const Key& message) {
        if (const std::size_t i = place_of(message); i < count_) return take(i);
        if (queue_is_empty()) return nullptr;
        if ((waiting_[kAnySourceOnly] | waiting_[kAnyTagOnly] | waiting_[kAnything]) == 0) [[likely]] {
            Posted* first = queue_.pop(message);
            waiting_[kExact] -= first != nullptr;
            return first;
        }
        return match_in_queue(message);
    }

    // The same, and it stays.
    Posted* find(const Key& message) const {
        const std::size_t i = place_of(message);
        return i < count_ ? few_[i] : find_in_queue(message);
    }

    void remove(Posted* receive) {
        for (std::size_t i = 0; i < count_; ++i) {
            if (few_[i] == receive) return (void)take(i);
        }
        remove_from_queue(receive);
    }

    // The receive that was posted first of those with the same pattern, or nullptr.
    Posted* front(const Key& pattern) const {
        const std::size_t i = place_of(pattern);
        return i < count_ ? few_[i] : queue_.front(pattern);
    }
    // That of each pattern.
    template <typename Visit>
    void for_each_front(Visit visit) const {
        const auto visit_front = [&](Posted& receive) {
            if (front(receive.pattern) == &receive) visit(receive);
        };
        for (std::size_t i = 0; i < count_; ++i) visit_front(*few_[i]);
        queue_.for_each_front(visit_front);
    }

    bool empty() const { return size() == 0; }
    std::size_t size() const { return count_ + waiting_[0] + waiting_[1] + waiting_[2] + waiting_[3]; }

 private:
    enum Kind : std::size_t { kExact = 0, kAnySourceOnly = 1, kAnyTagOnly = 2, kAnything = 3 };
    static constexpr std::size_t kFew = 4;  // see take

    static Kind kind_of(const Key& pattern) {
        if (pattern.source == kAnySource) return pattern.tag == kAnyTag ? kAnything : kAnySourceOnly;
        return pattern.tag == kAnyTag ? kAnyTagOnly : kExact;
    }
    static Key key_of(const Posted& receive) { return receive.pattern; }

    bool queue_is_empty() const { return (waiting_[0] | waiting_[1] | waiting_[2] | waiting_[3]) == 0; }

    // Of the oldest of the few with that pattern, count_: there is none.
    [[gnu::always_inline]] std::size_t place_of(const Key& pattern) const {
        std::size_t i = 0;
        while (i < count_ && few_[i]->pattern != pattern) ++i;
        return i;
    }
    // Without a loop, which the compiler would make a call of memmove.
    Posted* take(std::size_t i) {
        Posted* const taken = few_[i];
        --count_;
        if (i < 1) few_[0] = few_[1];
        if (i < 2) few_[1] = few_[2];
        if (i < 3) few_[2] = few_[3];
        return taken;
    }
    Posted* find_in_queue(const Key& message) const {
        Posted* first = nullptr;
        consider(message, kExact, &first);
        consider({message.context, kAnySource, message.tag}, kAnySourceOnly, &first);
        if (message.tag >= 0) {
            consider({message.context, message.source, kAnyTag}, kAnyTagOnly, &first);
            consider({message.context, kAnySource, kAnyTag}, kAnything, &first);
        }
        return first;
    }
    [[gnu::noinline]] Posted* match_in_queue(const Key& message) {
        Posted* first = find_in_queue(message);
        if (first != nullptr) remove_from_queue(first);
        return first;
    }
    void remove_from_queue(Posted* receive) {
        --waiting_[kind_of(receive->pattern)];
        queue_.remove(receive);
    }

    void consider(const Key& pattern, Kind kind, Posted** first) const {
        if (waiting_[kind] == 0) return;
        Posted* found = queue_.front(pattern);
        if (found != nullptr && (*first == nullptr || found->sequence < (*first)->sequence)) *first = found;
    }

    // Few receives are faster looked through than found by their keys: those that name all, oldest first,
    // wait here unless others wait in the queue, which are younger than these.
    std::array<Posted*, kFew> few_{};
    std::size_t count_ = 0;
    KeyedQueue<Posted, &Posted::hook, key_of> queue_;
    std::array<std::size_t, 4> waiting_{};  // in the queue, by kind
    std::uint64_t next_sequence_ = 0;
};

}  // namespace velo::matching
