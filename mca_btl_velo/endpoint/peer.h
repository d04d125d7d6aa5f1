// One peer as this process sees it: the way to its mailbox, what waits to go there, what is arriving from it.
// Lives from the first contact, in either direction, until the engine closes; if a process of another job has
// ended, as the peer of the next process in its place.
#pragma once

#include <atomic>

#include "endpoint/domain.h"
#include "endpoint/incoming.h"
#include "endpoint/send_queue.h"
#include "endpoint/stalls.h"
#include "endpoint/way.h"
#include "fabric/shm/segment.h"
#include "flow/policy.h"
#include "platform/doze.h"

namespace velo::endpoint {
class Engine;
}

struct velo_peer {
    velo_peer(velo::flow::PeerIndex at, velo::endpoint::Domain& in, velo::flow::Emitter& emitter)
        : index(at),
          domain(in),
          policy(*in.policy),
          out(emitter),
          source(at - in.first_peer),
          flow(policy.flow_of(source)) {}

    // After a store into its mailbox.
    void wake() {
        if (dozes) velo::platform::wake_if_asleep(segment.header().pointers.doze);
    }

    velo::flow::PeerIndex index;         // in this process's directory
    velo::endpoint::Domain& domain;      // that its packets arrive in, and ours there
    velo::flow::Policy& policy;          // of the domain
    velo::flow::Emitter& out;            // for what the policy emits
    velo::flow::PeerIndex source;        // in the policy, and of its packets
    velo::flow::FlowIndex flow;          // where the policy keeps its counts
    velo::fabric::shm::Segment segment;  // none on another node
    velo::endpoint::Way link;            // closed until connected
    std::uint64_t name = 0;              // of the process, once connected
    velo::endpoint::SendQueue queue;
    velo::endpoint::Incoming incoming;
    std::uint64_t polls_at_send = 0;         // Engine::empty_polls_ when something was sent to it last
    bool left = false;                       // it has ended, and was never connected to
    bool ending = false;                     // it has ended; in Engine::ending_ or departed, but if LiMIC's
    bool departed = false;                   // what it held was taken back, what is sent to it is lost
    std::atomic<std::uint32_t> generation{0};  // how many processes have departed from this place
    std::uint32_t copying = 0;                 // copies to or from its memory that are under way
    std::uint64_t last_packet = 0;             // position in the mailbox behind all of an ending one
    std::atomic<bool> awaits_answer{false};  // nothing has come from it since
    velo::endpoint::Stall stall;
    bool dozes = false;    // it may sleep
    bool stalled = false;  // listed in Engine::stalled_: the fabric was full (policy none)
};

namespace velo::endpoint {
using Peer = ::velo_peer;
}
