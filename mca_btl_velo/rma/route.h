// Which way a get takes: single copy by this process, dual copy by both (dual_copy.h), or through the mailbox
// with both at work. Which is fastest depends on where the data are and on what their owner does meanwhile:
// single copy if it is busy, dual copy if it waits, the mailbox for what it has just written, because then
// each line changes hands once instead of twice. So it is measured on the transfers themselves, for each size
// class.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace velo::rma {

enum class Route : std::uint8_t { kSingleCopy, kDualCopy, kMailbox };
inline constexpr std::size_t kRoutes = 3;

class RouteChooser {
 public:
    // Below, the costs of a route do not differ enough to be worth a measurement; above, the data exceed the
    // caches.
    static constexpr std::uint64_t kLeast = 4UL * 1024, kMost = 128UL * 1024 * 1024 - 1;
    static constexpr bool covers(std::uint64_t bytes) { return bytes >= kLeast && bytes <= kMost; }
    // The route of a get that is not measured.
    static constexpr Route otherwise(std::uint64_t bytes) {
        return bytes < kLeast ? Route::kSingleCopy : Route::kDualCopy;
    }

    // For a get of `bytes` (covered) from a process that is near or far (endpoint/distance.h).
    Route choose(std::uint64_t bytes, bool far) {
        far_ = far;
        Class& size = class_of(bytes);
        // Several gets may be started before one is complete.
        if (size.trial && ++size.started > trial_of(bytes)) return size.best;
        return size.current;
    }

    // `count` gets of about `bytes` by this route took `ticks` each. Each route is tried at first, and again
    // after a number of transfers that grows as long as the outcome stays the same.
    void measured(Route route, std::uint64_t bytes, std::uint64_t ticks, int count = 1) {
        Class& size = class_of(bytes);
        if (route != size.current) return;  // started before the last decision
        int before = size.seen;
        size.seen += count;
        // The first ones of a trial pay for moving the data from where the route before has left them.
        if (!size.trial || before >= kUncounted || size.seen >= trial_of(bytes)) {
            float sample = static_cast<float>(ticks) / static_cast<float>(bytes);
            float& mean = size.cost[static_cast<std::size_t>(route)];
            // A process that was not running for a while says nothing about the route. What a trial shows to
            // take less is so: what came before was cold, or long ago.
            const bool anew = mean == 0 || (size.trial && sample < mean);
            mean = anew ? sample : mean + (std::min(sample, 4 * mean) - mean) / 4;
        }
        if (size.seen < (size.trial ? trial_of(bytes) : size.run)) return;
        size.started = 0;
        size.seen = 0;
        size.current = next_candidate(bytes, size);
        size.trial = size.current != size.best;
        if (!size.trial)
            decide(bytes, size);
        else if (!size.warm())
            size.cost[static_cast<std::size_t>(size.current)] = 0;
    }

 private:
    static constexpr int kUncounted = 2;
    // Transfers of a trial. Long ones differ less from each other, and cost more.
    static constexpr int trial_of(std::uint64_t bytes) { return bytes < 1024UL * 1024 ? 8 : 4; }
    // What the very first transfers cost, page faults included, is good for a short run only.
    static constexpr int kFirstRun = 16, kShortestRun = 64, kLongestRun = 4096;
    static constexpr float kClear = 1.5F, kHopeless = 4, kKept = 0.95F;
    static constexpr std::uint64_t kLeastDual = 32UL * 1024, kMostMailbox = 4UL * 1024 * 1024 - 1;
    // What the reader's time does not show (measured: design/shared-memory.md). Dual copy takes its owner's
    // time as well.
    static constexpr float kOwnersHelp = 1.08F;
    // A copy by the kernel takes the lines of the user's buffer from their owner, who pays for it when the
    // buffer is written again, and more the farther they have gone, if they are not few; by two processes in
    // less of the reader's time.
    static constexpr std::uint64_t kFewLines = 32UL * 1024 - 1;
    static constexpr float kNear = 1.05F, kNearByTwo = 1.15F, kFarFew = 1.1F, kFar = 1.3F, kFarByTwo = 1.6F;
    static constexpr unsigned kFirstClass = 12, kClasses = 15;

