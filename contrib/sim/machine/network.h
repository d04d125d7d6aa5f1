// The network interfaces and the links. Each is a server with a rate, first come first served; the order of
// events is the order of arrival, so a link needs no queue but the time at which it will be free. Switches
// cut through, and buffer without limit; what a finite network would do to its senders is `node_window`: a
// node with that many packets under way injects no more until some have arrived (design.md, "Back-pressure").
#pragma once

#include <cstdint>
#include <vector>

#include "core/event_queue.h"
#include "machine/parameters.h"
#include "machine/topology.h"
#include "machine/train.h"

namespace velo::sim {

enum EventKind : unsigned {
    kWake,      // subject: process
    kSubmit,    // train
    kInjected,  // subject: node; train: the process whose data train has left, or kNone
    kHop,       // train
    kArrive,    // train: its first packet is at its mailbox
    kRelease,   // subject: a process that goes on after a synchronisation
    kRefused,   // train, back at its sender; subject: 1 for want of a buffer, 0 behind such a one
    kRetry,     // subject: process; train: index of the peer whose refused packets are due again
    kRested,    // subject: a process that has waited for long enough to close its batches
    kPatience,  // subject: a process that has waited for a window
    kEnded,     // subject: process; train: an operation of its schedule that has finished
};

class Network {
 public:
    Network(const Machine& machine, EventQueue& events, TrainPool& trains);

    std::uint32_t node_of(std::uint32_t process) const { return process / processes_per_node_ * stride_; }
    const Topology& topology() const { return topology_; }

    // The train queues for the network interface of its sender.
    void submit(std::uint32_t train);
    // The interface has sent a train and takes the next.
    void injected(std::uint32_t node);
    // The head of the train goes one link further, or leaves the network.
    void hop(std::uint32_t train);
    // The train is in a mailbox: the back-pressure on its sender's node ends.
    void accepted(std::uint32_t from, std::uint32_t packets);

    // From one node's interface to the other's, without queueing: what an acknowledgement takes.
    Time delay(std::uint32_t from, std::uint32_t to) const;
    // Time between two packets of a train.
    Time gap() const { return gap_; }

 private:
    struct Interface {
        TrainQueue queue;
        std::uint64_t under_way = 0;  // packets that have not reached a mailbox
        Time eject_free = 0;
        bool busy = false;
    };

    void start(std::uint32_t node);
    Time service(Time each, std::uint32_t packets) const { return each * packets; }

    EventQueue& events_;
    TrainPool& trains_;
    Topology topology_;
    std::uint32_t processes_per_node_;
    std::uint32_t stride_;
    std::uint64_t window_;
    Time inject_, eject_, link_, hop_, fixed_, gap_;
    std::vector<Interface> interfaces_;
    std::vector<Time> link_free_;
};

}  // namespace velo::sim
