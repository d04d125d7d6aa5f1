#include "collectives/multicast/collector.h"

#include <algorithm>

namespace velo::multicast {

Collector::Collector(const std::vector<std::uint32_t>& set, const Config& config)
    : low_(config.first), at_low_(set.size()), asked_(set.empty() ? 0 : config.window) {
    set_.reserve(set.size());
    for (const std::uint32_t member : set) set_.push_back({member, config.first, member});
}

std::size_t Collector::find(std::uint32_t member) const {
    const auto found = std::ranges::lower_bound(set_, member, {}, &Position::member);
    return found == set_.end() || found->member != member ? set_.size()
                                                          : static_cast<std::size_t>(found - set_.begin());
}

Collector::Heard Collector::acknowledge(std::uint32_t member, Sequence next, Sequence most,
                                        std::uint32_t slowest) {
    const std::size_t index = find(member);
    if (index == set_.size() || distance(next, most) < 0) return Heard::kImpossible;
    Position& position = set_[index];
    if (distance(position.next, next) >= 0) position.slowest = slowest;
    if (distance(position.next, next) <= 0) return Heard::kNothingNew;
    const bool was_last = position.next == low_ && --at_low_ == 0;
    position.next = next;
    if (!was_last) return Heard::kNothingNew;
    low_ = std::ranges::min_element(set_, [](const Position& a, const Position& b) {
               return distance(a.next, b.next) > 0;
           })->next;
    at_low_ = static_cast<std::size_t>(std::ranges::count(set_, low_, &Position::next));
    return Heard::kProgress;
}

bool Collector::asked(std::uint32_t member, Sequence sequence) {
    Asked& asked = asked_[slot(sequence)];
    asked.lacking += member != asked.last;
    asked.last = member;
    if (asked.lacking < 2 || asked.lacking <= set_.size() / 4) return false;
    asked = {};
    return true;
}

void Collector::append_state(std::vector<std::uint32_t>& state) const {
    for (const Position& position : set_) state.push_back(position.next);
    for (const Asked& asked : asked_) state.insert(state.end(), {asked.lacking, asked.last});
}

}  // namespace velo::multicast
