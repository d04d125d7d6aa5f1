// A mesh or torus of one to three dimensions with dimension-order routing, as EXTOLL's switches route.
#pragma once

#include <cstdint>
#include <vector>

namespace velo::sim {

class Topology {
 public:
    Topology(const std::vector<std::uint32_t>& dimensions, bool torus);

    std::uint32_t nodes() const { return static_cast<std::uint32_t>(coordinates_.size()); }
    std::uint32_t links() const { return nodes() * kDirections; }

    struct Hop {
        std::uint32_t link;  // node x direction
        std::uint32_t node;  // where it leads
    };
    // The first hop on the way; `from` and `to` differ.
    Hop next(std::uint32_t from, std::uint32_t to) const;
    std::uint32_t distance(std::uint32_t from, std::uint32_t to) const;

 private:
    static constexpr std::uint32_t kDirections = 6;
    struct Coordinates {
        std::uint16_t at[3];
    };
    std::uint32_t size_[3] = {1, 1, 1};
    std::uint32_t stride_[3] = {1, 1, 1};
    bool torus_;
    std::vector<Coordinates> coordinates_;
};

}  // namespace velo::sim
