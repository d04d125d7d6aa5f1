// What a simulation has beside everything else where its processes run schedules.
#pragma once

#include <deque>
#include <vector>

#include "collectives/goal/exchange.h"
#include "collectives/goal/program.h"
#include "collectives/goal/run.h"
#include "machine/train.h"

namespace velo::sim {

struct Scheduling {
    // A message on its way: those of a pair arrive in the order in which they were sent.
    struct Sent {
        goal::Exchange::Message message;
        std::uint32_t iteration = 0;
        std::uint32_t next = kNone;
    };
    struct SentQueue {
        std::uint32_t first = kNone;
        std::uint32_t last = kNone;
    };
    // A rendezvous whose data is under way.
    struct Transfer {
        std::uint32_t receiver, sender;
        goal::Vertex receive, send;
    };

    const goal::Program* program = nullptr;
    std::vector<goal::Run> runs;
    // By iteration: what is sent in one is received in the same.
    std::deque<goal::Exchange> exchanges;
    std::vector<SentQueue> sent_of;  // as pairs_, of the sender
    std::vector<Sent> sent;
    std::uint32_t free_sent = kNone;
    std::vector<Transfer> transfers;
    std::vector<std::uint32_t> free_transfers;
};

}  // namespace velo::sim
