// The words of coll_velo_multicast_scheme, in the order of multicast::Scheme.
#pragma once

#include <string_view>

namespace velo::multicast {

inline constexpr std::string_view kSchemeNames[] = {"basic", "window", "tree", "coroot"};

}  // namespace velo::multicast
