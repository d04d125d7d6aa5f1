// The helper thread: when it works, stands by, and is parked.
#include "collectives/performing/helper.h"

#include <pthread.h>

#include <chrono>
#include <csignal>
#include <utility>

#include "platform/failure.h"
#include "platform/monotonic.h"
#include "platform/ticks.h"

namespace velo::performing {
namespace {

// Without anything to do, until it naps, or is parked where nothing is under way. Waking it takes some ten
// microseconds of the caller's, and more until it runs.
constexpr std::uint64_t kPatienceNs = 500'000;
constexpr std::chrono::microseconds kNap{50};
// After a call of the program that makes progress: the next one may be about to come.
constexpr std::uint64_t kStandByNs = 2000;

thread_local bool is_helper = false;

void relax_for(std::uint64_t ns) {
    for (const std::uint64_t since = platform::monotonic_ns(); platform::monotonic_ns() - since < ns;)
        platform::relax();
}

}  // namespace

Helper::Helper(velo_config& engine) : log_(engine.log), fatal_(engine.fatal), context_(engine.context) {
    engine.log = log;
    engine.fatal = fatal;
    engine.context = this;
}

// It handles no signal of the program's, and may run wherever the process may now.
void Helper::start(std::function<Step()> step) {
    step_ = std::move(step);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const velo_status status =
        contained([this] { thread_ = std::thread([this] { help(); }); }, [](velo_status, const char*) {});
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (status != VELO_OK) return log_(context_, 0, "no thread can be made: coll_velo_helper does nothing");
    pthread_setname_np(thread_.native_handle(), "velo-helper");
}

void Helper::stop() {
    if (!thread_.joinable()) return;
    state_.store(kStopped);
    state_.notify_one();
    thread_.join();
}

void Helper::wake() {
    std::uint32_t parked = kParked;
    if (!state_.compare_exchange_strong(parked, kAwake)) return;
    wakes_.fetch_add(1, std::memory_order_relaxed);
    state_.notify_one();
}

void Helper::help() {
    is_helper = true;
    park();
    std::uint64_t moved_ns = platform::monotonic_ns();
    bool has_runs = true;
    while (state_.load(std::memory_order_relaxed) != kStopped) {
        const bool had_runs = std::exchange(has_runs, runs_.load(std::memory_order_relaxed) > 0);
        const Step step = look();
        if (step == Step::kMoved || had_runs != has_runs) {
            moved_ns = platform::monotonic_ns();
        } else if (platform::monotonic_ns() - moved_ns < kPatienceNs) {
            platform::relax();
        } else if (has_runs || step == Step::kOwed) {
            std::this_thread::sleep_for(kNap);
        } else {
            park();
            moved_ns = platform::monotonic_ns();
        }
    }
}

// Also for a while after the last run: others may need something of this process to end theirs.
Helper::Step Helper::look() {
    const std::uint64_t calls = calls_.load(std::memory_order_relaxed);
    if (calls == seen_ && within_.load(std::memory_order_relaxed) == 0) return step_();
    seen_ = calls;
    relax_for(kStandByNs);
    return Step::kNothing;
}

// Who begins a run has counted it before he looks whether there is somebody to wake.
void Helper::park() {
    std::uint32_t state = kAwake;
    if (!state_.compare_exchange_strong(state, kParked)) return;
    state = kParked;
    if (runs_.load() > 0 && state_.compare_exchange_strong(state, kAwake)) return;
    state_.wait(kParked);
}

void Helper::say(Said said) {
    std::lock_guard lock(said_mutex_);
    said_.push_back(std::move(said));
    has_said_.store(true, std::memory_order_relaxed);
}

void Helper::speak() {
    std::vector<Said> said;
    {
        std::lock_guard lock(said_mutex_);
        said.swap(said_);
        has_said_.store(false, std::memory_order_relaxed);
    }
    for (const Said& s : said) {
        if (s.level == kFatal)
            fatal_(context_, s.status, s.text.c_str());
        else
            log_(context_, s.level, s.text.c_str());
    }
}

void Helper::log(void* context, int level, const char* text) {
    Helper& self = *static_cast<Helper*>(context);
    if (!is_helper) return self.log_(self.context_, level, text);
    self.say({VELO_OK, level, text});
}

void Helper::fatal(void* context, velo_status status, const char* text) {
    Helper& self = *static_cast<Helper*>(context);
    if (!is_helper) return self.fatal_(self.context_, status, text);
    self.say({status, kFatal, text});
}

}  // namespace velo::performing
