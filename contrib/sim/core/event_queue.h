// Events in the order of (time, sequence of insertion). A radix heap: nothing may be scheduled before the
// last event taken, which a simulation never does. An event sits in the bucket of the highest bit in which
// its time differs from now; the cost per event depends on the span of time that is planned ahead, not on the
// number of events (Ahuja, Mehlhorn, Orlin, Tarjan 1990).
//
// Events of equal times leave in the order in which they came: they are always in the same bucket, and a
// bucket is only ever appended to, or emptied in order into buckets that are empty.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/time.h"

namespace velo::sim {

struct Event {
    Time time;
    std::uint32_t kind : 4;
    std::uint32_t subject : 28;  // process, node or link, as the kind says
    std::uint32_t train;         // index into the pool of trains, or any other number
};
static_assert(sizeof(Event) == 16);

class EventQueue {
 public:
    Time now() const { return now_; }
    bool empty() const { return size_ == 0; }
    std::size_t size() const { return size_; }
    std::uint64_t taken() const { return taken_; }

    // `time` >= now().
    void push(Time time, unsigned kind, std::uint32_t subject, std::uint32_t train) {
        Event event{time, 0, 0, train};
        event.kind = kind & 15;
        event.subject = subject & 0xfffffff;
        put(event);
        ++size_;
    }
    // The queue must not be empty.
    Event pop() {
        if (next_ == buckets_[0].size()) refill();
        --size_;
        ++taken_;
        return buckets_[0][next_++];
    }

 private:
    void put(const Event& event) {
        const auto bucket = static_cast<std::size_t>(std::bit_width(event.time ^ now_));
        buckets_[bucket].push_back(event);
        if (bucket > 0) filled_ |= std::uint64_t{1} << (bucket - 1);
    }
    // Bucket 0 is used up: moves the next bucket into smaller ones.
    void refill() {
        buckets_[0].clear();
        next_ = 0;
        const auto bucket = static_cast<std::size_t>(std::countr_zero(filled_)) + 1;
        filled_ &= filled_ - 1;
        std::vector<Event>& from = buckets_[bucket];
        now_ = std::min_element(from.begin(), from.end(), [](const Event& a, const Event& b) {
                   return a.time < b.time;
               })->time;
        for (const Event& event : from) put(event);
        from.clear();
    }

    Time now_ = 0;
    std::array<std::vector<Event>, 65> buckets_;  // [0]: events of this very moment
    std::uint64_t filled_ = 0;                    // bit b: bucket b + 1 is not empty
    std::size_t next_ = 0;                        // position in bucket 0
    std::size_t size_ = 0;
    std::uint64_t taken_ = 0;
};

}  // namespace velo::sim
