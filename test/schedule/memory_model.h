// The memory model of C++ as an abstract machine, and a search through all executions of a small program that
// runs on it: not only every interleaving but every value that a load may return, old ones too.
//
// Modelled is C++20 as repaired by RC11 (Lahav et al., PLDI 2017), which leaves out load buffering, as a
// machine of views (Kang et al., POPL 2017, without promises): each location keeps the history of its stores
// in modification order, each thread a view, the oldest store of each location that it may still read. A
// release store carries its thread's view along, an acquire load takes it over; a store goes to any place of
// the history behind its thread's view; a read-modify-write follows what it reads at once. Plain accesses are
// checked for data races with vector clocks. Not modelled: seq_cst accesses (refused), spurious failures of
// compare_exchange_weak, consume.
//
// A thread is a function that always does the same if its operations return the same. It is run again from
// the start for each of its steps, with the results so far, up to the next operation; so a state of the
// machine is a value, and states that are equal are searched once.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <source_location>
#include <string>
#include <tuple>
#include <vector>

namespace velo::order {

inline constexpr std::size_t kLocations = 24;
inline constexpr std::size_t kThreads = 5;  // the last is the one before and after the others
inline constexpr std::size_t kMain = kThreads - 1;

struct Program {
    std::string name;
    std::function<void()> before;  // in one thread
    std::vector<std::function<void()>> threads;
    std::function<void()> after;   // in one thread, when all have ended
    std::shared_ptr<void> memory;  // that they work on
};

struct Verdict {
    std::string fault;      // empty: every execution is right
    std::string execution;  // that leads there, one operation a line
    std::uint64_t states = 0;
    std::uint64_t endings = 0;       // states in which all threads have ended
    std::vector<std::string> sites;  // that some execution has met: "writer.h publish, store: release"
};

// All executions of a program, or those up to the first wrong one. `weakened`: a site that is without effect.
Verdict explore(const Program& program, const std::string& weakened = {});

// For the threads of a program.

// Repeats `attempt` until it returns something that is not 0. An attempt that fails leaves nothing changed in
// the thread's own variables.
void begin_attempt();
[[noreturn]] void end_attempt();
template <class Attempt>
auto await(Attempt attempt) {
    begin_attempt();
    auto result = attempt();
    if (!result) end_attempt();
    return result;
}
void write(void* plain, std::uint64_t value);
std::uint64_t read(const void* plain);
void require(bool holds, const char* otherwise);

// Operations of ModelAtom and of the fences.
struct At {
    const void* address;
    std::uint64_t initial;
    std::source_location where;
};
std::uint64_t load(const At& at, std::memory_order order);
void store(const At& at, std::uint64_t value, std::memory_order order);
// Returns the value before.
std::uint64_t exchange(const At& at, std::uint64_t value, std::memory_order order);
std::uint64_t fetch_add(const At& at, std::uint64_t amount, std::memory_order order);
std::uint64_t fetch_or(const At& at, std::uint64_t bits, std::memory_order order);
bool compare_exchange(const At& at, std::uint64_t* expected, std::uint64_t desired, std::memory_order success,
                      std::memory_order failure);
void full_fence(std::source_location where);

// One side's fence is the compiler's alone, the other side waits until the stores that precede such fences
// have arrived in memory. Stores that a full fence has sent off are seen by whoever looks after such a fence;
// what has arrived is seen after the next full fence.
void keep_program_order(std::source_location where);
void wait_for_stores(std::source_location where);

// The kernel's futex: sleeps if the word is 1, until woken.
void sleep(const At& at);
void wake_one(const At& at);

// For std::atomic<T>, T of at most 8 bytes, in the layouts and views of the engine.
template <typename T>
class ModelAtom {
 public:
    using Where = std::source_location;

    constexpr ModelAtom() = default;
    constexpr ModelAtom(T initial) : initial_(initial) {}
    ModelAtom(const ModelAtom&) = delete;
    ModelAtom& operator=(const ModelAtom&) = delete;

    T load(std::memory_order order, Where where = Where::current()) const {
        return static_cast<T>(order::load(at(where), order));
    }
    void store(T value, std::memory_order order, Where where = Where::current()) {
        order::store(at(where), value, order);
    }
    T exchange(T value, std::memory_order order, Where where = Where::current()) {
        return static_cast<T>(order::exchange(at(where), value, order));
    }
    T fetch_add(T amount, std::memory_order order, Where where = Where::current()) {
        return static_cast<T>(order::fetch_add(at(where), amount, order));
    }
    T fetch_or(T bits, std::memory_order order, Where where = Where::current()) {
        return static_cast<T>(order::fetch_or(at(where), bits, order));
    }
    bool compare_exchange_weak(T& expected, T desired, std::memory_order success, std::memory_order failure,
                               Where where = Where::current()) {
        std::uint64_t value = expected;
        const bool done = order::compare_exchange(at(where), &value, desired, success, failure);
        expected = static_cast<T>(value);
        return done;
    }
    bool compare_exchange_strong(T& expected, T desired, std::memory_order success, std::memory_order failure,
                                 Where where = Where::current()) {
        return compare_exchange_weak(expected, desired, success, failure, where);
    }

    At at(Where where) const { return {this, static_cast<std::uint64_t>(initial_), where}; }

 private:
    T initial_{};  // the values are in the machine
};

}  // namespace velo::order
