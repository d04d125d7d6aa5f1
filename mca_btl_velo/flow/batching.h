// When a batch (wire/batch.h) is opened, what it takes, and how large a chunk it asks for: the same for the
// plugin, the simulator and the explored schedules.
#pragma once

#include <cstddef>
#include <cstdint>

#include "flow/outbox.h"
#include "wire/batch.h"

namespace velo::flow {

// Of a message at most.
inline constexpr std::size_t kMostBatchedBytes = 8448;

// One of a burst goes in a batch if it takes more packets than those allowed >> this: so a burst is spread
// over few credits, and some are left for other messages.
inline constexpr unsigned kBatchShift = 2;

// A message that no open batch takes.
struct BatchCase {
    std::uint32_t packets, allowed;  // that it would take, and that may leave
    bool counted;                    // credits are
    bool bursts;       // its sender has not rested since another one, and nothing has come from the peer
    bool others_wait;  // it has waited, and another one behind it
};
// design/batches.md, B1.
constexpr bool opens_batch(const BatchCase& message) {
    if (message.allowed == 0) return false;
    if (message.others_wait) return true;
    const bool outgrows = message.bursts && message.packets > message.allowed >> kBatchShift;
    return message.counted && (message.allowed == 1 || outgrows);
}

// Of a batch: as much as a REF may stand for, so that few credits carry many messages.
inline constexpr std::size_t kBatchChunkBytes = OutboxPlan::kMostRoom;
static_assert(wire::batch_bytes(kMostBatchedBytes) <= kBatchChunkBytes);

}  // namespace velo::flow
