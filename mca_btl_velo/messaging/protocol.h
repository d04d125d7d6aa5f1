// What messengers say to each other: each message of the engine begins with one of these headers.
#pragma once

#include <cstdint>

#include "matching/key.h"
#include "wire/packet.h"

namespace velo::messaging {

enum class Kind : std::uint8_t {
    kEager = 1,        // a message; its payload follows
    kSynchronous = 2,  // the same with an id; the receiver says DONE when it has matched
    kRendezvous = 3,   // a message whose payload stays at the sender until the receiver has fetched it
    kDone = 4,         // the payload has been fetched, or a synchronous message has matched
    kCredits = 5       // nothing but returned cells
};

struct Header {
    matching::Key key;
    std::uint16_t returned;  // cells of the share in the sender's pool that are free again; see share.h
    Kind kind;
    std::uint8_t unused;
};

struct SynchronousHeader {
    Header header;
    std::uint64_t id;  // of the send at its sender; see awaited_sends.h
};

struct RendezvousHeader {
    Header header;
    std::uint64_t id;
    std::uint64_t address;
    std::uint64_t bytes;
};

struct DoneHeader {
    Header header;  // key.tag: velo_status of the transfer
    std::uint64_t id;
};

static_assert(sizeof(Header) == 16, "MPI's header in the thesis: 2 KB take 37 packets");
static_assert(sizeof(RendezvousHeader) <= wire::kPiggybackOffset,
              "a header and a piggyback share one packet");

}  // namespace velo::messaging
