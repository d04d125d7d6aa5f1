#include "machine/topology.h"

#include <cassert>
#include <cstddef>

namespace velo::sim {

Topology::Topology(const std::vector<std::uint32_t>& dimensions, bool torus) : torus_(torus) {
    assert(dimensions.size() <= 3);
    std::uint32_t count = 1;
    for (std::size_t d = 0; d < dimensions.size(); ++d) {
        size_[d] = dimensions[d];
        stride_[d] = count;
        count *= dimensions[d];
    }
    coordinates_.resize(count);
    for (std::uint32_t node = 0; node < count; ++node) {
        std::uint32_t rest = node;
        for (std::size_t d = 0; d < 3; ++d) {
            coordinates_[node].at[d] = static_cast<std::uint16_t>(rest % size_[d]);
            rest /= size_[d];
        }
    }
}

Topology::Hop Topology::next(std::uint32_t from, std::uint32_t to) const {
    const Coordinates& here = coordinates_[from];
    const Coordinates& there = coordinates_[to];
    for (std::uint32_t d = 0; d < 3; ++d) {
        if (here.at[d] == there.at[d]) continue;
        bool up = there.at[d] > here.at[d];
        // A torus takes the shorter way, upwards if both are as long.
        if (torus_) up = (there.at[d] + size_[d] - here.at[d]) % size_[d] * 2 <= size_[d];
        std::uint32_t at = here.at[d];
        if (up)
            at = at + 1 == size_[d] ? 0 : at + 1;
        else
            at = at == 0 ? size_[d] - 1 : at - 1;
        const std::uint32_t node = from + at * stride_[d] - here.at[d] * stride_[d];
        return {from * kDirections + 2 * d + (up ? 0 : 1), node};
    }
    return {UINT32_MAX, from};
}

std::uint32_t Topology::distance(std::uint32_t from, std::uint32_t to) const {
    std::uint32_t hops = 0;
    for (; from != to; ++hops) from = next(from, to).node;
    return hops;
}

}  // namespace velo::sim
