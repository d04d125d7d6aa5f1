#include "machine/network.h"

#include <algorithm>

namespace velo::sim {

Network::Network(const Machine& machine, EventQueue& events, TrainPool& trains)
    : events_(events),
      trains_(trains),
      topology_(machine.dimensions, machine.torus),
      processes_per_node_(machine.processes_per_node),
      stride_(machine.node_stride),
      window_(machine.node_window > 0 ? machine.node_window : UINT64_MAX),
      inject_(from_ns(machine.costs.inject_ns)),
      eject_(from_ns(machine.costs.eject_ns)),
      link_(from_ns(machine.costs.link_ns)),
      hop_(from_ns(machine.costs.hop_ns)),
      fixed_(from_ns(machine.costs.network_ns)),
      gap_(std::max({inject_, eject_, link_})),
      interfaces_(topology_.nodes()),
      link_free_(topology_.links(), 0) {}

void Network::submit(std::uint32_t train) {
    const std::uint32_t node = node_of(trains_[train].from);
    interfaces_[node].queue.push(trains_, train);
    start(node);
}

void Network::start(std::uint32_t node) {
    Interface& interface = interfaces_[node];
    if (interface.busy || interface.queue.empty() || interface.under_way >= window_) return;
    const std::uint32_t index = interface.queue.pop(trains_);
    Train& train = trains_[index];
    const Time now = events_.now();
    interface.busy = true;
    interface.under_way += train.count;
    train.node = node;
    events_.push(now + inject_, kHop, 0, index);
    events_.push(now + service(inject_, train.count), kInjected, node,
                 train.kind == TrainKind::kData ? train.from : kNone);
}

void Network::injected(std::uint32_t node) {
    interfaces_[node].busy = false;
    start(node);
}

void Network::hop(std::uint32_t index) {
    Train& train = trains_[index];
    const Time now = events_.now();
    const std::uint32_t to = node_of(train.to);
    if (train.node == to) {
        Time& free = interfaces_[to].eject_free;
        const Time begin = std::max(now, free);
        free = begin + service(eject_, train.count);
        train.done = begin + fixed_ + service(gap_, train.count);
        events_.push(begin + fixed_ + gap_, kArrive, 0, index);
        return;
    }
    const Topology::Hop hop = topology_.next(train.node, to);
    const Time begin = std::max(now, link_free_[hop.link]);
    link_free_[hop.link] = begin + service(link_, train.count);
    train.node = hop.node;
    events_.push(begin + hop_, kHop, 0, index);
}

void Network::accepted(std::uint32_t from, std::uint32_t packets) {
    const std::uint32_t node = node_of(from);
    interfaces_[node].under_way -= packets;
    start(node);
}

}  // namespace velo::sim
