#include "fabric/ucx/landings.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace velo::fabric::ucx {

const char* Landings::arrive(const Fragment& fragment, std::span<const std::byte> header,
                             std::span<const std::byte> data, const Place& place, bool* complete) {
    *complete = false;
    if (data.empty() || fragment.offset > fragment.total || data.size() > fragment.total - fragment.offset)
        return "a fragment outside of its transfer";
    auto found = landings_.find(fragment.id);
    if (found == landings_.end()) {
        std::byte* to = place();
        if (to == nullptr) return "a bulk transfer that nobody has asked for";
        Landing landing{to, fragment.total, 0, {header.begin(), header.end()}};
        found = landings_.emplace(fragment.id, std::move(landing)).first;
    }
    Landing& landing = found->second;
    if (fragment.total != landing.total || data.size() > landing.total - landing.arrived ||
        !std::equal(header.begin(), header.end(), landing.header.begin(), landing.header.end()))
        return "fragments that do not fit together";
    std::memcpy(landing.to + fragment.offset, data.data(), data.size());
    landing.arrived += data.size();
    if (landing.arrived < landing.total) return nullptr;
    landings_.erase(found);
    *complete = true;
    return nullptr;
}

}  // namespace velo::fabric::ucx
