// The deposits of a process (rma/deposit.h): which of its rings hold data that a peer on this node is about
// to get, who stores them and when, and whether it is worth it, which is tried on the transfers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "endpoint/filling.h"
#include "endpoint/gate.h"
#include "endpoint/peer.h"
#include "fabric/shm/segment.h"
#include "flow/deposit_rings.h"
#include "flow/outbox.h"
#include "platform/contest.h"
#include "rma/deposit.h"
#include "types/engine.h"

namespace velo::endpoint {

class Deposits {
 public:
    // `mutex`, `mailbox`, `in_turn` and `outbox`, which is cut from that, too: the engine's. tries: what is
    // worth it is tried.
    Deposits(OptionalMutex& mutex, fabric::shm::Segment& mailbox, flow::InTurn& in_turn, flow::Outbox& outbox,
             bool tries, const velo_config& config);

    // Under the mutex.

    // There is memory in turn; some is provided when it is first needed.
    // 0: none is tried.
    std::uint64_t ways() const { return tries_ && !rings_.plan().none() ? contest_.digits() : 0; }
    bool in_turn() { return !rings_.plan().none() && have_memory(Kind::kInTurn); }

    // Data that a peer will get, in a deposit or not; there will be an `end`.
    void announce(Peer& peer) { ++peer.to_be_got; }
    // For a peer that maps the rings. Returns the name of a deposit, of which the peer is told
    // VELO_DEPOSIT_NUMBER; that is 0 if there is none. It may have to wait for its ring.
    std::uint64_t begin(Peer& peer, const void* data, std::size_t bytes);
    // The get is over. Of a deposit that its peer has read, and whose ring serves another since, nothing is
    // left.
    void end(Peer& peer, std::uint64_t name, std::size_t bytes);
    // The peer has ended.
    void end_all_of(const Peer& peer);
    // What is to be stored yet, as far as there is room: first, a ring that its peer has read goes to the
    // deposit that waits for it.
    void feed();
    bool feeds() const { return feeding_ > 0; }
    // What is wrong with the lists, or the empty string. For checked builds and tests.
    const char* violation() const;

    // Without the mutex.

    // After the peer has been told: as much as it takes meanwhile. The rest is stored by `feed`, as the peer
    // goes on to take it; with threads it is left to the get, as the memory may be gone once that is over.
    void store(std::uint64_t name);
    // The peer's side: returns how much of the data of `number`, not 0, was there, from the beginning, before
    // the patience with it was lost: with its turn at once, if `late`. Meanwhile this process stores what is
    // to be stored.
    std::size_t copy(const fabric::shm::Segment& segment, std::uint32_t number, bool late,
                     std::uint64_t remote, std::byte* to, std::size_t bytes);

 private:
    using Kind = flow::DepositPlan::Kind;

    struct UnderWay {
        Peer* peer;
        std::uint64_t name;
        std::uint32_t ring;
        Storing by;
        bool storing;  // just now, without the mutex
        const std::byte* data;
        std::size_t bytes, stored;
        bool feeds = false;  // the rest is stored by `feed`, or all once it has its ring
    };
    using Place = std::vector<UnderWay>::iterator;

    static constexpr std::size_t kLeast = 8192, kLeastDeposited = 8449, kMost = 64UL * 1024 * 1024;
    static constexpr std::size_t kExpectedBelow = 4UL * 1024 * 1024;
    // From here on each is expected to copy for itself: from a far owner, and where two send to each other at
    // once, whose rings and buffers together may be more than the caches hold.
    static constexpr std::size_t kLeastFar = 256UL * 1024, kLeastCrossing = 2UL * 1024 * 1024,
                                 kLeastCrossingFar = 32UL * 1024;
    static constexpr std::size_t kMostWaiting = 64;

    bool is_worth(std::size_t bytes);
    bool have_memory(Kind kind);
    flow::DepositRings::Ring take(Kind kind, std::size_t bytes, Storing by);
    std::size_t store(const UnderWay& deposit) const;
    bool cut(std::uint32_t ring, std::size_t bytes);
    std::uint32_t await_ring(Kind kind, const Peer& peer);
    std::uint32_t next_turn();
    std::uint32_t await_room();
    void give_room();
    void open(const UnderWay& deposit) const;
    void stop_feeding(UnderWay& deposit);
    Place find(std::uint64_t name);
    void forget(Place deposit);
    template <class Ended>
    bool end_if(Ended&& ended);
    template <class Ended>
    void end_waiting(Ended&& ended);
    bool end_read();
    std::size_t taken_of(const UnderWay& deposit) const;
    void feed_others();

    OptionalMutex& mutex_;
    fabric::shm::Segment& mailbox_;
    flow::Outbox& outbox_;
    flow::DepositRings rings_;
    std::uint32_t last_place_ = 0;  // of a ring in turn
    const bool tries_;
    const velo_config& config_;
    enum class Memory : std::uint8_t { kNotYet, kThere, kRefused } memory_[flow::DepositPlan::kKinds]{};
    std::vector<UnderWay> under_way_;  // room for all from the start
    std::vector<UnderWay>
        waiting_;  // for the ring of one under way, or room, of the same peer; in that order
    std::uint64_t begun_ = 0;
    std::uint64_t sent_bytes_ = 0;  // of all that could have been in a deposit
    std::uint32_t feeding_ = 0;     // also read without the mutex: with threads it stays 0
    std::uint32_t last_turn_ = flow::DepositPlan::kNumbers[Kind::kAtHand].again() - 1;  // of one that waited
    // Stored in turn; in a ring at hand, as usual at the peer's distance, or as at the other distance, or by
    // string; or left where it is. In turn as usual, too.
    enum : std::uint8_t { kInTurn, kUsual, kOtherwise, kByString, kElsewhere, kWays };
    static constexpr std::uint32_t kPatience = 4;  // the peer's get is tried, too, where it begins with that
    // Blocks as short as can be: there are many ways, and programs that send few of a size are to see the
    // best.
    using Ways = platform::Contest<kLeast, 10, 64, kWays, kLeast, 512UL * 1024, kLeast, 32UL * 1024 * 1024>;
    static_assert(Ways::kSizes <= fabric::shm::kStoringSizes);
    std::uint32_t follow_or_try(Peer& peer, std::size_t bytes);
    void tell_way(std::size_t bytes) const;
    static Ways::Ticket ticket_of(std::uint64_t name);
    static unsigned way_of(std::uint64_t name);
    static Kind kind_of(std::uint64_t name);
    static Storing storing_of(const Peer& peer, std::uint64_t name);
    Ways contest_{kExpectedBelow, kPatience};
};

}  // namespace velo::endpoint
