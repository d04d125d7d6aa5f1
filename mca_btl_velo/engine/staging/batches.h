// Batches (wire/batch.h): what this process sends in them, and what it reads from those of its peers.
//
// A batch is open from its first message on. Its sender closes it when it has looked for packets in vain and
// sent nothing for a few polls, when the chunk is full, or when a message goes another way: so nothing
// that is sent later comes before it. Its receiver reads it at each poll, so that a message waits for nobody
// once it has been appended. At most one batch for each peer is open in each direction.
#pragma once

#include <vector>

#include "engine/idle/idle.h"
#include "engine/peers/pace.h"
#include "engine/peers/peer.h"
#include "engine/peers/peer_events.h"
#include "platform/gate.h"
#include "wire/packet.h"

namespace velo::engine {

// What Batches asks of whoever reads the mailbox. Under the gate, without the mutex.
class BatchesHost {
 public:
    // Hands up a message of the peer's. False: no correct peer sends it. Throws Failure.
    virtual bool take_enclosed(Peer& from, const wire::Enclosed& message, std::byte* data) = 0;
    // The peer's chunk has been read.
    virtual void has_read(Peer& peer) = 0;
    // How many more messages the poll may hand up.
    virtual int left_of_poll() const = 0;

 protected:
    ~BatchesHost() = default;
};

class Batches final : public Work, public PeerEvents {
 public:
    Batches(BatchesHost& host, platform::OptionalMutex& mutex, Idle& idle, const Pace& pace)
        : host_(host), mutex_(mutex), idle_(idle), pace_(pace) {}

    // The sender's side, under the mutex.

    // A batch for the peer, in a chunk that its REF is about to tell of. Until `close` nothing may be sent to
    // the peer but what is appended to peer.batch_out.
    void open(Peer& peer, std::byte* data, std::size_t room);
    void close(Peer& peer);

    // The receiver's side, under the gate.

    // A REF has told of a batch. It is read from now on.
    void follow(Peer& peer, std::byte* data, std::size_t room);
    // What is there of the peer's batch: at most so many messages, and no more than this poll may. Returns
    // the number of messages. Throws Failure if the peer has broken the rules.
    int read(Peer& peer, int most);
    // Nothing is there of any.
    bool is_quiet() const;

    // Of Work.
    bool any() const override { return !open_.empty() || !followed_.empty(); }
    int run(bool busy) override;
    bool lets_sleep() const override { return open_.empty(); }

    // Of PeerEvents.
    void ended(Peer& peer) override;
    bool may_depart(const Peer& peer) override;
    void departed(Peer& peer) override;

 private:
    int read_followed();

    BatchesHost& host_;
    platform::OptionalMutex& mutex_;
    Idle& idle_;
    const Pace& pace_;
    std::vector<Peer*> open_;      // of peer.batch_out; under the mutex
    std::vector<Peer*> followed_;  // of peer.batch_in; under the gate
    std::vector<Peer*> polled_;    // copy of followed_ for one poll
    std::size_t next_ = 0;         // that one of them is read first by the next poll
};

}  // namespace velo::engine
