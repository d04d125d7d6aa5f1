// Runs that have failed, here or at other members: what is told of them, and what their messages look like
// that still come. With the performer's turn.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "collectives/performing/group.h"
#include "matching/key.h"
#include "messaging/protocol.h"
#include "types/goal.h"

namespace velo::performing {

// Which run it is, as members tell each other.
struct RunId {
    std::uint64_t number;
    std::uint32_t group, lane;  // Group::told_as
};

// A run that a member cannot bring to its end, as it tells those who wait for something from it: why, at
// whom, and by which number.
struct Ending {
    RunId run;
    velo_goal_result result;

    bool concerns(const RunId& other) const {
        return run.group == other.group && run.lane == other.lane &&
               (run.lane == 0 ? run.number == other.number : run.number <= other.number);
    }
};
static_assert(sizeof(Ending) == sizeof(messaging::Notice));

// A run that has failed: its messages are dropped, those of no other one.
struct Spoiled {
    RunId run;
    std::uint32_t context, round, first_tag;

    bool is_of(const matching::Key& key) const;
    bool may_come_no_more(const RunId& beginning) const;
};

class Failures {
 public:
    bool any() const { return !spoiled_.empty() || !endings_.empty(); }
    // Whose messages are dropped as they come.
    const std::vector<Spoiled>& spoiled() const { return spoiled_; }

    // A run begins: the result that it ends with at once, as another member has told.
    std::optional<velo_goal_result> begins(const RunId& run);
    // A run has failed here.
    const Spoiled& stopped(const Ending& ending, const Spoiled& spoiled);
    // Another member has told of one that is not under way here.
    void heard(const Ending& ending);
    // No run of the group is started any more. Another group may have the id.
    void close(const Group& group);

 private:
    void keep(const Ending& ending);

    std::vector<Spoiled> spoiled_;
    std::vector<Ending> endings_;  // of runs that are not begun here, and of lanes
};

}  // namespace velo::performing
