// Runs: from their start to their end.
#include "collectives/performing/performer.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <new>
#include <utility>

#include "platform/failure.h"
#include "platform/monotonic.h"

namespace velo::performing {
namespace {

using goal::kNoVertex;

std::uint32_t context_of(std::uint32_t group, std::uint32_t lane, std::uint64_t number) {
    const std::uint64_t low = lane == 0 ? number % kWindow : kWindow + lane % kWindow;
    return group << 16 | static_cast<std::uint32_t>(low);
}

constexpr std::size_t kLine = 64;

// Aligned, inside of something longer.
std::byte* aligned(std::byte* memory) {
    const auto address = reinterpret_cast<std::uintptr_t>(memory);
    return memory + ((address + kLine - 1) / kLine * kLine - address);
}

}  // namespace

LiveRun::LiveRun(Performer& by, Compiled& of) : goal::Run(of.schedule), performer(&by) {
    goal::Memory& m = memory();
    if (const std::uint64_t bytes = of.schedule.scratch_bytes(); bytes > 0) {
        if (bytes > PTRDIFF_MAX - kLine) throw std::bad_alloc();
        scratch = std::make_unique_for_overwrite<std::byte[]>(bytes + kLine);
        m.base[goal::kScratch] = aligned(scratch.get());
    }
    if (of.nowhere > 0 && of.nobodys == nullptr) of.nobodys = std::make_unique<std::byte[]>(of.nowhere);
    m.base[goal::kNowhere] = of.nobodys.get();
}

Performer::Performer(engine::Engine& engine, messaging::Messenger& messenger,
                     goal::collectives::Choices choices)
    : engine_(engine),
      messenger_(messenger),
      choices_(std::move(choices)),
      threads_(engine.config().threads),
      turn_(threads_),
      telling_(threads_),
      stalls_(*this, messenger, engine.config()) {
    messenger_.report_to(&inbox_);
}

void Performer::have_help(Helper& helper, std::uint64_t from_bytes) {
    helped_from_bytes_ = from_bytes;
    helper_ = &helper;
    helper.start([this] { return help(); });
}

Performer::~Performer() {
    while (LiveRun* run = runs_) {
        runs_ = run->following;
        const std::shared_ptr<Compiled> keeps = std::move(run->compiled);
        delete run;
    }
}

LiveRun* Performer::prepare(const std::shared_ptr<Group>& group, const std::shared_ptr<Compiled>& compiled,
                            const velo_goal_start& start) {
    const goal::Schedule& schedule = compiled->schedule;
    if (schedule.rank() != group->rank || schedule.size() != group->size)
        throw Failure(VELO_ERR_PARAMETER, "the schedule is of another rank or size than the group");
    if (start.argument_count < compiled->arguments || start.argument_count > goal::kArguments)
        throw Failure(VELO_ERR_PARAMETER, "the schedule needs arguments, and none were given");
    if (compiled->combines && start.combine == nullptr)
        throw Failure(VELO_ERR_PARAMETER, "the schedule needs a reduction function, and none was given");
    if (start.lane != 0 && compiled->most_tag >= kLaneTag)
        throw Failure(VELO_ERR_PARAMETER, "the schedule has tags that no lane has");
    std::lock_guard lock(turn_);
    if (helper_ != nullptr) reach_members(group, *compiled);
    std::unique_ptr<LiveRun> run;
    if (compiled->idle.empty()) {
        run = std::make_unique<LiveRun>(*this, *compiled);
    } else {
        run = std::move(compiled->idle.back());
        compiled->idle.pop_back();
        run->restart();
    }
    if (compiled->idle.capacity() < kMostIdle) compiled->idle.reserve(kMostIdle);
    run->number = start.lane == 0 ? group->take_number() : start.lane_number;
    run->begun = run->active = run->concluded = run->helped = false;
    run->route = LiveRun::Route::kOpen;
    run->waits = start.lane == 0 && !group->may_begin(run->number);
    if (run->waits) try {
            group->waiting.push_back(run.get());
        } catch (...) {
            group->give_back_number();
            throw;
        }
    run->compiled = compiled;
    run->group = group;
    run->start = start;
    std::copy_n(start.arguments, start.argument_count, reinterpret_cast<void**>(run->memory().base));
    run->start.arguments = nullptr;
    run->result = {VELO_OK, kNoVertex, goal::kAny, group->rank};
    run->over.store(false, std::memory_order_relaxed);
    run->previous = nullptr;
    run->following = runs_;
    if (runs_ != nullptr) runs_->previous = run.get();
    runs_ = run.get();
    ++state_.runs;
    return run.release();
}

void Performer::begin(LiveRun* run) {
    stalls_.moved();
    const Helper::StandBy stand_by(helper_);
    std::unique_lock lock(turn_);
    if (!run->begun && !run->waits) open(*run);
    if (!wants_help(*run)) {
        perform(kMost);
        return note_work();
    }
    run->helped = true;
    helper_->run_begins();
    note_work();
    lock.unlock();
    helper_->wake();
}

bool Performer::wants_help(const LiveRun& run) const {
    return helper_ != nullptr && !helpless_ && !run.start.awaited && !run.concluded &&
           run.compiled->moved_bytes >= helped_from_bytes_;
}

// The helper asks nobody where a member is.
void Performer::reach_members(const std::shared_ptr<Group>& group, Compiled& compiled) {
    if (!compiled.reached.owner_before(group) && !group.owner_before(compiled.reached)) return;
    for (goal::Vertex v = 0; v < compiled.schedule.count(); ++v) {
        const goal::Operation& o = compiled.schedule.operation(v);
        if (o.communicates() && o.peer != goal::kAny && o.peer != group->rank &&
            group->peer(o.peer) == nullptr)
            helpless_ = true;
    }
    compiled.reached = group;
}

// As progress(), on the helper's thread: an operation at a time, and nothing that calls the program.
Helper::Step Performer::help() {
    std::uint32_t moved = 0;
    (void)contained(
        [&] {
            moved = static_cast<std::uint32_t>(engine_.progress());
            if (!operations_.slots().has_told() && !ready_.load(std::memory_order_relaxed)) return;
            std::unique_lock lock(turn_, std::try_to_lock);
            if (!lock.owns_lock() || helpless_) return;
            const std::uint64_t before = state_.operations;
            moved += perform(1);
            note_work();
            state_.helped += state_.operations - before;
        },
        [this](velo_status status, const char* text) { engine_.fail(status, text); });
    if (moved == 0) return engine_.observer().any_stall() ? Helper::Step::kOwed : Helper::Step::kNothing;
    stalls_.moved();
    return Helper::Step::kMoved;
}

void Performer::open(LiveRun& run) {
    run.begun = true;
    run.context = context_of(run.group->id, run.start.lane, run.number);
    run.first_tag = kLaneTag * (run.start.lane == 0 ? run.compiled->signature : run.start.lane / kWindow);
    run.round = run.group->round(run.start.lane == 0 ? run.number : 0);
    activate(run);
    if (!failures_.any()) [[likely]]
        return;
    if (const auto why = failures_.begins(run.id())) stop(run, *why);
}

void Performer::drop_late(const Spoiled& spoiled) {
    messenger_.forget(spoiled.context, [&](const matching::Key& key) { return spoiled.is_of(key); });
}

velo_goal_result Performer::end(LiveRun* run) {
    std::shared_ptr<Compiled> compiled;
    std::unique_ptr<LiveRun> over(run);
    const velo_goal_result result = run->result;
    std::lock_guard lock(turn_);
    (run->previous != nullptr ? run->previous->following : runs_) = run->following;
    if (run->following != nullptr) run->following->previous = run->previous;
    compiled = std::move(run->compiled);
    run->group.reset();
    if (compiled->idle.size() < compiled->idle.capacity()) compiled->idle.push_back(std::move(over));
    return result;
}

void Performer::skip(Group& group) {
    std::lock_guard lock(turn_);
    group.is_over(group.take_number());
}

std::uint32_t Performer::take_lane(Group& group) {
    std::lock_guard lock(turn_);
    return group.take_lane();
}

std::uint64_t Performer::new_name(std::uint64_t members, std::uint32_t id) {
    std::lock_guard lock(turn_);
    return names_.take(members, id);
}

void Performer::close(const Group& group) {
    std::lock_guard lock(turn_);
    failures_.close(group);
}

std::shared_ptr<Compiled>* Performer::schedule(Group& group, const velo_goal_request& request) {
    std::lock_guard lock(turn_);
    return group.schedule(request, choices_, &state_.compiled);
}

std::shared_ptr<Compiled> Performer::keep(Group& group, const velo_goal_request& request) {
    std::lock_guard lock(turn_);
    return *group.schedule(request, choices_, &state_.compiled);
}

int Performer::progress() {
    const Helper::StandBy stand_by(helper_);
    const auto events = static_cast<std::uint32_t>(engine_.progress());
    if (sharing_.may_multicast()) [[unlikely]] {
        poll_sharing();
        engine_.idle().reset();  // a datagram wakes nobody
    }
    if (!operations_.slots().has_told() && !work_.load(std::memory_order_relaxed) && !inbox_.has_some())
        [[likely]] {
        stalls_.count_idle_look();
        return static_cast<int>(events);
    }
    engine_.idle().reset();
    std::uint32_t moved = 0;
    {
        std::unique_lock lock(turn_, std::try_to_lock);
        if (!lock.owns_lock()) return static_cast<int>(events);
        if (inbox_.has_some()) attend();
        for (const Spoiled& spoiled : failures_.spoiled()) drop_late(spoiled);
        moved += perform(kMost);
        note_work();
    }
    if (telling_.try_enter()) {
        try {
            moved += tell();
        } catch (...) {
            telling_.leave();
            throw;
        }
        telling_.leave();
    }
    if (moved > 0)
        stalls_.moved();
    else
        stalls_.count_idle_look();
    return static_cast<int>(events + moved);
}

void Performer::note_work() {
    const bool ready = first_active_ != nullptr;
    ready_.store(ready, std::memory_order_relaxed);
    work_.store(ready || !news_.empty() || !failures_.spoiled().empty(), std::memory_order_relaxed);
}

velo_performer_state Performer::observe() {
    std::lock_guard lock(turn_);
    velo_performer_state state = state_;
    state.messages = messenger_.observe();
    sharing_.observe(state);
    state.choices = choices_.digest();
    state.helper_wakes = helper_ != nullptr ? helper_->wakes() : 0;
    return state;
}

std::uint32_t Performer::perform(std::uint32_t most) {
    for (std::uint32_t events = 0;;) {
        events += collect();
        events += sharing_.collect();
        LiveRun* run = first_active_;
        if (run == nullptr || most == 0) return events;
        first_active_ = run->next_active;
        run->active = false;
        const std::uint64_t before = state_.operations;
        (void)drain(*run, operations_, most);
        const auto started = static_cast<std::uint32_t>(state_.operations - before);
        events += started;
        most -= started;
        touch(*run);
    }
}

std::uint32_t Performer::collect() {
    std::uint32_t count = 0;
    for (Slot* slot = operations_.slots().take_told(); slot != nullptr; ++count) {
        Slot* const next = slot->told;
        settle(*slot);
        slot = next;
    }
    return count;
}

void Performer::settle(Slot& slot) {
    if (slot.run == nullptr) [[unlikely]]
        return operations_.release(slot);
    if (slot.receives && messaging::Messenger::is_announced(&slot.receive)) [[unlikely]]
        if (!messenger_.withdraw(&slot.receive)) return;
    LiveRun& run = *slot.run;
    const goal::Vertex v = slot.vertex;
    const velo_status status = slot.status;
    operations_.release(slot);
    if (status == VELO_OK) [[likely]]
        run.finished(v);
    else
        fail(run, v, status);
    touch(run);
}

// The first failure is told.
void Performer::fail(LiveRun& run, goal::Vertex v, velo_status status) {
    if (!run.stopped()) {
        const goal::Operation& o = run.schedule().operation(v);
        stop(run, {status, v, o.communicates() ? o.peer : goal::kAny, run.group->rank});
    }
    run.finished(v);
}

// The receives that still wait would do so for ever, here and at others; so would those whose messages nobody
// receives here.
void Performer::stop(LiveRun& run, const velo_goal_result& why) {
    const Ending ending{run.id(), why};
    run.result = why;
    sharing_.give_back_held(run);
    run.stop();
    const Spoiled& spoiled = failures_.stopped(ending, {ending.run, run.context, run.round, run.first_tag});
    tell_who_waits(run, ending);
    for (Slot* slot = run.receives; slot != nullptr;) {
        Slot* next = slot->next;
        if (messenger_.cancel(&slot->receive)) {
            run.finished(slot->vertex);
            operations_.release(*slot);
        }
        slot = next;
    }
    drop_late(spoiled);
}

// Each member for whom the run had something yet, once: a packet each, whatever the schedule. They tell those
// who wait for them.
void Performer::tell_who_waits(LiveRun& run, const Ending& ending) {
    const goal::Schedule& schedule = run.schedule();
    std::vector<bool> told(schedule.size());
    told[schedule.rank()] = true;
    for (goal::Vertex v = 0; v < schedule.count(); ++v) {
        const goal::Operation& o = schedule.operation(v);
        if (o.kind != goal::Kind::kSend || !run.goal::Run::waits(v) || told[o.peer]) continue;
        told[o.peer] = true;
        velo_peer* const peer = run.group->peer(o.peer);
        if (peer == nullptr || inbox_.has_departed(peer)) continue;
        messenger_.notify(*peer, std::bit_cast<messaging::Notice>(ending));
        ++state_.told;
    }
}

void Performer::attend() {
    std::vector<Ending> endings;
    if (inbox_.take(endings)) look_for_departed();
    for (const Ending& ending : endings) heed(ending);
}

void Performer::heed(const Ending& ending) {
    for (LiveRun* run = runs_; run != nullptr; run = run->following) {
        if (!run->begun || !ending.concerns(run->id())) continue;
        if (run->stopped() || run->concluded) return;
        stop(*run, ending.result);
        return touch(*run);
    }
    failures_.heard(ending);
}

// Receives from processes that have ended.
void Performer::look_for_departed() {
    for (LiveRun* run = runs_; run != nullptr; run = run->following) {
        const auto waits_in_vain = [this](const Slot* slot) {
            return slot->peer != nullptr && inbox_.has_departed(slot->peer);
        };
        Slot* slot = run->receives;
        while (slot != nullptr && !waits_in_vain(slot)) slot = slot->next;
        if (slot == nullptr || !messenger_.cancel(&slot->receive)) continue;
        const goal::Vertex v = slot->vertex;
        velo_peer& peer = *slot->peer;
        operations_.release(*slot);
        fail_with_departed(*run, v, peer);
        touch(*run);
    }
}

void Performer::fail_with_departed(LiveRun& run, goal::Vertex v, velo_peer& peer) {
    engine_.large().failed(peer, 0);
    fail(run, v, VELO_ERR_UNREACHABLE);
}

void Performer::touch(LiveRun& run) {
    if (run.active || run.concluded) return;
    if (run.has_ready()) return activate(run);
    if (run.done()) conclude(run);
}

void Performer::activate(LiveRun& run) {
    run.active = true;
    run.next_active = nullptr;
    (first_active_ == nullptr ? first_active_ : last_active_->next_active) = &run;
    last_active_ = &run;
}

void Performer::conclude(LiveRun& run) {
    run.concluded = true;
    if (run.helped) helper_->run_ends();
    ++state_.ended;
    if (run.stopped()) ++state_.failed;
    Group& group = *run.group;
    if (run.start.lane == 0) group.is_over(run.number);
    for (; !group.waiting.empty() && group.may_begin(group.waiting.front()->number);
         group.waiting.pop_front())
        open(*group.waiting.front());
    if (run.start.done != nullptr)
        news_.push_back({&run, kNoVertex});
    else
        run.over.store(true, std::memory_order_release);
}

namespace {

void combine_own(const LiveRun& run, const goal::Operation& o) {
    const goal::Combination& c = run.schedule().combination(o);
    const auto at = [&](const goal::Operand& operand) {
        return run.memory().at({operand.offset, operand.space});
    };
    run.start.combine(run.start.context, at(c.first), at(c.second), at(c.result), o.bytes);
}

}  // namespace

// What there is at the beginning: who is told may start more.
std::uint32_t Performer::tell() {
    std::unique_lock lock(turn_);
    const std::size_t count = news_.size();
    for (std::size_t i = 0; i < count; ++i) {
        const News news = news_.front();
        news_.pop_front();
        LiveRun& run = *news.run;
        const velo_goal_start& start = run.start;
        lock.unlock();
        if (news.vertex == kNoVertex) {
            const auto done = start.done;
            void* const context = start.context;
            run.over.store(true, std::memory_order_release);
            done(context, reinterpret_cast<velo_goal_run*>(&run));
            lock.lock();
            continue;
        }
        const goal::Operation& o = run.schedule().operation(news.vertex);
        velo_status status = VELO_OK;
        if (o.kind == goal::Kind::kCall)
            status = start.call(start.context, o.peer);
        else if (o.kind == goal::Kind::kCombine)
            combine_own(run, o);
        else
            start.calculate(start.context, o.bytes, o.cpu);
        lock.lock();
        if (status >= VELO_OK)
            run.finished(news.vertex);
        else
            fail(run, news.vertex, status);
        touch(run);
    }
    if (count > 0) perform(kMost);
    note_work();
    return static_cast<std::uint32_t>(count);
}

void Performer::poll_sharing() {
    std::unique_lock lock(turn_, std::try_to_lock);
    if (lock.owns_lock() && sharing_.poll()) work_.store(true, std::memory_order_relaxed);
}

void Performer::look_for_stalls() {
    std::unique_lock lock(turn_, std::try_to_lock);
    if (!lock.owns_lock()) return;
    stalls_.look(platform::monotonic_ns());
    note_work();
}

}  // namespace velo::performing
