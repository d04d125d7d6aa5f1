// Runs: from their start to their end.
#include "performing/performer.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <new>
#include <utility>

#include "platform/failure.h"

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

Performer::Performer(endpoint::Engine& engine, messaging::Messenger& messenger,
                     goal::collectives::Choices choices)
    : engine_(engine),
      messenger_(messenger),
      choices_(std::move(choices)),
      threads_(engine.config().threads),
      turn_(threads_),
      telling_(threads_) {
    messenger_.report_to(this);
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
    has_moved_.store(true, std::memory_order_relaxed);
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
            if (told_.load(std::memory_order_relaxed) == nullptr && !ready_.load(std::memory_order_relaxed))
                return;
            std::unique_lock lock(turn_, std::try_to_lock);
            if (!lock.owns_lock() || helpless_) return;
            const std::uint64_t before = state_.operations;
            moved += perform(1);
            note_work();
            state_.helped += state_.operations - before;
        },
        [this](velo_status status, const char* text) { engine_.fail(status, text); });
    if (moved == 0) return engine_.observer().any_stall() ? Helper::Step::kOwed : Helper::Step::kNothing;
    has_moved_.store(true, std::memory_order_relaxed);
    return Helper::Step::kMoved;
}

void Performer::open(LiveRun& run) {
    run.begun = true;
    run.context = context_of(run.group->id, run.start.lane, run.number);
    run.first_tag = kLaneTag * (run.start.lane == 0 ? run.compiled->signature : run.start.lane / kWindow);
    run.round = run.group->round(run.start.lane == 0 ? run.number : 0);
    activate(run);
    if (!spoiled_.empty() || !endings_.empty()) [[unlikely]]
        open_after_failures(run);
}

// What comes late for the n-th run of a lane looks like what comes early for the next one: a lane has ended
// with its first run that failed anywhere.
void Performer::open_after_failures(LiveRun& run) {
    std::erase_if(spoiled_, [&](const Spoiled& s) { return s.may_come_no_more(run); });
    const auto ending = std::ranges::find_if(endings_, [&](const Ending& e) { return e.concerns(run); });
    if (ending == endings_.end()) return;
    const velo_goal_result why = ending->result;
    if (run.start.lane == 0) endings_.erase(ending);
    stop(run, why);
}

// Of a lane: those of another one in the same context have other tags.
bool Performer::Spoiled::is_of(const matching::Key& key) const {
    return static_cast<std::uint32_t>(key.source) >> kRankBits == round >> kRankBits &&
           (lane == 0 || static_cast<std::uint32_t>(key.tag) / kLaneTag == first_tag / kLaneTag);
}

