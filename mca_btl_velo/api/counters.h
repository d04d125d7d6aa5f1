// What of types/counters.inc can be watched while the engine runs.
#pragma once

#include <cstdint>

#include "engine/engine.h"
#include "types/engine.h"

namespace velo::engine {

// nullptr beyond the last.
const velo_counter* counter_at(unsigned index) noexcept;
// 0 for a counter of peers, and beyond the last.
std::uint64_t counter_value(const Engine& engine, unsigned index);
std::uint32_t counter_peers(const Engine& engine);
// 0 for a counter of the process, beyond the last, and where there is no peer.
void counter_of_peers(const Engine& engine, unsigned index, std::uint64_t* values, std::uint32_t count);

}  // namespace velo::engine
