// Windows that open and close on demand: the calls that an engine owes to such a policy, in their order, and
// its patience (mca_btl_velo/design/adding-a-policy.md).
#include <algorithm>

#include "machine/simulation.h"
#include "wire/packet.h"

namespace velo::sim {
namespace {

wire::PacketKind packet_kind(TrainKind kind) {
    switch (kind) {
        case TrainKind::kBye:
            return wire::PacketKind::kBye;
        case TrainKind::kRelease:
            return wire::PacketKind::kRelease;
        case TrainKind::kLeave:
            return wire::PacketKind::kLeave;
        default:
            return wire::PacketKind::kHello;
    }
}

}  // namespace

// A packet that opens, fills or closes a window has been retrieved.
void Simulation::contact(std::uint32_t p, std::uint32_t index, const Train& train) {
    flow::Policy& policy = *processes_[p].policy;
    if (train.kind == TrainKind::kCredit)
        policy.credit_retrieved(index, train.value, *this);
    else
        policy.contact_retrieved(index, packet_kind(train.kind), train.value, *this);
    flush(p, index);
    if (pair(p, index).head != kNone) policy.credit_wanted(index, *this);
    policy.control_flushed(*this);
    watch_patience(p);
}

void Simulation::want_credit(std::uint32_t p, std::uint32_t index) {
    processes_[p].policy->credit_wanted(index, *this);
    watch_patience(p);
}

void Simulation::watch_patience(std::uint32_t p) {
    Contacts& contacts = contacts_[p];
    contacts.changed = clock_;
    if (contacts.timer || !processes_[p].policy->contact_pending()) return;
    contacts.timer = true;
    ++patience_timers_;
    events_.push(clock_ + from_ns(machine_.costs.patience_ns), kPatience, p, 0);
}

// The process asks one more peer when it looks next. A run in which nothing moves any more, however often
// they ask, has to end.
void Simulation::lose_patience(std::uint32_t p) {
    Contacts& contacts = contacts_[p];
    const Time end = contacts.changed + from_ns(machine_.costs.patience_ns);
    if (end > events_.now()) return events_.push(end, kPatience, p, 0);
    const bool alone = events_.size() + 1 == patience_timers_ && digest_ == quiet_digest_;
    quiet_timers_ = alone ? quiet_timers_ + 1 : 0;
    quiet_digest_ = digest_;
    --patience_timers_;
    contacts.timer = false;
    if (quiet_timers_ > 4 * processes_.size()) return;
    contacts.overdue = true;
    rouse(p);
}

void Simulation::ask_another(std::uint32_t p) {
    flow::Policy& policy = *processes_[p].policy;
    contacts_[p].overdue = false;
    if (policy.contact_pending()) policy.contact_overdue(*this);
    watch_patience(p);
}

}  // namespace velo::sim
