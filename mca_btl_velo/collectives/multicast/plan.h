// Who collects whose acknowledgements of a stream: a function of the configuration and the source alone, so
// that all members agree without asking.
#pragma once

#include <vector>

#include "collectives/multicast/config.h"

namespace velo::multicast {

class Plan {
 public:
    Plan(const Config& config, std::uint32_t source);

    std::uint32_t source() const { return source_; }
    // Whom `member` acknowledges to; of the source: itself.
    std::uint32_t collector_of(std::uint32_t member) const;
    // Whom it collects from, ascending.
    std::vector<std::uint32_t> set_of(std::uint32_t member) const;
    // Data may come from it: the source, and co-roots that repair.
    bool repairs(std::uint32_t member) const;
    // To whom it passes data on point to point, where co-roots get it that way.
    std::vector<std::uint32_t> relays_of(std::uint32_t member) const;
    std::uint32_t co_roots() const { return sets_ - 1; }

 private:
    std::uint32_t head_of_set(std::uint32_t set) const;
    std::uint32_t set_number(std::uint32_t member) const { return member / set_size_; }

    std::uint32_t members_, source_;
    Scheme scheme_;
    bool relays_;
    std::uint32_t set_size_,
        sets_;  // members side by side are a set; that of the source is led by the source
};

}  // namespace velo::multicast
