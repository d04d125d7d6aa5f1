#include "platform/doze.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace velo::platform {
namespace {

long futex(DozeWord& word, int operation, std::uint32_t value, const timespec* limit) {
    // The kernel wants the plain word; the segment is shared between processes, so no FUTEX_PRIVATE_FLAG.
    return ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), operation, value, limit, nullptr, 0);
}

static_assert(sizeof(DozeWord) == sizeof(std::uint32_t) && DozeWord::is_always_lock_free);

}  // namespace

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