    struct Class {
        std::array<float, kRoutes> cost{};  // ticks per byte; 0: not tried yet
        int seen = 0;                       // transfers measured since `current` was chosen
        int started = 0;                    // of a trial
        int run = kShortestRun;             // transfers between trials
        Route current = Route::kSingleCopy;
        Route best = Route::kSingleCopy;
        bool trial = true;
        int choices = 0;

        bool warm() const { return choices > 1; }
    };

    static bool possible(Route route, std::uint64_t bytes) {
        return route == Route::kSingleCopy || (route == Route::kDualCopy && bytes >= kLeastDual) ||
               (route == Route::kMailbox && bytes <= kMostMailbox);
    }
    // A route that was far from the best is only tried when nothing has changed for long.
    static bool worth_a_trial(Route route, const Class& size) {
        return !size.warm() || size.run == kLongestRun ||
               cost_of(route, size) <= kHopeless * cost_of(size.best, size);
    }
    static Route next_candidate(std::uint64_t bytes, const Class& size) {
        Route route = size.current;
        do route = static_cast<Route>((static_cast<std::size_t>(route) + 1) % kRoutes);
        while (route != size.best && !(possible(route, bytes) && worth_a_trial(route, size)));
        return route;
    }
    // All routes have been tried, in turn, up to the one in use.
    void decide(std::uint64_t bytes, Class& size) {
        Route best = cheapest(bytes, size);
        bool settled = best == size.best || clear(bytes, size, best);
        if (size.choices++ == 0)
            size.run = kFirstRun;
        else
            size.run = settled ? std::min(4 * size.run, kLongestRun) : kShortestRun;
        size.current = size.best = best;
    }
    static float cost_of(Route route, const Class& size) {
        return size.cost[static_cast<std::size_t>(route)];
    }
    Route cheapest(std::uint64_t bytes, const Class& size) const {
        // What is about equal stays as it is: a change costs more than it brings.
        const auto cost = [&](Route route) {
            return cost_of(route, size) * (size.warm() && route == size.best ? kKept : 1.0F);
        };
        const float single = cost(Route::kSingleCopy), dual = cost(Route::kDualCopy);
        const float mailbox = cost(Route::kMailbox);
        const float by_one = !far_ ? kNear : bytes <= kFewLines ? kFarFew : kFar;
        const float by_two = far_ ? kFarByTwo : kNearByTwo;
        const bool two = possible(Route::kDualCopy, bytes);
        if (possible(Route::kMailbox, bytes) && mailbox < single * by_one &&
            (!two || mailbox < dual * by_two))
            return Route::kMailbox;
        return two && dual * kOwnersHelp < single ? Route::kDualCopy : Route::kSingleCopy;
    }
    // No other route comes near.
    static bool clear(std::uint64_t bytes, const Class& size, Route best) {
        for (Route route : {Route::kSingleCopy, Route::kDualCopy, Route::kMailbox}) {
            if (route != best && possible(route, bytes) &&
                cost_of(route, size) < kClear * cost_of(best, size))
                return false;
        }
        return true;
    }
    Class& class_of(std::uint64_t bytes) {
        return classes_[static_cast<unsigned>(std::bit_width(bytes)) - 1 - kFirstClass];
    }

    std::array<Class, kClasses> classes_;
    bool far_ = false;  // whoever was asked last
};

// The cost of gets that overlap: of a number of them together, from the first start to the last completion.
class OverlappingGets {
 public:
    struct Sample {
        std::uint64_t ticks;  // for each get
        int count;            // 0: not yet
    };

    void started(std::uint64_t now) {
        if (under_way_++ == 0) begin(now);
    }
    // A get of `bytes` is complete.
    Sample completed(std::uint64_t bytes, std::uint64_t now) {
        --under_way_;
        bytes_ += bytes;
        if (++completed_ < kTogether && under_way_ > 0) return {0, 0};
        Sample sample{static_cast<std::uint64_t>(static_cast<double>(now - begin_) *
                                                 static_cast<double>(bytes) / static_cast<double>(bytes_)),
                      completed_};
        begin(now);
        return sample;
    }

 private:
    static constexpr int kTogether = 4;

    void begin(std::uint64_t now) {
        begin_ = now;
        bytes_ = 0;
        completed_ = 0;
    }

    std::uint64_t begin_ = 0, bytes_ = 0;
    int under_way_ = 0, completed_ = 0;
};

}  // namespace velo::rma
