// A mailbox and the rules for it. The VELO domain has the flow control that the user has chosen. The
// LiMIC-like domain, if there is one, serves the peers of the same (virtual) node: its messages take no VELO
// credits, and its ring, which refuses what does not fit, is the only limit. The remote domain serves
// processes on other nodes, under the same flow control, with a mailbox in private memory.
#pragma once

#include <memory>

#include "flow/policy.h"
#include "mailbox/reader.h"

namespace velo::endpoint {

struct Domain {
    std::unique_ptr<flow::Policy> policy;
    mailbox::Reader<> reader;
    flow::PeerIndex first_peer;              // directory index of the policy's peer 0
    std::uint64_t* sent_packets;             // counts what is sent here
    std::uint64_t* high_water;               // of the mailbox, in slots
    const wire::Framing* framing = nullptr;  // of its messages, nullptr: by the measurements of shared memory
    bool refuses = false;                    // the policy has the fabric refuse by sender
    std::uint64_t next_sample = 0;           // position at which the occupancy is looked at next
};

}  // namespace velo::endpoint
