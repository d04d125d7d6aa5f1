// A run that is executed by an engine: who asked for it, which number it has, what it waits for.
#pragma once

#include <atomic>
#include <memory>

#include "endpoint/peer.h"
#include "goal/run.h"
#include "performing/compiled.h"
#include "types/goal.h"

namespace velo::performing {

struct Group;
struct LiveRun;
class Performer;

// A message of a run that is under way.
struct Slot {
    union {
        velo_message_receive receive;  // first: callbacks find the slot by it
        velo_message_send send;
    };
    Performer* performer;
    LiveRun* run;  // none: what comes has been had by multicast, or what is sent is a copy
    goal::Vertex vertex;
    velo_status status;  // when it has been told
    endpoint::Peer* peer;
    Slot *previous, *next;  // of a receive: those of its run. `next`: also those that are free
    Slot* told;             // that were told before
    bool receives;
    bool shared;                          // of a receive: it may come by multicast, too
    bool led;                             // of a receive: it comes from who leads, or by him
    const goal::Piece* piece;             // of a receive in pieces: where it goes on
    std::uint64_t position;               // in that piece
    std::unique_ptr<std::byte[]> packed;  // of a send in pieces, or that the run does not wait for
};

// Everything but `over` belongs to whoever has the performer's turn.
struct LiveRun : goal::Run {
    LiveRun(Performer& by, Compiled& of);

    Performer* performer;
    std::shared_ptr<Compiled> compiled;  // none: idle
    std::shared_ptr<Group> group;
    velo_goal_start start{};
    std::uint64_t number = 0;
    std::uint32_t context = 0;  // of its messages
    std::uint32_t first_tag = 0;
    std::uint32_t round = 0;  // Group::round
    velo_goal_result result{};
    // How what all leaders of nodes get goes to them; the first of them to send it decides.
    enum class Route : std::uint8_t { kOpen, kEach, kMulticast };
    Route route = Route::kOpen;
    bool waits = false, begun = false, active = false, concluded = false;
    bool helped = false;  // the helper has been told of it
    std::atomic<bool> over{false};
    Slot* receives = nullptr;                           // that are under way
    LiveRun *previous = nullptr, *following = nullptr;  // of the performer, from its start to its end
    LiveRun* next_active = nullptr;
    std::unique_ptr<std::byte[]> scratch;
};

}  // namespace velo::performing
