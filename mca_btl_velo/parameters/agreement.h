// The values that both ends of a connection must agree on: a member for each row of parameters.inc that is
// ALIKE. It lies in shared memory and travels to other nodes.
#pragma once

#include <cstdint>
#include <string>

#include "flow/policy_config.h"
#include "types/engine.h"

namespace velo::parameters {

struct Agreement {
#define VELO_PARAMETER(type, name, initial, permitted, level, alike, ...) VELO_AGREED_##alike(type, name)
#define VELO_BASE_PARAMETER VELO_PARAMETER
#define VELO_AGREED_OWN(type, name)
#define VELO_AGREED_ALIKE(type, name) VELO_AGREED_##type name;
#define VELO_AGREED_BOOL std::uint64_t
#define VELO_AGREED_COUNT std::uint64_t
#define VELO_AGREED_SIZE std::uint64_t
#define VELO_AGREED_CHOICE Word
    using Word = char[24];
#include "types/parameters.inc"
#undef VELO_AGREED_OWN
#undef VELO_AGREED_ALIKE
#undef VELO_AGREED_BOOL
#undef VELO_AGREED_COUNT
#undef VELO_AGREED_SIZE
#undef VELO_AGREED_CHOICE
    std::uint64_t max_message_bytes;
    std::uint64_t lazy_doorbell;
};

// What a process with this configuration wants of its peers.
Agreement agreement_of(const velo_config& config);

// What a policy is told of an agreement, all but the sizes (peers, spare_peers, data_slots), and the reverse.
flow::PolicyConfig agreed_flow(const Agreement& agreement);
void agree_on(const flow::PolicyConfig& flow, Agreement* agreement);

// Agreements that differ have different digests, but for chance.
std::uint64_t digest(const Agreement& agreement);
// Empty, or a sentence that names the first parameter that differs, with both values.
std::string difference(const Agreement& mine, const Agreement& theirs);

}  // namespace velo::parameters
