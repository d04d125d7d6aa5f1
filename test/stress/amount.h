// How much the stress tests do.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace velo::test {

// Packets of each writer.
inline std::uint64_t stress_packets() {
    const char* scale = std::getenv("VELO_STRESS_PACKETS");
    return scale != nullptr ? std::strtoull(scale, nullptr, 10) : 200'000;
}

}  // namespace velo::test
