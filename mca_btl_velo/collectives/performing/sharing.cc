#include "collectives/performing/sharing.h"

#include "platform/failure.h"
#include "platform/monotonic.h"

namespace velo::performing {
namespace {

fabric::udp::Name name_of(const LiveRun& run) {
    return {run.number, run.group->name};
}

}  // namespace

void Sharing::multicast(const fabric::udp::ChannelConfig& config) {
    if (channel_ != nullptr) return;
    channel_ = std::make_unique<fabric::udp::Channel>(config);
    multicasts_.store(true, std::memory_order_release);
}

void Sharing::be_led(const fabric::udp::ChannelConfig& config, std::uint64_t late_after_ns) {
    if (led_ != nullptr) return;
    multicast::Attachment::Config policy;
    policy.attach_after_ns = late_after_ns;
    led_ = std::make_unique<Led>(Led{config, multicast::Attachment(policy)});
    multicasts_.store(true, std::memory_order_release);
}

bool Sharing::poll() {
    if (led_ != nullptr) mind_leader();
    if (channel_ == nullptr) return false;
    // What is left of groups that are no more.
    std::erase_if(listening_, [this](const Listening& listening) {
        const bool over = listening.group.expired();
        if (over) channel_->forget_group(listening.name);
        return over;
    });
    channel_->poll();
    return !channel_->arrived().empty() || !held_.empty();
}

// Runs of persistent requests have no numbers by which they could be told apart.
bool Sharing::may_share(const LiveRun& run) const {
    return channel_ != nullptr && run.start.lane == 0;
}

bool Sharing::share(LiveRun& run, goal::Vertex v, const goal::Operation& o) {
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

bool Sharing::may_wait(const LiveRun& run) const {
    return run.route == LiveRun::Route::kOpen && !run.compiled->led && may_share(run);
}

bool Sharing::hold(LiveRun& run, goal::Vertex v, const goal::Operation& o) {
    if (!may_wait(run) || (held_.empty() && !channel_->fills_up(o.bytes))) return false;
    held_.push_back({&run, v});
    return true;
}

void Sharing::send_held() {
    while (!held_.empty()) {
        const auto [run, v] = held_.front();
        const goal::Operation& o = run->schedule().operation(v);
        if (may_wait(*run) && channel_->fills_up(o.bytes)) return;
        held_.pop_front();
        host_.send_now(*run, v, o);
        host_.touch(*run);
    }
}

// Those who wait for it are told as of all that has not been sent.
void Sharing::give_back_held(LiveRun& run) {
    std::erase_if(held_, [&run](const Held& held) {
        if (held.run == &run) run.give_back(held.vertex);
        return held.run == &run;
    });
}

void Sharing::want(Slot& slot) {
    LiveRun& run = *slot.run;
    run.route = LiveRun::Route::kEach;
    if (!run.compiled->led) {
        if (may_share(run)) listen(slot);
        return;
    }
    if (led_ == nullptr || run.start.lane != 0) return;
    slot.led = led_->attachment.entered(platform::monotonic_ns());
    if (channel_ != nullptr) listen_beside_leader(slot);
}

void Sharing::listen(Slot& slot) {
    LiveRun& run = *slot.run;
    if (!run.group->shares) listening_.push_back({run.group->name, run.group});
    run.group->shares = true;
    slot.shared = true;
    channel_->want(name_of(run), slot.receive.buffer, slot.receive.capacity, &slot);
}

void Sharing::forget(Slot& slot) {
    channel_->forget(name_of(*slot.run), &slot);
}

std::uint32_t Sharing::collect_arrived() {
    std::uint32_t count = 0;
    for (; !channel_->arrived().empty(); ++count) {
        const fabric::udp::Channel::Arrived arrived = channel_->arrived().back();
        channel_->arrived().pop_back();
        Slot& slot = *static_cast<Slot*>(arrived.who);
        if (!host_.cancel(slot)) continue;  // it is told of
        if (slot.run->compiled->led) {
            ++led_->overheard;
            host_.pass_over(slot);
        }
        slot.run->route = LiveRun::Route::kMulticast;
        slot.status = arrived.fits ? VELO_OK : VELO_ERR_MISMATCH;
        host_.settle(slot);
    }
    send_held();
    return count;
}

// ---- of a process that is led

// Whoever is too far ahead of its leader waits for it.
void Sharing::listen_beside_leader(Slot& slot) {
    if (!slot.led) return channel_->pass(name_of(*slot.run));
    listen(slot);
}

void Sharing::mind_leader() {
    constexpr unsigned kEvery = 16;  // a look at the clock costs as much as a few calls of progress
    multicast::Attachment& attachment = led_->attachment;
    if (attachment.deadline() != multicast::kNever && ++led_->looks % kEvery == 0)
        (void)attachment.tick(platform::monotonic_ns());
    if (attachment.attached() == (channel_ != nullptr)) return;
    attachment.attached() ? join() : part();
}

void Sharing::join() {
    try {
        channel_ = std::make_unique<fabric::udp::Channel>(led_->config);
    } catch (const Failure& failure) {
        if (led_->config.log != nullptr) led_->config.log(led_->config.context, 1, failure.what());
        led_.reset();
        multicasts_.store(false, std::memory_order_relaxed);
        return;
    }
    for (LiveRun* run = host_.first_run(); run != nullptr; run = run->following)
        for (Slot* slot = run->receives; slot != nullptr; slot = slot->next)
            if (slot->led) listen_beside_leader(*slot);
}

void Sharing::part() {
    for (LiveRun* run = host_.first_run(); run != nullptr; run = run->following)
        for (Slot* slot = run->receives; slot != nullptr; slot = slot->next) slot->shared = false;
    channel_.reset();
}

void Sharing::heard_from_leader() {
    if (led_ != nullptr) (void)led_->attachment.led(platform::monotonic_ns());
}

void Sharing::observe(velo_performer_state& state) const {
    state.multicasts = led_ != nullptr ? led_->attachment.joins() > 0 : channel_ != nullptr;
    if (led_ == nullptr) {
        if (channel_ != nullptr) state.multicast = channel_->observe();
        return;
    }
    state.multicast.multicast_late = led_->attachment.late();
    state.multicast.multicast_joins = led_->attachment.joins();
    state.multicast.multicast_leaves = led_->attachment.leaves();
    state.multicast.multicasts_overheard = led_->overheard;
}

}  // namespace velo::performing
