// Broadcasts on a switched network that multicasts: the members of collectives/multicast/ on nodes whose
// processors and interfaces serve one thing after the other, and beside them a broadcast by point-to-point
// messages. The same machine, so that the two may be compared.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collectives/multicast/attachment.h"
#include "collectives/multicast/member.h"

namespace velo::sim {

// Nanoseconds; of bytes, for each. Startup (post and take) and wire are those that the slides fit for
// InfiniBand: 2.10 us and 0.000935 us; the others are estimates.
struct MulticastCosts {
    double post = 1050;         // processor: a datagram to the interface
    double take = 1050;         // processor: a datagram of data from it
    double take_control = 300;  // processor: one without data
    double take_ack = 50;       // processor: each acknowledgement in it
    double copy_byte = 0.25;    // processor
    double packet = 100;        // interface, each way
    double wire_byte = 0.935;   // interface, each way
    double attached = 300;   // interface of the receiver: each further process that has joined, and its copy
    double at_switch = 200;  // each switch on the way
    double local = 400;      // processor: a message within a node, each end
    double board = 400;      // from the leader's line to those who read it
    double join = 30'000;    // processor: to join the group, or to leave it
};

struct MulticastRun {
    enum class Mode : std::uint8_t {
        kOriginal,   // a binomial tree of point-to-point messages
        kEverybody,  // every process is a member
        kLeaders,    // the first process of each node is; the others read its board
        kExchange,   // no broadcast: so many messages of each process to each other one, without copies
    };
    enum class Pace : std::uint8_t {
        kOneByOne,  // the next begins when all have the last one, or time is over
        kStream,    // as fast as the root may
    };
    Mode mode = Mode::kLeaders;
    Pace pace = Pace::kOneByOne;
    std::uint32_t nodes = 8;
    std::uint32_t on_node = 1;
    bool cyclic = false;  // original: ranks are dealt out to the nodes one by one, not node by node
    std::uint32_t bytes = 8;
    std::uint32_t broadcasts = 50;
    double interval_us = 0;    // one by one: at least, from one to the next
    multicast::Config config;  // but for members, me and sources
    MulticastCosts costs;
    double loss = 0, doubles = 0, reordered = 0;  // shares of what arrives
    std::uint32_t receive_buffer = 1024;          // datagrams that wait for a processor
    // This process does not listen: in each `late_every`th broadcast from its begin on, for `late_us` or, if
    // `random_lateness`, any part of it.
    std::uint32_t late_process = UINT32_MAX;
    std::uint32_t late_every = 1;
    double late_us = 0;
    bool random_lateness = true;
    multicast::Attachment::Config attachment{.dynamic = false};
    std::uint64_t seed = 1;

    std::uint32_t processes() const { return nodes * on_node; }
};

struct MulticastOutcome {
    std::string fault;               // what must not be; empty
    std::vector<double> latency_us;  // of each broadcast: until all have it
    std::vector<double> waits_us;    // the same, the mean of those who are not late
    std::vector<double> longest_us;  // the same, the longest of those who are not late
    double total_us = 0;             // until all have all
    multicast::Counters root, all;   // of members; all: the sum
    std::uint64_t joins = 0, leaves = 0;
    std::uint64_t overflows = 0;  // datagrams that found a receive buffer full
    std::uint64_t datagrams = 0;  // that left an interface
    std::uint64_t digest = 0;     // of all deliveries
};

MulticastOutcome run_multicast(const MulticastRun& run);

// Switches between two nodes, of 16 ports each way: 1, 3, 5.
std::uint32_t switches_between(std::uint32_t a, std::uint32_t b);

// The slides' models, in microseconds, with the costs of the run.
struct MulticastModel {
    double hop_us = 0;        // one message to another node
    double original_us = 0;   // hop * log2(n)
    double window_us = 0;     // T_sr
    double transfer_us = 0;   // T_rc, to the last co-root
    double to_coroot_us = 0;  // the lesser of the two
};
MulticastModel model_of(const MulticastRun& run);

}  // namespace velo::sim
