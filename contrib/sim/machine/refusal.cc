// A mailbox that refuses, as InfiniBand's hardware does it: the receiver takes the packets of a pair in their
// order and while it has a buffer for them; others go back to the interface of their sender, which sends them
// again, in order, when the policy's timer has run out. The processes have no part in this, but that what
// they send meanwhile waits.
#include <algorithm>

#include "machine/simulation.h"

namespace velo::sim {
namespace {

constexpr Time kPerNanosecond = 1000;

}  // namespace

// True: the packet may enter the mailbox.
bool Simulation::admit(std::uint32_t index) {
    const Train& train = trains_[index];
    if (!train.is_data()) return true;
    Link& link = links_[peers_.first(train.to) + peers_.index_of(train.to, train.from)];
    const bool in_order = train.sequence == link.expected;
    if (in_order && link.unretrieved < processes_[train.to].refusal->refusal_limit()) {
        ++link.expected;
        ++link.unretrieved;
        return true;
    }
    network_.accepted(train.from, train.count);
    events_.push(events_.now() + network_.delay(train.to, train.from), kRefused, in_order ? 1 : 0, index);
    return false;
}

// The sender's interface learns of it.
void Simulation::refused(std::uint32_t train, bool for_want_of_a_buffer) {
    const std::uint32_t p = trains_[train].from;
    const std::uint32_t index = peers_.index_of(p, trains_[train].to);
    flow::Refusal& refusal = *processes_[p].refusal;
    Link& link = links_[peers_.first(p) + index];
    if (for_want_of_a_buffer) refusal.refused(index, events_.now() / kPerNanosecond);
    link.held.push(trains_, train);
    if (link.timer) return;
    link.timer = true;
    events_.push(std::max(events_.now(), refusal.retry_at_ns(index) * kPerNanosecond), kRetry, p, index);
}

void Simulation::retry(std::uint32_t p, std::uint32_t index) {
    Link& link = links_[peers_.first(p) + index];
    const Time due = processes_[p].refusal->retry_at_ns(index) * kPerNanosecond;
    if (due > events_.now()) return events_.push(due, kRetry, p, index);
    link.timer = false;
    while (!link.held.empty()) {
        const std::uint32_t train = link.held.pop(trains_);
        trains_[train].kind = TrainKind::kResentData;
        network_.submit(train);
    }
    if (pair(p, index).head == kNone) return;
    due_[p].push_back(index);
    rouse(p);
}

// Nothing may pass what is held; the policy decides how long. The actor's clock may be ahead of the event
// that ends the hold.
bool Simulation::holds(std::uint32_t p, std::uint32_t index) const {
    return links_[peers_.first(p) + index].timer ||
           processes_[p].refusal->retry_at_ns(index) * kPerNanosecond > clock_;
}

}  // namespace velo::sim
