// Windows that open and close on demand. Without this, a window is open from the connection of the pair to
// its end, and the counts of a pair are found at the index of its peer.
#pragma once

#include "flow/emitter.h"

namespace velo::flow {

// Any of these may emit to any peer.
class Contact {
 public:
    // The counts of this peer. All peers without a window in either direction share one that holds no credit.
    // Changes only when a packet for `peer` is emitted or a control packet of `peer` is retrieved.
    virtual FlowIndex flow_of(PeerIndex peer) const = 0;
    // A packet for `to` waits, and there is no credit: when it is queued for a peer that had none waiting,
    // and when the flush after a control packet of `to` leaves packets behind.
    virtual void credit_wanted(PeerIndex to, Emitter& out) = 0;
    // CREDIT, HELLO, BYE (with its count), RELEASE or LEAVE.
    virtual void contact_retrieved(PeerIndex from, wire::PacketKind kind, std::uint32_t value,
                                   Emitter& out) = 0;
    // That packet has been handled, what it allowed has been sent, and credit_wanted was called for what is
    // left. Or a peer has departed.
    virtual void control_flushed(Emitter& out) = 0;
    // Somebody, here or elsewhere, waits for a window that a peer has to give up.
    virtual bool contact_pending() const = 0;
    // That has lasted longer than the engine likes (milliseconds, not microseconds): whoever was asked may
    // not be looking, so another one is.
    virtual void contact_overdue(Emitter& out) = 0;

 protected:
    ~Contact() = default;
};

}  // namespace velo::flow
