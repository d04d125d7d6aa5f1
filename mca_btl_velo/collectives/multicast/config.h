// How a group makes its multicast reliable: alike at all members, but for `me`.
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/multicast/datagram.h"
#include "types/multicast.h"

namespace velo::multicast {

// Who acknowledges to whom, and who repairs (Liu, Mamidala, Panda).
enum class Scheme : std::uint8_t {
    kBasic,   // all to the root, which waits for them; it sends again when time is over
    kWindow,  // all to the root, which goes on meanwhile; likewise
    kTree,    // up a tree; the root sends again likewise
    kCoroot,  // each to the collector of its set, who repairs on demand and reports to the root
};

// How much of its window a stream may have under way while others may have as much.
enum class Shares : std::uint8_t {
    kStatic,   // its share, always
    kDynamic,  // its window, until something of it is lost; then less, down to its share, and more again
};

inline constexpr std::uint32_t kSquareRoot = UINT32_MAX;  // of the members: so many sets

struct Config {
    std::uint32_t members = 2;
    std::uint32_t me = 0;
    std::vector<std::uint32_t> sources = {0};  // stream i is what this member sends
    Scheme scheme = Scheme::kCoroot;
    std::uint32_t window = 64;  // a power of two: datagrams of a stream that are not acknowledged by all
    std::uint32_t share = 0;    // of the window: what receivers have room for in any case; 0: all of it
    Shares shares = Shares::kDynamic;
    std::uint32_t ack_every = 10;          // datagrams for one acknowledgement, at most half a window
    bool skewed = true;                    // members acknowledge at different datagrams
    std::uint32_t co_roots = kSquareRoot;  // 0: none
    bool reliable_transfer = false;        // co-roots get data by a tree of point-to-point sends as well
    bool attached = false;  // takes what others of its node get from their leader: says nothing to anybody
    std::uint64_t probe_ns = 2'000'000;    // without progress, until the source probes or sends again
    std::uint64_t full_ns = 500'000;       // the same, while more is to be sent and the window is full
    std::uint64_t ack_delay_ns = 500'000;  // that an acknowledgement may wait for others, or for a ride
    std::uint64_t reorder_ns = 50'000;     // that a gap may be no more than reordering
    std::uint32_t most_backoff = 64;       // times that waits for an answer get longer
    Sequence first = 0;                    // number of the first datagram of each stream

    // The slides' schemes have no NACKs: what is lost is found when time is over.
    bool by_timeout() const { return scheme != Scheme::kCoroot; }
};

}  // namespace velo::multicast
