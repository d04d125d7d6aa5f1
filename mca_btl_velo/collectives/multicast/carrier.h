// The seam between a member of a group and what carries its datagrams: sockets, a simulated network, a test.
#pragma once

#include "collectives/multicast/datagram.h"

namespace velo::multicast {

// Data of a stream lies in slot `sequence & (window - 1)` of a ring for that stream: at the source, at those
// who repair, and elsewhere while it is ahead of its turn. A carrier must not call the member back.
class Carrier {
 public:
    // To all other members: may be lost, doubled and overtaken, and so may what goes to one. Data is that of
    // the slot.
    virtual void multicast(const Datagram& datagram) = 0;
    virtual void send(std::uint32_t to, const Datagram& datagram) = 0;
    // The data that is just arriving is wanted: into its slot, or to where it belongs in the end.
    virtual void keep(std::uint32_t stream, Sequence sequence) = 0;
    // It is its turn: once for each, in order.
    virtual void deliver(std::uint32_t stream, Sequence sequence) = 0;

 protected:
    ~Carrier() = default;
};

}  // namespace velo::multicast
