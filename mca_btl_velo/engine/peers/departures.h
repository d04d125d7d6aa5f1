// Peers that end while this process goes on: what they held goes back to the others, and the place of a
// process of another job to the next one.
//
// Open MPI says nothing when a process of another job has been disconnected, so the engine looks: whether a
// peer has closed, and whether it has vanished; who is on another node takes leave. From then on nothing more
// can come of it but what is in the mailbox already. When that has been retrieved, the policy takes back what
// it held, and each unit what it holds; and only then, when nothing of it is left in either direction, may
// another process claim the place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/peers/deaths.h"
#include "engine/peers/peer.h"
#include "engine/peers/peer_events.h"
#include "platform/gate.h"
#include "platform/ticks.h"

namespace velo::engine {

// What Departures asks of whoever connects to peers. Under the mutex.
class DeparturesHost {
 public:
    // Those of this node that are known.
    virtual const std::vector<Peer*>& met() const = 0;
    // It has closed its mailbox; it has ended in whatever way. The second costs a system call.
    virtual bool has_closed(const Peer& peer) = 0;
    virtual bool has_vanished(Peer& peer) = 0;
    // The place is free for the next process. False: it is too early.
    virtual bool release_slot(Peer& peer) = 0;

 protected:
    ~DeparturesHost() = default;
};

class Departures {
 public:
    // `units` hear of each event.
    Departures(DeparturesHost& host, platform::OptionalMutex& mutex, PeerEvents& units)
        : host_(host), mutex_(mutex), units_(units) {}

    // Stands for processes that have departed: what is sent to it is lost, and nothing comes of it. `index`:
    // of no peer.
    void open_null_peer(DomainHost& host, const mailbox::Reader<>& box, flow::PeerIndex index);
    Peer& null_peer() noexcept { return *null_peer_; }

    // A peer is known to have ended. Under the mutex.
    void mark_ended(Peer& peer);

    // Without the mutex, under the gate.

    // Now and then: looks at some peers, and clears up after those that have ended.
    void look(std::uint64_t now_ns = platform::now_ns());
    // The same with all peers, at once.
    void look_at_all();
    // Once each: a peer of this job that was killed a while ago; else null.
    Peer* killed(std::uint64_t now_ns = platform::now_ns()) { return deaths_.due(now_ns); }

 private:
    void poll(std::size_t closed, std::size_t vanished);
    void reap();
    bool finalize(Peer& peer);
    bool reclaim(Peer& peer);
    bool vacate(Peer& peer);

    DeparturesHost& host_;
    platform::OptionalMutex& mutex_;
    PeerEvents& units_;
    Deaths<Peer> deaths_;
    std::vector<Peer*> ending_;  // who have ended and not been cleared up after; under the gate
    std::uint64_t lost_packets_ = 0;
    std::optional<Domain> null_domain_;
    std::unique_ptr<Peer> null_peer_;
    std::size_t next_closed_ = 0, next_vanished_ = 0;
    std::uint64_t next_look_ns_ = 0;
};

}  // namespace velo::engine
