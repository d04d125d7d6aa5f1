// A run that is executed over an engine: who asked for it, which number it has, what it waits for.
#pragma once

#include <atomic>
#include <memory>

#include "collectives/goal/run.h"
#include "collectives/performing/compiled.h"
#include "collectives/performing/failures.h"
#include "collectives/performing/slots.h"
#include "types/goal.h"

namespace velo::performing {

class Performer;

// Everything but `over` belongs to whoever has the performer's turn.
struct LiveRun : goal::Run {
    LiveRun(Performer& by, Compiled& of);

    RunId id() const { return {number, group->told_as(), start.lane}; }

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
