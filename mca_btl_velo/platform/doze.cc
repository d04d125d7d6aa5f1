#include "platform/doze.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "platform/monotonic.h"

namespace velo::platform {
namespace {

long futex(DozeWord& word, int operation, std::uint32_t value, const timespec* limit) {
    // The kernel wants the plain word; the segment is shared between processes, so no FUTEX_PRIVATE_FLAG.
    return ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), operation, value, limit, nullptr, 0);
}

static_assert(sizeof(DozeWord) == sizeof(std::uint32_t) && DozeWord::is_always_lock_free);

// Stores become visible within a fraction of this.
constexpr std::uint64_t kStoresTakeNs = 1000;

}  // namespace

void announce_sleep(DozeWord& word) {
    word.store(1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    for (const std::uint64_t begin = monotonic_ns(); monotonic_ns() - begin < kStoresTakeNs;) {
    }
    std::atomic_thread_fence(std::memory_order_seq_cst);
}

void sleep_on(DozeWord& word, std::uint32_t limit_us) {
    timespec limit{static_cast<time_t>(limit_us / 1'000'000), static_cast<long>(limit_us % 1'000'000) * 1000};
    // A wake-up, a word that is 0 already, a signal or the limit: in each case the mailbox is looked at
    // again.
    (void)futex(word, FUTEX_WAIT, 1, &limit);
}

void wake(DozeWord& word) {
    // One sender is enough.
    if (word.exchange(0, std::memory_order_relaxed) != 0) (void)futex(word, FUTEX_WAKE, 1, nullptr);
}

}  // namespace velo::platform
