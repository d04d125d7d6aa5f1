// Sleeping instead of spinning, for processes that share their processors: a process whose mailbox stays
// empty sleeps on a word of its segment, and whoever stores something into the mailbox wakes it. A spinning
// process would keep the processor from those that it waits for.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace velo::platform {

// Empty polls, after each of which the upper layer yields, before a process sleeps: in a collective operation
// of all, what is waited for mostly comes sooner, and a wake-up costs its sender a system call.
inline constexpr std::uint32_t kPollsToSleep = 50;

// Microseconds that a process sleeps after so many empty polls in a row, at most `most`; 0: it polls on. Who
// waits long looks less often, as many who share a processor would take all of it with looking; no sleep is
// longer than 50 us and what has been slept before it. The first are short, as a process that works between
// its polls finds nothing either: it loses no more by them than by the polls.
constexpr std::uint32_t sleep_after(std::uint32_t empty_polls, std::uint32_t most) {
    constexpr std::uint32_t kFirst = 50, kMostDoublings = 15;
    if (empty_polls % kPollsToSleep != 0) return 0;
    const std::uint32_t sleeps = empty_polls / kPollsToSleep;
    return std::min(kFirst << std::min(sleeps - std::min(sleeps, 1U), kMostDoublings), most);
}

// Whether somebody waits for the processor of this thread: it is offered. Where nobody does, to sleep helps
// none, and whoever finds nothing because it works between its polls would lose the time.
bool processor_is_wanted();

// From here on a wake-up of this thread displaces no thread that runs (SCHED_BATCH); its share of the
// processor stays. Nothing changes for a thread to which the program has given a policy, or for threads that
// it makes.
void stop_displacing() noexcept;

// What dozing takes besides loads and stores. A test that replays memory orders gives its own, with its Atom.
template <template <class> class Atom>
struct DozeMachine;

template <>
struct DozeMachine<std::atomic> {
    using Word = std::atomic<std::uint32_t>;

    static void full_fence();
    static void keep_program_order() { std::atomic_signal_fence(std::memory_order_seq_cst); }
    // Until what others have stored before has left their store buffers.
    static void wait_for_stores();
    // While the word is 1, until `wake_one`, at most `limit_us` microseconds.
    static void sleep(Word& word, std::uint32_t limit_us);
    // While both are; where the kernel cannot, the first one, for a short time.
    static void sleep(Word& word, Word& other, std::uint32_t limit_us);
    static void wake_one(Word& word);
};

// Owner, of the word in its shared memory (mailbox::Pointers; 1: the owner sleeps, or is about to): says that
// it is going to sleep, looks once more, and sleeps if `idle()`, until somebody wakes it, at most `limit_us`
// microseconds. Either `idle` sees what a sender has stored before, or the sender sees the word. That takes a
// fence on both sides, and a sender's waits for all of its stores. So the owner, who has the time, waits
// instead until they have left any sender's store buffer. (Should a store take longer than that, the limit is
// how long it goes unnoticed.)
template <template <class> class Atom, class Idle, class Sleep>
void doze_by(Atom<std::uint32_t>& word, Idle idle, Sleep sleep) {
    using Machine = DozeMachine<Atom>;
    word.store(1, std::memory_order_relaxed);
    // Of two full fences the first sends our store off before the wait begins, the second keeps the look
    // from being taken before the wait ends.
    Machine::full_fence();
    Machine::wait_for_stores();
    Machine::full_fence();
    // A wake-up, a word that is 0 already, a signal or the limit: the caller looks again in each case.
    if (idle()) sleep();
    word.store(0, std::memory_order_relaxed);
}

template <template <class> class Atom, class Idle>
void doze(Atom<std::uint32_t>& word, std::uint32_t limit_us, Idle idle) {
    doze_by(word, idle, [&] { DozeMachine<Atom>::sleep(word, limit_us); });
}

// The owner of two mailboxes, on both words.
template <template <class> class Atom, class Idle>
void doze(Atom<std::uint32_t>& word, Atom<std::uint32_t>& other, std::uint32_t limit_us, Idle idle) {
    other.store(1, std::memory_order_relaxed);
    doze_by(word, idle, [&] { DozeMachine<Atom>::sleep(word, other, limit_us); });
    other.store(0, std::memory_order_relaxed);
}

// Out of line: hardly ever called.
template <template <class> class Atom>
[[gnu::cold, gnu::noinline]] void wake(Atom<std::uint32_t>& word) {
    // One sender is enough.
    if (word.exchange(0, std::memory_order_relaxed) != 0) DozeMachine<Atom>::wake_one(word);
}

// Sender, after its stores into the owner's mailbox.
template <template <class> class Atom>
void wake_if_asleep(Atom<std::uint32_t>& word) {
    DozeMachine<Atom>::keep_program_order();
    if (word.load(std::memory_order_relaxed) != 0) [[unlikely]]
        wake(word);
}

}  // namespace velo::platform