// As that run begins. Before messages of half of all rounds have been sent, each member has taken part in
// more runs, or groups, than memory has room for what it would not have taken of them.
bool Performer::Spoiled::may_come_no_more(const LiveRun& run) const {
    constexpr std::uint32_t kTimes = 1U << kTimeBits;
    if ((run.group->told_as() ^ group) & 0xffff) return false;
    const std::uint32_t later = (run.group->told_as() - group) >> 16 & (kTimes - 1);
    if (later > 0) return later >= kTimes / 2;
    if (lane != 0 || run.start.lane != 0) return lane == run.start.lane;
    return run.number >= number + (std::uint64_t{kWindow} << kTurnBits) / 2;
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

// Ids come again, and with them what looks like messages of the group before: what comes late after a
// failure, or by multicast to a process that has long had it from its leader. Whoever is in one group of
// these members, in this order, is in all of them, and they begin one after the other where they have the
// same id, so that all count alike without a word. What is counted is not forgotten, 40 bytes for members and
// id.
std::uint64_t Performer::new_name(std::uint64_t members, std::uint32_t id) {
    const auto mixed = [](std::uint64_t a, std::uint64_t b) {
        const std::uint64_t product = (a ^ b) * 0x9e3779b97f4a7c15;  // one to one in each of both
        return product ^ product >> 32;
    };
    constexpr std::uint64_t kTimes = (1U << kTimeBits) - 1;
    const std::uint64_t group = mixed(mixed(members, id), members);
    std::lock_guard lock(turn_);
    const std::uint32_t before = named_[group]++;
    return (mixed(group, before) & ~kTimes) | ((group + before) & kTimes);
}

// Another group may have the id. One without a name looks the same.
void Performer::close(const Group& group) {
    std::lock_guard lock(turn_);
    if (group.name == group.id)
        std::erase_if(spoiled_, [&](const Spoiled& s) { return s.group == group.told_as(); });
    std::erase_if(endings_, [&](const Ending& e) { return (e.group & 0xffff) == group.id; });
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
    if (multicasts_.load(std::memory_order_acquire)) [[unlikely]] {
        deliver_to();
        engine_.idle().reset();  // a datagram wakes nobody
    }
    if (told_.load(std::memory_order_relaxed) == nullptr && !work_.load(std::memory_order_relaxed) &&
        !heard_.load(std::memory_order_relaxed)) [[likely]] {
        count_idle_look();
        return static_cast<int>(events);
    }
    engine_.idle().reset();
    std::uint32_t moved = 0;
    {
        std::unique_lock lock(turn_, std::try_to_lock);
        if (!lock.owns_lock()) return static_cast<int>(events);
        if (heard_.load(std::memory_order_acquire)) attend();
        for (const Spoiled& spoiled : spoiled_) drop_late(spoiled);
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
        has_moved_.store(true, std::memory_order_relaxed);
    else
        count_idle_look();
    return static_cast<int>(events + moved);
}

void Performer::note_work() {
    const bool ready = first_active_ != nullptr;
    ready_.store(ready, std::memory_order_relaxed);
    work_.store(ready || !news_.empty() || !spoiled_.empty(), std::memory_order_relaxed);
}

velo_performer_state Performer::observe() {
    std::lock_guard lock(turn_);
    velo_performer_state state = state_;
    state.messages = messenger_.observe();
    if (led_ != nullptr)
        observe_led(state);
    else if (channel_ != nullptr)
        state.multicast = channel_->observe();
    state.multicasts = led_ != nullptr ? led_->attachment.joins() > 0 : channel_ != nullptr;
    state.choices = choices_.digest();
    state.helper_wakes = helper_ != nullptr ? helper_->wakes() : 0;
    return state;
}

std::uint32_t Performer::perform(std::uint32_t most) {
    for (std::uint32_t events = 0;;) {
        events += collect();
        if (channel_ != nullptr) [[unlikely]] {
            events += collect_shared();
            share_held();
        }
        LiveRun* run = first_active_;
        if (run == nullptr || most == 0) return events;
        first_active_ = run->next_active;
        run->active = false;
        const std::uint64_t before = state_.operations;
        (void)drain(*run, *this, most);
        const auto started = static_cast<std::uint32_t>(state_.operations - before);
        events += started;
        most -= started;
        touch(*run);
    }
}

// In the order in which they were told.
std::uint32_t Performer::collect() {
    if (told_.load(std::memory_order_relaxed) == nullptr) return 0;
    Slot* slot = told_.exchange(nullptr, std::memory_order_acquire);
    Slot* first = nullptr;
    while (slot != nullptr) {
        Slot* const before = std::exchange(slot->told, first);
        first = slot;
        slot = before;
    }
    std::uint32_t count = 0;
    for (; first != nullptr; ++count) {
        Slot* const next = first->told;
        settle(*first);
        first = next;
    }
    return count;
}

void Performer::settle(Slot& slot) {
    if (slot.run == nullptr) [[unlikely]]
        return release(slot);
    if (slot.receives && messaging::Messenger::is_announced(&slot.receive)) [[unlikely]]
        if (!messenger_.withdraw(&slot.receive)) return;
    LiveRun& run = *slot.run;
    const goal::Vertex v = slot.vertex;
    const velo_status status = slot.status;
    release(slot);
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
    const Ending ending{run.number, run.group->told_as(), run.start.lane, why};
    run.result = why;
    give_back_held(run);
    run.stop();
    if (ending.lane != 0) keep(ending);
    tell_who_waits(run, ending);
    for (Slot* slot = run.receives; slot != nullptr;) {
        Slot* next = slot->next;
        if (messenger_.cancel(&slot->receive)) {
            run.finished(slot->vertex);
            release(*slot);
        }
        slot = next;
    }
    spoiled_.push_back({ending.group, ending.lane, ending.number, run.context, run.round, run.first_tag});
    drop_late(spoiled_.back());
}

// Each member for whom the run had something yet, once: a packet each, whatever the schedule. They tell those
// who wait for them.
void Performer::tell_who_waits(LiveRun& run, const Ending& ending) {
    const goal::Schedule& schedule = run.schedule();
    static_assert(sizeof ending == sizeof(messaging::Notice));
    std::vector<bool> told(schedule.size());
    told[schedule.rank()] = true;
    for (goal::Vertex v = 0; v < schedule.count(); ++v) {
        const goal::Operation& o = schedule.operation(v);
        if (o.kind != goal::Kind::kSend || !run.goal::Run::waits(v) || told[o.peer]) continue;
        told[o.peer] = true;
        endpoint::Peer* const peer = run.group->peer(o.peer);
        if (peer == nullptr || has_departed(peer)) continue;
        messenger_.notify(*peer, std::bit_cast<messaging::Notice>(ending));
        ++state_.told;
    }
}

void Performer::attend() {
    std::vector<Ending> endings;
    bool some_departed;
    {
        std::lock_guard lock(heard_mutex_);
        some_departed = !departed_news_.empty();
        departed_.insert(departed_.end(), departed_news_.begin(), departed_news_.end());
        departed_news_.clear();
        endings.swap(ending_news_);
        heard_.store(false, std::memory_order_relaxed);
    }
    if (some_departed) look_for_departed();
    for (const Ending& ending : endings) heed(ending);
}

bool Performer::Ending::concerns(const LiveRun& run) const {
    return group == run.group->told_as() && lane == run.start.lane &&
           (lane == 0 ? number == run.number : number <= run.number);
}

// Of a lane the first one counts.
void Performer::keep(const Ending& ending) {
    const auto like = std::ranges::find_if(endings_, [&](const Ending& e) {
        return e.group == ending.group && e.lane == ending.lane && (e.lane != 0 || e.number == ending.number);
    });
    if (like == endings_.end())
        endings_.push_back(ending);
    else if (ending.number < like->number)
        *like = ending;
}

void Performer::heed(const Ending& ending) {
    for (LiveRun* run = runs_; run != nullptr; run = run->following) {
        if (!run->begun || !ending.concerns(*run)) continue;
        if (run->stopped() || run->concluded) return;
        stop(*run, ending.result);
        return touch(*run);
    }
    const auto has_failed = [&](const Spoiled& s) {
        return s.group == ending.group && s.lane == ending.lane &&
               (s.lane == 0 ? s.number == ending.number : s.number >= ending.number);
    };
    if (std::ranges::none_of(spoiled_, has_failed)) keep(ending);
}

// Receives from processes that have ended.
void Performer::look_for_departed() {
    for (LiveRun* run = runs_; run != nullptr; run = run->following) {
        const auto waits_in_vain = [this](const Slot* slot) {
            return slot->peer != nullptr && has_departed(slot->peer);
        };
        Slot* slot = run->receives;
        while (slot != nullptr && !waits_in_vain(slot)) slot = slot->next;
        if (slot == nullptr || !messenger_.cancel(&slot->receive)) continue;
        const goal::Vertex v = slot->vertex;
        release(*slot);
        fail(*run, v, VELO_ERR_UNREACHABLE);
        touch(*run);
    }
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

void Performer::departed(endpoint::Peer& peer) {
    std::lock_guard lock(heard_mutex_);
    departed_news_.push_back(&peer);
    heard_.store(true, std::memory_order_release);
}

void Performer::noticed(const messaging::Notice& notice) {
    std::lock_guard lock(heard_mutex_);
    ending_news_.push_back(std::bit_cast<Ending>(notice));
    heard_.store(true, std::memory_order_release);
}

}  // namespace velo::performing
