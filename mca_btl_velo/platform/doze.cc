#include "platform/doze.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "platform/monotonic.h"

namespace velo::platform {
namespace {

using Machine = DozeMachine<std::atomic>;

long futex(Machine::Word& word, int operation, std::uint32_t value, const timespec* limit) {
    // The kernel wants the plain word; the segment is shared between processes, so no FUTEX_PRIVATE_FLAG.
    return ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), operation, value, limit, nullptr, 0);
}

static_assert(sizeof(Machine::Word) == sizeof(std::uint32_t) && Machine::Word::is_always_lock_free);

// Stores become visible within a fraction of this.
constexpr std::uint64_t kStoresTakeNs = 1000;

}  // namespace

bool processor_is_wanted() {
    rusage before, after;
    getrusage(RUSAGE_THREAD, &before);
    (void)sched_yield();
    getrusage(RUSAGE_THREAD, &after);
    return before.ru_nivcsw + before.ru_nvcsw != after.ru_nivcsw + after.ru_nvcsw;
}

void stop_displacing() noexcept {
    thread_local bool done = false;
    if (done) return;
    done = true;
    const sched_param none{};
    if (sched_getscheduler(0) == SCHED_OTHER)
        (void)sched_setscheduler(0, SCHED_BATCH | SCHED_RESET_ON_FORK, &none);
}

void Machine::full_fence() {
    std::atomic_thread_fence(std::memory_order_seq_cst);
}

void Machine::wait_for_stores() {
    for (const std::uint64_t begin = monotonic_ns(); monotonic_ns() - begin < kStoresTakeNs;) {
    }
}

void Machine::sleep(Word& word, std::uint32_t limit_us) {
    timespec limit{static_cast<time_t>(limit_us / 1'000'000), static_cast<long>(limit_us % 1'000'000) * 1000};
    (void)futex(word, FUTEX_WAIT, 1, &limit);
}

void Machine::sleep(Word& word, Word& other, std::uint32_t limit_us) {
#ifdef SYS_futex_waitv
    futex_waitv words[2]{};
    for (Word* each : {&word, &other}) {
        futex_waitv& waiter = words[each == &other];
        waiter.val = 1;
        waiter.uaddr = reinterpret_cast<std::uintptr_t>(each);
        waiter.flags = FUTEX_32;
    }
    timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    const std::uint64_t ns = static_cast<std::uint64_t>(end.tv_nsec) + std::uint64_t{limit_us} * 1000;
    end.tv_sec += static_cast<time_t>(ns / 1'000'000'000);
    end.tv_nsec = static_cast<long>(ns % 1'000'000'000);
    if (::syscall(SYS_futex_waitv, words, 2, 0, &end, CLOCK_MONOTONIC) >= 0 || errno != ENOSYS) return;
#endif
    constexpr std::uint32_t kShort = 50;
    if (other.load(std::memory_order_relaxed) != 0) sleep(word, std::min(limit_us, kShort));
}

void Machine::wake_one(Word& word) {
    (void)futex(word, FUTEX_WAKE, 1, nullptr);
}

}  // namespace velo::platform
