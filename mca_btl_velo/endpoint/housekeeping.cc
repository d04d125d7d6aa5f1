// What waits for room or for its callback, looked at when the process polls.
#include <mutex>

#include "endpoint/engine.h"
#include "platform/ticks.h"

namespace velo::endpoint {

bool Engine::any() const {
    return !stalled_.empty() || completions_.any();
}

int Engine::run(bool) {
    {
        std::lock_guard lock(mutex_);
        flush_stalled();
        assert_invariants();
    }
    completions_.call_back();
    return looks_left_ > 0 ? look_on() : 0;
}

// What the callbacks have sent waits behind what has left, and leaves with the next credits.
int Engine::look_on() {
    int handled = 0;
    for (; looks_left_ > 0 && observer_.any_stall() && !failed_; --looks_left_) {
        handled += drain_other(velo_);
        if (remote_.domain()) handled += remote_.run(true);
        {
            std::lock_guard lock(mutex_);
            flush_stalled();
        }
        completions_.call_back();
    }
    looks_left_ = 0;
    return handled;
}

void Engine::flush_stalled() {
    const std::uint64_t now = velo_.refusal != nullptr && !stalled_.empty() ? platform::now_ns() : 0;
    std::erase_if(stalled_, [this, now](Peer* peer) {
        report_left(*peer);
        const flow::Refusal* refusal = peer->domain.refusal;
        if (refusal != nullptr && now < refusal->retry_at_ns(peer->source())) return false;
        peer->stalled = (flush(*peer) && !peer->policy().limited()) || !peer->leaving.empty();
        return !peer->stalled;
    });
}

}  // namespace velo::endpoint
