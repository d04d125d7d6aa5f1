// What a message is matched by, and what a receive asks for.
#pragma once

#include <cstdint>

namespace velo::matching {

// Of a receive: any source; any tag that is not negative (Open MPI uses negative ones for itself).
inline constexpr std::int32_t kAnySource = -1;
inline constexpr std::int32_t kAnyTag = INT32_MIN;

// A context is a communicator, a source a rank in it.
struct Key {
    std::uint32_t context;
    std::int32_t source;
    std::int32_t tag;

    friend bool operator==(const Key&, const Key&) = default;

    std::uint64_t hash() const {
        std::uint64_t sides = std::uint64_t{static_cast<std::uint32_t>(source)} << 32 | context;
        std::uint64_t mixed = (sides ^ std::uint64_t{static_cast<std::uint32_t>(tag)} * 0x9e3779b97f4a7c15) *
                              0xbf58476d1ce4e5b9;
        return mixed ^ mixed >> 32;
    }
};

// A copy for those who want a reference, so that the key itself may stay in registers.
inline Key in_memory(Key key) {
    return key;
}

}  // namespace velo::matching
