// Messages that have not left, or not all of them: for want of credits, because a burst for another node
// leaves together, or because the network holds them. Under the engine's mutex.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/idle/idle.h"
#include "engine/observe/observer.h"
#include "engine/peers/peer.h"
#include "engine/peers/peer_events.h"
#include "engine/remote.h"
#include "platform/gate.h"
#include "types/engine.h"

namespace velo::engine {

// What PendingSends asks of the engine.
class PendingSendsHost {
 public:
    // Sends as much of the message as credits allow. True: all of it is on its way, or lost with its
    // receiver. `kind` says whether it waited.
    virtual bool push(Peer& peer, velo_send& send, wire::PacketKind kind) = 0;

 protected:
    ~PendingSendsHost() = default;
};

class PendingSends final : public PeerEvents {
 public:
    // All of it outlives it.
    PendingSends(PendingSendsHost& host, platform::OptionalMutex& mutex, Idle& idle, Remote& remote,
                 Observer& observer)
        : host_(host), mutex_(mutex), idle_(idle), remote_(remote), observer_(observer) {}

    // It waits for credits behind what waits already; or (collect) for the rest of a burst.
    void enqueue(Peer& peer, velo_send* send);
    void collect(Peer& peer, velo_send* send);
    // It has left for the network, which holds some of it.
    void await_network(Peer& peer, velo_send* send);
    // Whether such a message may leave only when the process looks at the network.
    bool leaves_at_look(Peer& peer, std::size_t bytes) const;

    // Sends what waits for the peer, as far as credits allow. True: something is left.
    bool send(Peer& peer);
    // The same through the ledger of the peer.
    bool flush(Peer& peer);
    // The same of all peers that no credit will wake.
    void flush_all();

    // Something waits for room, or a callback is due.
    bool any() const { return !stalled_.empty() || !due_.empty(); }
    // Calls the callbacks of sends that have left, which may send. What a callback completes is called the
    // next time. Without the mutex.
    void call_back();

    void departed(Peer& peer) override;

 private:
    void want_credit(Peer& peer);
    void flush_later(Peer& peer);
    void report_left(Peer& peer);
    void emptied(Peer& peer);
    void note_left(velo_send* send);
    bool send_all(Peer& peer);

    PendingSendsHost& host_;
    platform::OptionalMutex& mutex_;
    Idle& idle_;
    Remote& remote_;
    Observer& observer_;
    std::vector<Peer*> stalled_;  // flushed at each poll
    SendQueue due_;               // whose callbacks are due
};

}  // namespace velo::engine
