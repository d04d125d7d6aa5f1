// What all leaders of nodes get: by multicast, if its source finds that all hear it and that there is room,
// and else to each. A receive takes what comes first; nothing comes twice.
#include "performing/performer.h"

namespace velo::performing {

void Performer::multicast(const fabric::udp::ChannelConfig& config) {
    std::lock_guard lock(turn_);
    if (channel_ != nullptr) return;
    channel_ = std::make_unique<fabric::udp::Channel>(config);
    multicasts_.store(true, std::memory_order_release);
}

void Performer::listen() {
    std::unique_lock lock(turn_, std::try_to_lock);
    if (!lock.owns_lock()) return;
    // What is left of groups that are no more, before the next one with that id is heard of.
    std::erase_if(sharing_, [this](const Sharing& sharing) {
        const bool over = sharing.group.expired();
        if (over) channel_->forget_group(sharing.id);
        return over;
    });
    channel_->poll();
    if (!channel_->arrived().empty()) work_.store(true, std::memory_order_relaxed);
}

// Runs of persistent requests have no numbers by which they could be told apart.
bool Performer::may_share(const LiveRun& run) const {
    return channel_ != nullptr && run.start.lane == 0;
}

// True: the send is done, because the data has gone, or has come, by multicast.
bool Performer::share(LiveRun& run, goal::Vertex v, const goal::Operation& o) {
    if (run.way == LiveRun::Way::kOpen) {
        run.way = LiveRun::Way::kEach;
        if (may_share(run)) {
            if (channel_->send(name_of(run), run.memory().at({o.offset, o.space}), o.bytes))
                run.way = LiveRun::Way::kMulticast;
            else  // a receive of a run so much older would take the message
                while (run.number >= kWindow && channel_->owes(run.group->id, run.number - kWindow))
                    channel_->poll();
        }
    }
    if (run.way == LiveRun::Way::kEach) return false;
    run.finished(v);
    return true;
}

void Performer::want(Slot& slot) {
    LiveRun& run = *slot.run;
    run.way = LiveRun::Way::kEach;
    if (!may_share(run)) return;
    if (!run.group->shares) sharing_.push_back({run.group->id, run.group});
    run.group->shares = true;
    slot.shared = true;
    channel_->want(name_of(run), slot.receive.buffer, slot.receive.capacity, &slot);
}

std::uint32_t Performer::collect_shared() {
    std::uint32_t count = 0;
    for (; !channel_->arrived().empty(); ++count) {
        const fabric::udp::Channel::Arrived arrived = channel_->arrived().back();
        channel_->arrived().pop_back();
        Slot& slot = *static_cast<Slot*>(arrived.who);
        if (!messenger_.cancel(&slot.receive)) continue;  // it is told of
        slot.run->way = LiveRun::Way::kMulticast;
        slot.status = arrived.fits ? VELO_OK : VELO_ERR_MISMATCH;
        settle(slot);
    }
    return count;
}

}  // namespace velo::performing
