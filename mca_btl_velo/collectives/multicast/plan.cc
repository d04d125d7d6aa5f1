#include "collectives/multicast/plan.h"

#include <algorithm>
#include <cmath>

namespace velo::multicast {
namespace {

// Binomial trees over places 0..n-1 whose root is 0: the lowest set bit of a place is the way to its father.
std::uint32_t father(std::uint32_t place) {
    return place & (place - 1);
}

template <typename Visit>
void for_each_child(std::uint32_t place, std::uint32_t n, Visit visit) {
    for (std::uint64_t bit = 1; place + bit < n && (place & bit) == 0; bit <<= 1)
        visit(place + static_cast<std::uint32_t>(bit));
}

}  // namespace

Plan::Plan(const Config& config, std::uint32_t source)
    : members_(config.members),
      source_(source),
      scheme_(config.scheme),
      relays_(config.scheme == Scheme::kCoroot && config.reliable_transfer) {
    std::uint32_t sets = 1;
    if (scheme_ == Scheme::kCoroot)
        sets = config.co_roots == kSquareRoot ? static_cast<std::uint32_t>(std::lround(std::sqrt(members_)))
                                              : config.co_roots + 1;
    set_size_ = (members_ + sets - 1) / sets;
    sets_ = (members_ + set_size_ - 1) / set_size_;
}

std::uint32_t Plan::head_of_set(std::uint32_t set) const {
    return set == set_number(source_) ? source_ : set * set_size_;
}

std::uint32_t Plan::collector_of(std::uint32_t member) const {
    if (member == source_) return source_;
    if (scheme_ == Scheme::kTree)
        return (father((member + members_ - source_) % members_) + source_) % members_;
    if (scheme_ != Scheme::kCoroot) return source_;
    const std::uint32_t head = head_of_set(set_number(member));
    return member == head ? source_ : head;
}

std::vector<std::uint32_t> Plan::set_of(std::uint32_t member) const {
    std::vector<std::uint32_t> set;
    if (scheme_ == Scheme::kTree)
        for_each_child((member + members_ - source_) % members_, members_,
                       [&](std::uint32_t place) { set.push_back((place + source_) % members_); });
    else if (repairs(member))
        for (std::uint32_t other = 0; other < members_; ++other)
            if (other != source_ && collector_of(other) == member) set.push_back(other);
    std::ranges::sort(set);
    return set;
}

bool Plan::repairs(std::uint32_t member) const {
    return member == source_ || (scheme_ == Scheme::kCoroot && head_of_set(set_number(member)) == member);
}

std::vector<std::uint32_t> Plan::relays_of(std::uint32_t member) const {
    std::vector<std::uint32_t> relays;
    if (!relays_ || !repairs(member)) return relays;
    // Places of sets, counted from that of the source on.
    const std::uint32_t home = set_number(source_);
    for_each_child((set_number(member) + sets_ - home) % sets_, sets_,
                   [&](std::uint32_t place) { relays.push_back(head_of_set((place + home) % sets_)); });
    return relays;
}

}  // namespace velo::multicast
