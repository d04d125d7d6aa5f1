// What an engine says about itself when it opens.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/peers/domain.h"
#include "engine/routes/routes.h"
#include "fabric/shm/segment.h"
#include "singlecopy/mechanisms.h"
#include "types/engine.h"

namespace velo::engine {

struct Described {
    const velo_config& config;
    const fabric::shm::Segment& mailbox;
    const Domain& velo;
    const std::optional<Domain>& remote;
    const singlecopy::Mechanisms& mechanisms;
    const Routes& routes;
    std::uint32_t slots_per_peer;
    bool single_copy_only;
    bool first_on_node;
};

// One line.
std::string description_of(const Described& engine);
// A line for each range of lengths, once for a node.
void log_routes(const Described& engine);

}  // namespace velo::engine
