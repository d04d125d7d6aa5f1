#include "collectives/performing/failures.h"

#include <algorithm>

namespace velo::performing {

// Of a lane: those of another one in the same context have other tags.
bool Spoiled::is_of(const matching::Key& key) const {
    return static_cast<std::uint32_t>(key.source) >> kRankBits == round >> kRankBits &&
           (run.lane == 0 || static_cast<std::uint32_t>(key.tag) / kLaneTag == first_tag / kLaneTag);
}

// Before messages of half of all rounds have been sent, each member has taken part in more runs, or groups,
// than memory has room for what it would not have taken of them.
bool Spoiled::may_come_no_more(const RunId& beginning) const {
    constexpr std::uint32_t kTimes = 1U << kTimeBits;
    if ((beginning.group ^ run.group) & 0xffff) return false;
    const std::uint32_t later = (beginning.group - run.group) >> 16 & (kTimes - 1);
    if (later > 0) return later >= kTimes / 2;
    if (run.lane != 0 || beginning.lane != 0) return run.lane == beginning.lane;
    return beginning.number >= run.number + (std::uint64_t{kWindow} << kTurnBits) / 2;
}

// What comes late for the n-th run of a lane looks like what comes early for the next one: a lane has ended
// with its first run that failed anywhere.
std::optional<velo_goal_result> Failures::begins(const RunId& run) {
    std::erase_if(spoiled_, [&](const Spoiled& s) { return s.may_come_no_more(run); });
    const auto ending = std::ranges::find_if(endings_, [&](const Ending& e) { return e.concerns(run); });
    if (ending == endings_.end()) return std::nullopt;
    const velo_goal_result why = ending->result;
    if (run.lane == 0) endings_.erase(ending);
    return why;
}

const Spoiled& Failures::stopped(const Ending& ending, const Spoiled& spoiled) {
    if (ending.run.lane != 0) keep(ending);
    return spoiled_.emplace_back(spoiled);
}

void Failures::heard(const Ending& ending) {
    const RunId& run = ending.run;
    const auto has_failed = [&](const Spoiled& s) {
        return s.run.group == run.group && s.run.lane == run.lane &&
               (run.lane == 0 ? s.run.number == run.number : s.run.number >= run.number);
    };
    if (std::ranges::none_of(spoiled_, has_failed)) keep(ending);
}

// Of a lane the first one counts.
void Failures::keep(const Ending& ending) {
    const RunId& run = ending.run;
    const auto like = std::ranges::find_if(endings_, [&](const Ending& e) {
        return e.run.group == run.group && e.run.lane == run.lane &&
               (run.lane != 0 || e.run.number == run.number);
    });
    if (like == endings_.end())
        endings_.push_back(ending);
    else if (run.number < like->run.number)
        *like = ending;
}

// A group without a name looks the same as the next one with its id.
void Failures::close(const Group& group) {
    if (group.name == group.id)
        std::erase_if(spoiled_, [&](const Spoiled& s) { return s.run.group == group.told_as(); });
    std::erase_if(endings_, [&](const Ending& e) { return (e.run.group & 0xffff) == group.id; });
}

}  // namespace velo::performing
