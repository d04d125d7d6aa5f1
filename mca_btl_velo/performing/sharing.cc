// What all leaders of nodes get: by multicast, if its source finds that all hear it and that there is room,
// and else to each. A receive takes what comes first; nothing comes twice.
#include "performing/performer.h"
#include "platform/failure.h"
#include "platform/monotonic.h"

namespace velo::performing {

void Performer::multicast(const fabric::udp::ChannelConfig& config) {
    std::lock_guard lock(turn_);
    if (channel_ != nullptr) return;
    channel_ = std::make_unique<fabric::udp::Channel>(config);
    multicasts_.store(true, std::memory_order_release);
}

void Performer::be_led(const fabric::udp::ChannelConfig& config, std::uint64_t late_after_ns) {
    std::lock_guard lock(turn_);
    if (led_ != nullptr) return;
    multicast::Attachment::Config policy;
    policy.attach_after_ns = late_after_ns;
    led_ = std::make_unique<Led>(Led{config, multicast::Attachment(policy)});
    multicasts_.store(true, std::memory_order_release);
}

void Performer::deliver_to() {
    std::unique_lock lock(turn_, std::try_to_lock);
    if (!lock.owns_lock()) return;
    if (led_ != nullptr) mind_leader();
    if (channel_ == nullptr) return;
    // What is left of groups that are no more.
    std::erase_if(sharing_, [this](const Sharing& sharing) {
        const bool over = sharing.group.expired();
        if (over) channel_->forget_group(sharing.name);
        return over;
    });
    channel_->poll();
    if (!channel_->arrived().empty() || !held_.empty()) work_.store(true, std::memory_order_relaxed);
}

// Runs of persistent requests have no numbers by which they could be told apart.
bool Performer::may_share(const LiveRun& run) const {
    return channel_ != nullptr && run.start.lane == 0;
}

// True: the send is done, because the data has gone, or has come, by multicast.
bool Performer::share(LiveRun& run, goal::Vertex v, const goal::Operation& o) {
    if (run.compiled->led) return false;
    if (run.route == LiveRun::Route::kOpen) {
        run.route = LiveRun::Route::kEach;
        if (may_share(run)) {
            if (channel_->send(name_of(run), run.memory().at({o.offset, o.space}), o.bytes))
                run.route = LiveRun::Route::kMulticast;
            else  // a receive of a run so much older would take the message
                while (run.number >= kWindow && channel_->owes(run.group->name, run.number - kWindow))
                    channel_->poll();
        }
    }
    if (run.route == LiveRun::Route::kEach) return false;
    run.finished(v);
    return true;
}

// ---- sends that wait for room, the oldest first: one that needs much would never have it if others that
// need little went before

bool Performer::may_wait(const LiveRun& run) const {
    return run.route == LiveRun::Route::kOpen && !run.compiled->led && may_share(run);
}

// True: it waits.
bool Performer::hold(LiveRun& run, goal::Vertex v, const goal::Operation& o) {
    if (!may_wait(run) || (held_.empty() && !channel_->fills_up(o.bytes))) return false;
    held_.push_back({&run, v});
    return true;
}

void Performer::share_held() {
    while (!held_.empty()) {
        const auto [run, v] = held_.front();
        const goal::Operation& o = run->schedule().operation(v);
        if (may_wait(*run) && channel_->fills_up(o.bytes)) return;
        held_.pop_front();
        send_now(*run, v, o);
        touch(*run);
    }
}

// Those who wait for it are told as of all that has not been sent.
void Performer::give_back_held(LiveRun& run) {
    std::erase_if(held_, [&run](const Held& held) {
        if (held.run == &run) run.give_back(held.vertex);
        return held.run == &run;
    });
}

void Performer::want(Slot& slot) {
    LiveRun& run = *slot.run;
    run.route = LiveRun::Route::kEach;
    if (run.compiled->led) return follow(slot);
    if (!may_share(run)) return;
    if (!run.group->shares) sharing_.push_back({run.group->name, run.group});
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
        if (slot.run->compiled->led) {
            ++led_->overheard;
            pass_over(slot);
        }
        slot.run->route = LiveRun::Route::kMulticast;
        slot.status = arrived.fits ? VELO_OK : VELO_ERR_MISMATCH;
        settle(slot);
    }
    return count;
}

// ---- of a process that is led

void Performer::follow(Slot& slot) {
    if (led_ == nullptr || slot.run->start.lane != 0) return;
    slot.led = led_->attachment.entered(platform::monotonic_ns());
    if (channel_ != nullptr) want_led(slot);
}

// Whoever is too far ahead of its leader waits for it.
void Performer::want_led(Slot& slot) {
    LiveRun& run = *slot.run;
    if (!slot.led) return channel_->pass(name_of(run));
    if (!run.group->shares) sharing_.push_back({run.group->name, run.group});
    run.group->shares = true;
    slot.shared = true;
    channel_->want(name_of(run), slot.receive.buffer, slot.receive.capacity, &slot);
}

void Performer::mind_leader() {
    constexpr unsigned kEvery = 16;  // a look at the clock costs as much as a few calls of progress
    multicast::Attachment& attachment = led_->attachment;
    if (attachment.deadline() != multicast::kNever && ++led_->looks % kEvery == 0)
        (void)attachment.tick(platform::monotonic_ns());
    if (attachment.attached() == (channel_ != nullptr)) return;
    attachment.attached() ? join() : part();
}

void Performer::join() {
    try {
        channel_ = std::make_unique<fabric::udp::Channel>(led_->config);
    } catch (const Failure& failure) {
        if (led_->config.log != nullptr) led_->config.log(led_->config.context, 1, failure.what());
        led_.reset();
        multicasts_.store(false, std::memory_order_relaxed);
        return;
    }
    for (LiveRun* run = runs_; run != nullptr; run = run->following)
        for (Slot* slot = run->receives; slot != nullptr; slot = slot->next)
            if (slot->led) want_led(*slot);
}

void Performer::part() {
    for (LiveRun* run = runs_; run != nullptr; run = run->following)
        for (Slot* slot = run->receives; slot != nullptr; slot = slot->next) slot->shared = false;
    channel_.reset();
}

void Performer::hear_from_leader() {
    if (led_ != nullptr) (void)led_->attachment.led(platform::monotonic_ns());
}

void Performer::observe_led(velo_performer_state& state) const {
    state.multicast.multicast_late = led_->attachment.late();
    state.multicast.multicast_joins = led_->attachment.joins();
    state.multicast.multicast_leaves = led_->attachment.leaves();
    state.multicast.multicasts_overheard = led_->overheard;
}

}  // namespace velo::performing
