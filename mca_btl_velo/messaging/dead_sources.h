// Receives from processes that were killed: they end with an error instead of waiting. Under the messenger's
// mutex.
#pragma once

#include <vector>

#include "engine/peers/peer.h"
#include "matching/posted_queue.h"

namespace velo::messaging {

class DeadSources {
 public:
    using IsDead = bool (*)(void* context, std::uint32_t of_context, std::int32_t source);

    void watch(IsDead is_dead, void* context) {
        is_dead_ = is_dead;
        context_ = context;
    }
    bool any() const { return any_; }
    bool waits_in_vain(const matching::Posted& receive) const {
        return any_ && receive.pattern.source != matching::kAnySource &&
               is_dead_(context_, receive.pattern.context, receive.pattern.source);
    }
    // The peer has departed. Takes the receives that wait in vain out of the queue, if it was killed.
    std::vector<matching::Posted*> departed(const engine::Peer& peer, matching::PostedQueue& queue) {
        std::vector<matching::Posted*> all;
        if (is_dead_ == nullptr || !peer.died.load(std::memory_order_relaxed)) return all;
        any_ = true;
        for (std::vector<matching::Posted*> found;; found.clear()) {
            queue.for_each_front([&](matching::Posted& front) {
                if (waits_in_vain(front)) found.push_back(&front);
            });
            if (found.empty()) return all;
            for (matching::Posted* posted : found) queue.remove(posted);
            all.insert(all.end(), found.begin(), found.end());
        }
    }

 private:
    IsDead is_dead_ = nullptr;
    void* context_ = nullptr;
    bool any_ = false;
};

}  // namespace velo::messaging
