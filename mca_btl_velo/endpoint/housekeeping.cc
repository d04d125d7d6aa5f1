// What a process does beside its mailbox when it polls: sends that have waited, transfers to help with,
// doorbells, other nodes; and its sleep.
#include <algorithm>
#include <mutex>
#include <utility>

#include "endpoint/engine.h"
#include "platform/ticks.h"

namespace velo::endpoint {
namespace {

// Where something waits for room, a poll may last milliseconds: a crowded process yields after each.
constexpr std::uint32_t kWorkPollsBetweenLooks = 16;

}  // namespace

void Engine::doze() {
    const std::uint32_t limit_us = platform::sleep_after(++idle_polls_, sleep_us_);
    if (limit_us == 0) return;
    if (!processor_is_wanted()) {
        idle_polls_ = 0;
        return;
    }
    std::atomic<std::uint32_t>& word = mailbox_.header().pointers.doze;
    if (companion_ == nullptr) {
        platform::doze(word, limit_us, [this] { return idle(); });
    } else {
        Engine& other = *companion_;
        if (other.idle_polls_ < platform::kPollsToSleep / 2 || other.housekeeping_ == Housekeeping::kWork)
            return;
        other.idle_polls_ = idle_polls_;
        platform::doze(word, other.mailbox_.header().pointers.doze, limit_us,
                       [&] { return idle() && other.idle(); });
    }
    look_around();
}

// `handled`: packets of this poll so far. Returns it with what rang.
int Engine::housekeep(int handled) {
    if (doorbell_) handled += answer_doorbell();
    if (remote_) {
        release_delayed_credit(*remote_);
        handled += progress_remote(handled > 0);
    }
    if (housekeeping_.load(std::memory_order_relaxed) != Housekeeping::kWork) {
        if (handled == 0 && sleep_us_ > 0) doze();
        return handled;
    }
    give_help();
    finish_shared_gets();
    bool more;  // than deposits that nobody may ever take
    {
        std::lock_guard lock(mutex_);
        flush_stalled();
        deposits_.feed();
        withdraw_name();
        if (doorbell_) hurry_contact();
        more = !stalled_.empty() || !awaited_.empty() || !helps_.empty() || !shared_gets_.empty() ||
               contact_due_ns_ != 0;
        Housekeeping rest = doorbell_ || remote_ ? Housekeeping::kListen : Housekeeping::kNone;
        housekeeping_.store(more || deposits_.feeds() ? Housekeeping::kWork : rest,
                            std::memory_order_relaxed);
    }
    run_completions();
    if (looks_left_ > 0) handled += look_on();
    if (handled == 0 && !more && sleep_us_ > 0) doze();
    if (handled == 0 && ++work_polls_ % kWorkPollsBetweenLooks == 0) look_around();
    return handled;
}

// What the callbacks have sent waits behind what has left, and leaves with the next credits.
int Engine::look_on() {
    int handled = 0;
    for (; looks_left_ > 0 && stalls_.any() && !failed_; --looks_left_) {
        handled += drain_other(velo_);
        if (remote_) handled += progress_remote(true);
        {
            std::lock_guard lock(mutex_);
            flush_stalled();
        }
        run_completions();
    }
    looks_left_ = 0;
    return handled;
}

void Engine::flush_stalled() {
    const std::uint64_t now = velo_.refusal != nullptr && !stalled_.empty() ? platform::now_ns() : 0;
    std::erase_if(stalled_, [this, now](Peer* peer) {
        report_left(*peer);
        const flow::Refusal* refusal = peer->domain.refusal;
        if (refusal != nullptr && now < refusal->retry_at_ns(peer->source())) return false;
        peer->stalled = (flush(*peer) && !peer->policy().limited()) || !peer->leaving.empty();
        return !peer->stalled;
    });
}

// Takes the mailbox's name away once every peer that needed it has attached.
void Engine::withdraw_name() {
    std::erase_if(awaited_, [this](flow::PeerIndex index) { return mailbox_.is_introduced(index); });
    if (awaited_.empty()) mailbox_.file().unpublish();
}

void Engine::run_completions() {
    SendQueue due;
    {
        std::lock_guard lock(mutex_);
        due = std::exchange(completed_, SendQueue());
    }
    while (!due.empty()) {
        velo_send* send = due.front();
        due.pop();
        send->done(send, send->status);
    }
}

}  // namespace velo::endpoint
