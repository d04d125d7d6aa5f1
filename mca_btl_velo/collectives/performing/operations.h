// Starts the operations of runs: sends, receives, and what a run does itself. With the performer's turn.
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/performing/inbox.h"
#include "collectives/performing/run.h"
#include "collectives/performing/sharing.h"
#include "collectives/performing/slots.h"
#include "messaging/messenger.h"

namespace velo::performing {

// What Operations asks of the performer.
class OperationsHost {
 public:
    virtual void fail(LiveRun& run, goal::Vertex v, velo_status status) = 0;
    // The peer of this operation has departed; says so, if it was killed.
    virtual void fail_with_departed(LiveRun& run, goal::Vertex v, velo_peer& peer) = 0;
    // A call, a calculation or a combination of the program's own: it is told without the turn.
    virtual void ask_program(LiveRun& run, goal::Vertex v) = 0;

 protected:
    ~OperationsHost() = default;
};

class Operations final : public goal::Executor {
 public:
    Operations(OperationsHost& host, messaging::Messenger& messenger, Sharing& sharing, Inbox& inbox,
               velo_performer_state& counts)
        : host_(host), messenger_(messenger), sharing_(sharing), inbox_(inbox), counts_(counts) {}

    Slots& slots() { return slots_; }
    // A message is over: its slot is free.
    void release(Slot& slot);
    // A send that need not wait for room in the multicast any more.
    void send_now(LiveRun& run, goal::Vertex v, const goal::Operation& operation);
    // A receive has its data by multicast, and is cancelled: its message still comes.
    void pass_over(Slot& slot);

    // Of goal::Executor.
    void send(goal::Run& run, goal::Vertex v, const goal::Operation& operation) override;
    void receive(goal::Run& run, goal::Vertex v, const goal::Operation& operation) override;
    void work(goal::Run& run, goal::Vertex v, const goal::Operation& operation) override;

 private:
    void count_remote(const velo_peer& peer);

    OperationsHost& host_;
    messaging::Messenger& messenger_;
    Sharing& sharing_;
    Inbox& inbox_;
    velo_performer_state& counts_;
    Slots slots_;
    std::vector<bool> sent_to_;  // by index: for network_peers
};

}  // namespace velo::performing
