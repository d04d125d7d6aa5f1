#include "patterns.h"

namespace velo::schedule {
namespace {

constexpr std::uint64_t kPhaseEvents = 600;
constexpr std::uint64_t kTideEvents = 1500;
constexpr std::uint64_t kNapEvents = 400;

std::pair<std::uint32_t, std::uint32_t> any_pair(std::uint32_t processes, Random& random) {
    const std::uint32_t from = random.below(processes);
    const std::uint32_t step = random.between(1, processes - 1);
    return {from, (from + step) % processes};
}

}  // namespace

std::vector<Pattern> all_patterns() {
    return {Pattern::kAllToAll, Pattern::kIncast, Pattern::kOneWay, Pattern::kPingPong, Pattern::kRing,
            Pattern::kPhases,   Pattern::kTides,  Pattern::kSlow,   Pattern::kSleepers, Pattern::kSubgroup};
}

std::string to_string(Pattern pattern) {
    switch (pattern) {
        case Pattern::kAllToAll:
            return "all_to_all";
        case Pattern::kIncast:
            return "incast";
        case Pattern::kOneWay:
            return "one_way";
        case Pattern::kPingPong:
            return "ping_pong";
        case Pattern::kRing:
            return "ring";
        case Pattern::kPhases:
            return "phases";
        case Pattern::kTides:
            return "tides";
        case Pattern::kSlow:
            return "slow";
        case Pattern::kSleepers:
            return "sleepers";
        case Pattern::kSubgroup:
            return "subgroup";
    }
    return "?";
}

std::pair<std::uint32_t, std::uint32_t> next_message(Pattern pattern, std::uint32_t processes,
                                                     std::uint64_t step, Random& random) {
    switch (pattern) {
        case Pattern::kAllToAll:
        case Pattern::kSlow:
        case Pattern::kSleepers:
            return any_pair(processes, random);
        case Pattern::kIncast: {
            const std::uint32_t other = random.between(1, processes - 1);
            return random.chance(1, 8) ? std::pair{0U, other} : std::pair{other, 0U};
        }
        case Pattern::kOneWay: {
            auto [a, b] = any_pair(processes, random);
            return a < b ? std::pair{a, b} : std::pair{b, a};
        }
        case Pattern::kPingPong: {
            const std::uint32_t pair = random.below(processes / 2);
            return random.chance(1, 4) ? std::pair{2 * pair, 2 * pair + 1} : std::pair{0U, 0U};
        }
        case Pattern::kRing: {
            const std::uint32_t from = random.below(processes);
            return {from, (from + 1) % processes};
        }
        case Pattern::kPhases: {
            if (random.chance(1, 32)) return any_pair(processes, random);
            const std::uint32_t to = static_cast<std::uint32_t>(step / kPhaseEvents / processes % processes);
            const std::uint32_t other = static_cast<std::uint32_t>(step / kPhaseEvents % (processes - 1));
            return {(to + 1 + other) % processes, to};
        }
        case Pattern::kTides: {
            if (random.chance(1, 3)) return any_pair(processes, random);
            const std::uint32_t to = random.below(processes);
            const std::uint32_t other = static_cast<std::uint32_t>(step / kTideEvents % (processes - 1));
            return {(to + 1 + other) % processes, to};
        }
        case Pattern::kSubgroup: {
            const std::uint32_t half = processes < 4 ? 2 : processes / 2;
            return any_pair(random.chance(1, 64) ? processes : half, random);
        }
    }
    return {0, 0};
}

bool answers(Pattern pattern, std::uint32_t from, std::uint32_t to) {
    if (pattern == Pattern::kTides) return from < to;
    return pattern == Pattern::kPingPong && from + 1 == to && from % 2 == 0;
}

bool awake(Pattern pattern, std::uint32_t process, std::uint32_t processes, std::uint64_t step,
           Random& random) {
    if (pattern == Pattern::kSlow && process == processes - 1) return random.chance(1, 12);
    if (pattern == Pattern::kSleepers) return (step / kNapEvents + process) % 3 != 0;
    return true;
}

}  // namespace velo::schedule
