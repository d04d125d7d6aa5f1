// The progress loop.
#include <mutex>

#include "engine/engine.h"
#include "engine/retrieve_now.h"

namespace velo::engine {
namespace {

// Stalls and the age of the trace's buffer are looked at after this many polls of an empty mailbox.
constexpr std::uint64_t kPollsBetweenLooks = 2048;

}  // namespace

int Engine::progress() {
    if (failed()) return 0;
    if (!gate_.try_enter()) {
        idle_.turned_away();
        return 0;
    }
    int handled = 0;
    (void)contained([&] { handled = poll(); },
                    [this](velo_status status, const char* text) { fail(status, text); });
    gate_.leave();
    return handled;
}

inline int Engine::poll() {
    if (interceptor_.active()) {
        std::lock_guard lock(mutex_);
        interceptor_.look();
    }
    int handled = retrieval_.drain_now(velo_);
    if (limic_) handled += retrieval_.drain(*limic_);
    if (idle_.has_work()) {
        handled = idle_.run(handled);
    } else if (handled == 0 && idle_.sleeps()) {
        idle_.sleep();
    }
    if (handled > 0) {
        idle_.found_some();
    } else if (pace_.count_empty_poll() % kPollsBetweenLooks == 0) [[unlikely]] {
        look_around();
    }
    return handled;
}

int Engine::run(bool) {
    {
        std::lock_guard lock(mutex_);
        pending_.flush_all();
        assert_invariants();
    }
    pending_.call_back();
    return polls_left_ > 0 ? poll_on() : 0;
}

// What the callbacks have sent waits behind what has left, and leaves with the next credits.
int Engine::poll_on() {
    int handled = 0;
    for (; polls_left_ > 0 && observer_.any_stall() && !failed(); --polls_left_) {
        handled += retrieval_.drain(velo_);
        if (remote_.domain()) handled += remote_.run(true);
        {
            std::lock_guard lock(mutex_);
            pending_.flush_all();
        }
        pending_.call_back();
    }
    polls_left_ = 0;
    return handled;
}

bool Engine::is_quiet() const {
    return velo_.reader.poll() == 0 && (!limic_ || limic_->reader.poll() == 0) && remote_.is_quiet() &&
           (!contact_ || !contact_->has_rung()) && batches_.is_quiet();
}

}  // namespace velo::engine
