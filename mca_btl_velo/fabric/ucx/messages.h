// The active messages of Velo between nodes and their headers.
#pragma once

#include <cstdint>

#include "fabric/ucx/parcel.h"

namespace velo::fabric::ucx {

enum MessageId : unsigned {
    kParcelId = 20,     // Parcel; data for the mailbox
    kHelloId = 21,      // Introduction; the sender's address
    kGoodbyeId = 22,    // Introduction; the number of parcels that its sender has sent, 32 bits
    kBulkId = 23,       // Introduction and the engine's header; data for memory that the receiver chooses
    kRetrievedId = 24,  // Introduction and a count: so many packets have left the mailbox since the start
    kParcelsId = 26,    // several parcels, one behind the other
    kFragmentId = 25,   // Fragment and the engine's header; a part of such data
};

struct Introduction {
    std::uint64_t key;     // the receiver's
    std::uint64_t sender;  // process name
};

struct Fragment {
    std::uint64_t key;     // the receiver's
    std::uint64_t sender;  // process name
    std::uint64_t total;   // bytes of the transfer
    std::uint64_t offset;  // of this part in it
    std::uint32_t id;      // of the transfer, from this sender
    std::uint32_t unused;
};

}  // namespace velo::fabric::ucx
