// Messages of the engine itself: RMA over the mailbox, for what the kernel does not do (atomics) or refuses
// (get and put where single copy is not permitted). The message body starts with this header; data follows at
// once.
#pragma once

#include <cstdint>

#include "wire/packet.h"

namespace velo::rma {

enum class Operation : std::uint8_t {
    kGet = 1,          // address, bytes, position: please send this memory
    kGetReply = 2,     // bytes, position, status: here it is, data follows
    kPut = 3,          // address, bytes, position: data follows
    kPutReply = 4,     // bytes, status
    kAtomic = 5,       // address, atomic, width, operand, compare
    kAtomicReply = 6,  // operand: the old value; status
    kHelp = 7  // address, bytes, position: destination address, compare: generation and cell; see share.h
};

// Fits into the first packet, so that the receiver can place the data of the packets that follow.
struct MessageHeader {
    Operation operation;
    std::uint8_t atomic;  // velo_atomic
    std::uint8_t width;   // bytes of an atomic: 4 or 8
    std::uint8_t unused;
    std::int32_t status;  // velo_status, in replies
    std::uint64_t id;     // of the transfer at its initiator
    std::uint64_t address;
    std::uint64_t bytes;
    union {
        std::uint64_t position;  // of this part in the transfer
        std::uint64_t operand;
    };
    std::uint64_t compare;
};

static_assert(sizeof(MessageHeader) <= wire::kPiggybackOffset,
              "the header and a piggyback share the first packet");

}  // namespace velo::rma
