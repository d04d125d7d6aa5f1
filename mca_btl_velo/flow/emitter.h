// What leaves a policy, and where its counts of a pair are.
#pragma once

#include "flow/policy_config.h"
#include "wire/packet.h"

namespace velo::flow {

// Where a policy keeps the counts of a pair: the index of the peer, but for windows on demand
// (flow/contact.h).
using FlowIndex = std::uint32_t;

// Receives the packets that a policy wants sent. DATA packets are never emitted by a policy.
// `value` is the credit count of a CREDIT (>= 1), of a RESP or of a BYE (>= 0), 0 for the others.
// An emitter must accept the packet at once (the rules guarantee a slot for it) and must not call the policy
// back.
class Emitter {
 public:
    virtual ~Emitter() = default;
    virtual void emit(PeerIndex to, wire::PacketKind kind, std::uint32_t value) = 0;
};

}  // namespace velo::flow
