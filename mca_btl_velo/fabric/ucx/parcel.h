// What travels between nodes: a burst of packets under one header. The header says how the receiver cuts the
// data into runs, so that it takes the slots that the sender has paid for.
#pragma once

#include <cstddef>
#include <cstdint>

#include "wire/packet.h"

namespace velo::fabric::ucx {

struct Parcel {
    std::uint64_t key;       // the receiver's, from its address: strangers do not know it
    std::uint64_t sender;    // process name
    std::uint32_t sequence;  // from this sender, counted from 0
    std::uint32_t value;     // count of a control packet; piggybacked credits of a DATA packet, 0 for none
    std::uint32_t bytes;     // data that follows
    std::uint8_t kind;       // wire::PacketKind
    std::uint8_t flags;      // wire::kFirst, kLast, kInternal
    std::uint8_t tag;
    std::uint8_t run_packets;  // of all runs but the last
};

static_assert(sizeof(Parcel) == 32);

// Slots that it takes.
constexpr std::uint64_t slots_of(const Parcel& parcel) {
    std::size_t full = wire::run_capacity(parcel.run_packets);
    std::size_t runs = wire::runs_before_last(parcel.bytes, full);
    return runs * parcel.run_packets + wire::packets_in_run(parcel.bytes - runs * full);
}

// What is impossible about a parcel that came with `payload_bytes` of data for a mailbox of `capacity` slots;
// nullptr if it is fine. The key is the caller's to check.
const char* fault_of(const Parcel& parcel, std::size_t payload_bytes, std::uint32_t capacity);

}  // namespace velo::fabric::ucx
