// Windows that open and close on demand: an engine's patience with them
// (mca_btl_velo/design/adding-a-policy.md).
#include "machine/simulation.h"

namespace velo::sim {

void Simulation::watch_patience(std::uint32_t p) {
    Contacts& contacts = contacts_[p];
    contacts.changed = clock_;
    if (contacts.timer || !processes_[p].ledger->contact_pending()) return;
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
    flow::Ledger& ledger = *processes_[p].ledger;
    contacts_[p].overdue = false;
    if (ledger.contact_pending()) ledger.contact_overdue();
    watch_patience(p);
}

}  // namespace velo::sim
