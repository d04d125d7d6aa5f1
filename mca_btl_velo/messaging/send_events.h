// The events that a send waits for: it has left, its receiver is done with it, its data have been staged.
#pragma once

#include <atomic>
#include <cstdint>

#include "engine/engine.h"
#include "types/messages.h"

namespace velo::messaging {

// Begins to wait for so many events.
inline void expect(velo_message_send* send, std::uint32_t events) {
    send->status = VELO_OK;
    send->awaited = events;
    send->depositor = nullptr;
    send->deposit = 0;
}

// Begins to wait for the departure of a header, and for the receiver's answer.
inline void expect_answer(velo_message_send* send) {
    send->takes_header = true;
    send->placement = nullptr;
    expect(send, 2);
}

// One of the events has come; true if it is the last one. Then nobody needs the deposit any more.
inline bool is_last(velo_message_send* send) {
    std::atomic_ref<std::uint32_t> left(send->awaited);
    if (left.fetch_sub(1, std::memory_order_acq_rel) != 1) return false;
    if (send->depositor != nullptr)
        engine::engine_of(*send->depositor).large().end_deposit(*send->depositor, send->deposit);
    return true;
}

// The answer may come before the news that the message has left.
inline void settle(velo_message_send* send, velo_status status) {
    if (status != VELO_OK) send->status = status;
    if (is_last(send)) send->done(send, send->status);
}

}  // namespace velo::messaging
