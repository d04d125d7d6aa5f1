// The report at the end of a run: what flow control did in each process of this node.
#pragma once

#include <string>
#include <vector>

#include "fabric/shm/segment.h"

namespace velo::report {

struct Input {
    std::vector<const fabric::shm::SegmentHeader*>
        segments;                  // ascending by owner; the reporting process among them
    std::uint32_t slots_per_peer;  // in effect
    std::string parameters;        // of the flow control, in words
    std::string set;               // parameters::values_json
    std::size_t unmet_peer_bytes;  // that a peer costs which was never spoken to
    std::uint32_t remote_peers;    // on other nodes
    std::string host;              // of the processes
};

// One screen for people.
std::string summary(const Input& input);
// One line "VELO-REPORT {...}" for programs; the fields are documented in docs/observing.md.
std::string json(const Input& input);

}  // namespace velo::report
