// Sleeping instead of spinning, for processes that share their processors: a process whose mailbox stays
// empty sleeps on a word of its segment, and whoever stores something into the mailbox wakes it. A spinning
// process would keep the processor from those that it waits for.
#pragma once

#include <atomic>
#include <cstdint>

namespace velo::platform {

// The word in shared memory, see mailbox::Pointers. 1: the owner sleeps, or is about to.
using DozeWord = std::atomic<std::uint32_t>;

// Owner: says that it is going to sleep. It then looks at its mailbox once more: either it sees what a sender
// has stored before, or the sender sees the word. That takes a fence on both sides, and a sender's waits for
// all of its stores. So the owner, who has the time, waits instead until they have left any sender's store
// buffer.
void announce_sleep(DozeWord& word);
// Owner: sleeps until somebody wakes it, at most `limit_us` microseconds. (Should a store have taken longer
// than announce_sleep waits, that is how long it goes unnoticed.)
void sleep_on(DozeWord& word, std::uint32_t limit_us);
inline void end_sleep(DozeWord& word) {
    word.store(0, std::memory_order_relaxed);
}

void wake(DozeWord& word);

// Sender, after its stores into the owner's mailbox.
inline void wake_if_asleep(DozeWord& word) {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (word.load(std::memory_order_relaxed) != 0) [[unlikely]]
        wake(word);
}

}  // namespace velo::platform
