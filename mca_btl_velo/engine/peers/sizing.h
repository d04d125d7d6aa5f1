// What parameters come to in an engine: sizes that are chosen where they say 0, and objections to them, which
// come before anything is shared.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "fabric/shm/segment.h"
#include "flow/policy.h"
#include "types/engine.h"

namespace velo::engine {

// Up to so many on a node are few.
inline constexpr std::uint32_t kFewPeers = 15;

// Of the mailbox for the peers on the own node, or on others.
enum class Nodes : std::uint8_t { kOwn, kOther };

// Slots of each peer.
std::uint32_t slots_for_each(const velo_config& config, Nodes nodes);
// The part of rotating memory for short messages, bytes (RotatingMemory::lap).
std::uint64_t least_rotating_bytes();
// Peers may not be running.
inline bool shares_processors(const velo_config& config) {
    return config.processes_per_processor > 1;
}
// The longest sleep, microseconds; 0: none.
std::uint32_t longest_sleep(const velo_config& config);

// These throw Failure, the first two with the objection to a parameter.
flow::PolicyConfig flow_config(const velo_config& config, Nodes nodes);
std::unique_ptr<flow::Policy> open_policy(const char* name, const flow::PolicyConfig& flow);
// Without an outbox where there is no room for one; that is logged.
fabric::shm::Segment open_mailbox(const velo_config& config, const flow::PolicyConfig& flow,
                                  std::uint64_t* probe, std::int64_t xpmem_segment);

}  // namespace velo::engine
