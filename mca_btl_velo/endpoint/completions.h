// Sends that have waited and are on their way now: their callbacks, which may send, are called when the
// process polls.
#pragma once

#include <mutex>
#include <utility>

#include "endpoint/gate.h"
#include "endpoint/idle.h"
#include "endpoint/send_queue.h"
#include "types/engine.h"
#include "wire/packet.h"

namespace velo::endpoint {

class Completions {
 public:
    Completions(OptionalMutex& mutex, Idle& idle) : mutex_(mutex), idle_(idle) {}

    // Under the mutex. The engine's own are done at once.
    void add(velo_send* send) {
        if (send->flags & wire::kInternal) return send->done(send, VELO_OK);
        send->status = VELO_OK;
        due_.push(send);
        idle_.want();
    }
    bool any() const { return !due_.empty(); }

    // Without the mutex. What a callback completes is called the next time.
    void call_back() {
        SendQueue due;
        {
            std::lock_guard lock(mutex_);
            due = std::exchange(due_, SendQueue());
        }
        while (!due.empty()) {
            velo_send* send = due.front();
            due.pop();
            send->done(send, send->status);
        }
    }

 private:
    OptionalMutex& mutex_;
    Idle& idle_;
    SendQueue due_;
};

}  // namespace velo::endpoint
