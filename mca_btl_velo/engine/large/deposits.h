// The deposits of a process (rma/deposit.h): which of its rings hold data that a peer on this node is about
// to get, and who stores them when. Which messages are staged so the table of routes says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/idle/idle.h"
#include "engine/peers/peer.h"
#include "engine/peers/peer_events.h"
#include "engine/staging/staging.h"
#include "fabric/shm/segment.h"
#include "flow/deposit_rings.h"
#include "platform/gate.h"
#include "rma/deposit.h"
#include "types/engine.h"

namespace velo::engine {

class Deposits final : public Work, public PeerEvents {
 public:
    // All of it outlives it.
    Deposits(platform::OptionalMutex& mutex, fabric::shm::Segment& mailbox, Staging& staging,
             const velo_config& config, Idle& idle);

    // Under the mutex.

    // Data that a peer will get, in a deposit or not; there will be an `end`.
    void announce(Peer& peer) { ++peer.to_be_got; }
    // For a peer that maps the rings. Returns the name of a deposit, of which the peer is told
    // VELO_DEPOSIT_NUMBER; 0: there is none. It may have to wait for its ring.
    std::uint64_t begin(Peer& peer, const void* data, std::size_t bytes);
    // The get is over. Of a deposit that its peer has read, and whose ring serves another since, nothing is
    // left.
    void end(Peer& peer, std::uint64_t name);
    void ended(Peer& peer) override;
    void vacated(Peer& peer) override;
    // What is to be stored yet, as far as there is room: first, a ring that its peer has read goes to the
    // deposit that waits for it.
    void continue_staging();
    // Nobody may ever take it.
    bool any() const override { return unfinished_ > 0; }
    bool lets_sleep() const override { return true; }
    // What is wrong with the lists, or the empty string. For checked builds and tests.
    const char* violation() const;

    // Without the mutex.

    int run(bool busy) override;
    // After the peer has been told: as much as there is room for. The rest is stored by `continue_staging`,
    // as the peer goes on to take it; with threads it is left to the get, as the memory may be gone once that
    // is over.
    void store(std::uint64_t name);
    // The peer's side: copies what is there of the data of `number`, which is not 0. Returns how many bytes,
    // from the beginning. It waits a while for the owner, but not for the deposit to be opened if one of that
    // owner `missed` its time before. Meanwhile this process stores its own deposits.
    std::size_t copy(const fabric::shm::Segment& segment, std::uint32_t number, bool missed,
                     std::uint64_t remote, std::byte* to, std::size_t bytes);

 private:
    struct UnderWay {
        Peer* peer;
        std::uint64_t name;
        std::uint32_t ring;
        platform::Copying by;
        bool storing;  // just now, without the mutex
        const std::byte* data;
        std::size_t bytes, stored;
        bool continues = false;  // the rest is stored by `continue_staging`, or all once it has its ring
    };
    using Place = std::vector<UnderWay>::iterator;

    static constexpr std::size_t kLeastDeposited = 4097, kMost = 64UL * 1024 * 1024;

    flow::DepositRings::Ring take(std::size_t bytes, platform::Copying by);
    std::size_t store(const UnderWay& deposit) const;
    bool cut(std::uint32_t ring, std::size_t bytes, platform::Copying by);
    std::uint32_t await_room(const Peer& peer);
    void give_room();
    void open(const UnderWay& deposit) const;
    void stop_staging(UnderWay& deposit);
    Place find(std::uint64_t name);
    void forget(Place deposit);
    template <class Ended>
    bool end_if(Ended&& ended);
    template <class Ended>
    void end_waiting(Ended&& ended);
    bool end_read();
    std::size_t taken_of(const UnderWay& deposit) const;
    void continue_others();

    platform::OptionalMutex& mutex_;
    fabric::shm::Segment& mailbox_;
    Staging& staging_;
    flow::DepositRings rings_;
    std::uint32_t last_place_ = 0;  // of a ring of rotating memory
    const velo_config& config_;
    Idle& idle_;
    std::vector<UnderWay> under_way_;  // room for all from the start
    std::vector<UnderWay> waiting_;    // for room, of the same peer; in the order in which it was told
    std::uint64_t begun_ = 0;
    std::uint32_t unfinished_ = 0;  // also read without the mutex: with threads it stays 0
};

}  // namespace velo::engine
