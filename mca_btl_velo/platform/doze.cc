#include "platform/doze.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

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

void Machine::wake_one(Word& word) {
    (void)futex(word, FUTEX_WAKE, 1, nullptr);
}

}  // namespace velo::platform
