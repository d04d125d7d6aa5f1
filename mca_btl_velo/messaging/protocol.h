// What messengers say to each other: each message of the engine begins with one of these headers.
#pragma once

#include <array>
#include <cstdint>

#include "matching/key.h"
#include "wire/packet.h"

namespace velo::messaging {

enum class Kind : std::uint8_t {
    kEager = 1,        // a message; its payload follows
    kSynchronous = 2,  // the same with an id; the receiver says DONE when it has matched
    kRendezvous = 3,   // a message whose payload stays at the sender until the receiver has fetched it
    kDone = 4,         // the payload has been fetched, or a synchronous message has matched
    kCredits = 5,      // nothing but returned cells
    // Of messages that are held back at their sender; see backlog.h.
    kHolding = 6,  // the sender holds something from now on; key.tag 0: nothing any more
    kAsk = 7,      // a receive waits: `id` is its ticket
    kOffer = 8,    // a held message for it
    kAnswer = 9,   // to an offer
    kPeek = 10,    // a probe waits
    kSeen = 11,    // the held message that it would find; without an id: none
    kTake = 12,    // takes that message out
    kTaken = 13,   // the message; without an id: it was no longer there
    kNotice = 14,  // words of those who use the messenger
    // Of receives that no other could be taken for.
    kAnnounce = 15  // it waits for a large message: see placing.cc
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
    Header header;  // unused: the number of a deposit that the payload may be in, 0: none; see rma/deposit.h
    std::uint64_t id;
    std::uint64_t address;
    std::uint64_t bytes;
};

struct AskHeader {
    Header header;  // key: the pattern
    std::uint64_t ticket;
};

struct OfferHeader {
    RendezvousHeader rendezvous;  // header.unused: what the pattern of the ask leaves open, Open
    std::uint64_t ticket;
};

enum Open : std::uint8_t { kOpenSource = 1, kOpenTag = 2 };

enum class Answer : std::int32_t {
    kAccepted = 1,
    kGone = 2,  // the receive has got another message
    kLater = 3  // an older receive matches too, and has asked
};

struct AnswerHeader {
    Header header;  // key: the pattern of the ask
    std::uint64_t id;
    std::uint64_t ticket;
    Answer verdict;
};

struct AnnounceHeader {
    Header header;  // key: of the message; unused: not 0 if its sender is to copy when it is idle
    std::uint64_t address;
    std::uint64_t bytes;
    std::uint32_t ticket;
    std::uint32_t unused;
};

struct ProbeHeader {
    Header header;  // key: the pattern of the probe
    std::int32_t source, tag;
    std::uint64_t id;
    std::uint64_t bytes;
    std::uint64_t address;  // kTaken
};

using Notice = std::array<std::uint64_t, 4>;

struct NoticeHeader {
    Header header;
    Notice notice;
};

struct DoneHeader {
    Header header;  // key.tag: velo_status of the transfer
    std::uint64_t id;
};

static_assert(sizeof(Header) == 16, "MPI's header in the thesis: 2 KB take 37 packets");
static_assert(sizeof(RendezvousHeader) <= wire::kPiggybackOffset &&
                  sizeof(OfferHeader) <= wire::kPiggybackOffset &&
                  sizeof(AnswerHeader) <= wire::kPiggybackOffset &&
                  sizeof(AnnounceHeader) <= wire::kPiggybackOffset &&
                  sizeof(ProbeHeader) <= wire::kPiggybackOffset &&
                  sizeof(NoticeHeader) <= wire::kPiggybackOffset,
              "a header and a piggyback share one packet");

}  // namespace velo::messaging
