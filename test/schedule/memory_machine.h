// The abstract machine of the memory model: what a state of it is, and the steps of a thread.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <unordered_map>
#include <utility>

#include "memory_model.h"

namespace velo::order {

// What may be read, and for races, what has happened before.
struct Seen {
    std::array<std::uint8_t, kLocations> oldest{};  // place in the history

    void join(const Seen& other) {
        for (std::size_t i = 0; i < kLocations; ++i) oldest[i] = std::max(oldest[i], other.oldest[i]);
    }
};
struct View {
    Seen seen;
    std::array<std::uint8_t, kThreads> clock{};

    void join(const View& other) {
        seen.join(other.seen);
        for (std::size_t i = 0; i < kThreads; ++i) clock[i] = std::max(clock[i], other.clock[i]);
    }
};

struct Message {
    std::uint64_t value;
    View view;             // for who reads it with acquire
    bool follows = false;  // at once: a read-modify-write of the message before
};

enum Access : std::uint8_t { kPlainRead, kPlainWrite, kAtomicRead, kAtomicWrite, kAccesses };

struct Location {
    std::vector<Message> history;
    // Each thread's clock at its last access of each kind.
    std::array<std::array<std::uint8_t, kThreads>, kAccesses> last{};
};

struct Thread {
    View now;
    View acquirable;                     // what an acquire fence would take over
    View released;                       // at the last release fence
    Seen arrived;                        // what a full fence would take over, see wait_for_stores
    std::vector<std::uint64_t> results;  // of its operations
    bool ended = false;
    std::uint8_t asleep_on = 0;  // 1 + location
};

struct State {
    std::array<Thread, kThreads> threads;
    std::array<Location, kLocations> locations;
    Seen fenced;  // by full fences
    Seen stored;  // before fences of the compiler
};

struct Unwind {};
struct Retry {};
struct Fault {
    std::string text;
};

inline bool acquires(std::memory_order order) {
    return order == std::memory_order_acquire || order == std::memory_order_acq_rel;
}
inline bool releases(std::memory_order order) {
    return order == std::memory_order_release || order == std::memory_order_acq_rel;
}

// "writer.h publish", of which compilers say more or less.
inline std::string function_of(const std::source_location& where) {
    std::string file = where.file_name(), function = where.function_name();
    file = file.substr(file.rfind('/') + 1);
    function = function.substr(0, function.find('('));
    return file + ' ' + function.substr(function.find_last_of(": ") + 1);
}

// Runs steps of one state; the one that is active serves the operations.
class Machine {
 public:
    explicit Machine(std::string weakened) : weakened_(std::move(weakened)) {}

    static Machine& active() { return *active_; }

    // One operation of `thread`, the `choice`-th of its possible outcomes, whose number it returns.
    std::size_t step(State& state, std::size_t thread, const std::function<void()>& body,
                     std::size_t choice) {
        state_ = &state;
        self_ = thread;
        choice_ = choice;
        choices_ = 1;
        place_ = attempt_ = 0;
        performed_ = false;
        active_ = this;
        try {
            body();
            state.threads[thread].ended = true;
        } catch (Unwind) {
        } catch (Retry) {
            me().results.resize(attempt_);
        }
        active_ = nullptr;
        return choices_;
    }

    // All of `body`, while nothing else runs: its operations have one outcome each.
    void run(State& state, const std::function<void()>& body) {
        alone_ = true;
        step(state, kMain, body, 0);
        state.threads[kMain].results.clear();
        alone_ = false;
    }

    std::vector<std::string> sites() const {
        std::vector<std::string> names;
        for (const auto& [place, site] : sites_) names.push_back(site.name);
        return names;
    }
    std::ostream* log = nullptr;

    void begin_attempt() { attempt_ = place_; }

    std::uint64_t load(const At& at, std::memory_order order) {
        return operation([&] {
            const std::size_t where = locate(at);
            std::vector<Message>& history = state_->locations[where].history;
            const std::size_t oldest = me().now.seen.oldest[where];
            const std::size_t chosen = oldest + choose(history.size() - oldest);
            take(where, chosen, ordered(at, "load", "acquire", acquires(order)));
            return note("load", at, where, history[chosen].value);
        });
    }

    void store(const At& at, std::uint64_t value, std::memory_order order) {
        operation([&] {
            const std::size_t where = locate(at);
            std::vector<Message>& history = state_->locations[where].history;
            std::vector<std::size_t> places;
            for (std::size_t place = me().now.seen.oldest[where] + 1U; place <= history.size(); ++place)
                if (place == history.size() || !history[place].follows) places.push_back(place);
            const std::size_t place = places[choose(places.size())];
            const bool release = ordered(at, "store", "release", releases(order));
            access(where, kAtomicWrite);
            put(where, place, Message{value, release ? me().now : me().released, false});
            return note("store", at, where, value);
        });
    }

    std::uint64_t update(const At& at, const char* kind, std::memory_order order,
                         const std::function<std::uint64_t(std::uint64_t)>& change) {
        return operation([&] {
            const std::size_t where = locate(at);
            std::vector<std::size_t> readable = last_of_chains(where);
            const std::size_t chosen = readable[choose(readable.size())];
            const std::uint64_t before = state_->locations[where].history[chosen].value;
            replace(where, chosen, change(before), ordered(at, kind, "acquire", acquires(order)),
                    ordered(at, kind, "release", releases(order)));
            return note(kind, at, where, before);
        });
    }

    bool compare_exchange(const At& at, std::uint64_t* expected, std::uint64_t desired,
                          std::memory_order success, std::memory_order failure) {
        constexpr const char* kKind = "compare_exchange";
        std::uint64_t done = 0;
        *expected = operation(
            [&] {
                const std::size_t where = locate(at);
                const std::vector<Message>& history = state_->locations[where].history;
                std::vector<std::size_t> outcomes;
                for (std::size_t i : last_of_chains(where))
                    if (history[i].value == *expected) outcomes.push_back(i);
                const std::size_t successes = outcomes.size();
                for (std::size_t i = me().now.seen.oldest[where]; i < history.size(); ++i)
                    if (history[i].value != *expected) outcomes.push_back(i);
                // The value that is expected was overwritten by a read-modify-write: it cannot be read
                // together with the store, and is not the last, so that there is another one to read.
                const std::size_t outcome = choose(outcomes.size());
                const std::size_t chosen = outcomes[outcome];
                const std::uint64_t value = history[chosen].value;
                if (outcome < successes) {
                    done = 1;
                    replace(where, chosen, desired, ordered(at, kKind, "acquire", acquires(success)),
                            ordered(at, kKind, "release", releases(success)));
                } else {
                    take(where, chosen, ordered(at, kKind, "acquire on failure", acquires(failure)));
                }
                return note(done ? kKind : "compare_exchange fails", at, where, value);
            },
            &done);
        return done != 0;
    }

    void full_fence(std::source_location where) {
        operation([&] {
            Thread& thread = me();
            thread.now = thread.acquirable;
            if (ordered({nullptr, 0, where}, "full fence", "seq_cst", true)) {
                thread.now.seen.join(thread.arrived);
                thread.now.seen.join(state_->fenced);
                state_->fenced = thread.now.seen;
                thread.acquirable.seen.join(thread.now.seen);
            }
            thread.released = thread.now;
            tick();
            return note("full fence", where);
        });
    }
    void keep_program_order(std::source_location where) {
        operation([&] {
            if (ordered({nullptr, 0, where}, "compiler's fence", "program order", true)) {
                me().now.seen.join(state_->fenced);
                me().acquirable.seen.join(state_->fenced);
                state_->stored.join(me().now.seen);
            }
            return note("compiler's fence", where);
        });
    }
    void wait_for_stores(std::source_location where) {
        operation([&] {
            if (ordered({nullptr, 0, where}, "wait", "arrival", true)) me().arrived.join(state_->stored);
            return note("wait", where);
        });
    }

    void sleep(const At& at) {
        operation([&] {
            const std::size_t where = locate(at);
            const std::uint64_t value = state_->locations[where].history.back().value;
            if (value == 1) me().asleep_on = static_cast<std::uint8_t>(where + 1);
            return note("sleep", at, where, value);
        });
    }
    void wake_one(const At& at) {
        operation([&] {
            const std::size_t where = locate(at);
            for (Thread& thread : state_->threads) {
                if (thread.asleep_on != where + 1) continue;
                thread.asleep_on = 0;
                break;
            }
            return note("wake", at, where, 0);
        });
    }

    // Plain accesses are no steps of their own: their order does not matter to who finds no race.
    void write(void* plain, std::uint64_t value) {
        plain_operation([&] {
            const At at{plain, 0, {}};
            const std::size_t where = locate(at);
            access(where, kPlainWrite);
            put(where, state_->locations[where].history.size(), Message{value, {}, false});
            return note("write", at, where, value);
        });
    }
    std::uint64_t read(const void* plain) {
        return plain_operation([&] {
            const At at{plain, 0, {}};
            const std::size_t where = locate(at);
            access(where, kPlainRead);
            return note("read", at, where, state_->locations[where].history.back().value);
        });
    }

 private:
    // The texts are literals, and the same wherever they are the same place.
    using Place = std::tuple<const char*, std::uint_least32_t, std::uint_least32_t, const char*>;
    struct SiteName {
        std::string name;
        bool weakened = false;
    };

    Thread& me() { return state_->threads[self_]; }

    template <class Perform>
    std::uint64_t operation(Perform perform, std::uint64_t* second = nullptr) {
        if (place_ == me().results.size() && performed_ && !alone_) throw Unwind{};
        if (place_ == me().results.size()) performed_ = true;
        const std::uint64_t result = plain_operation(perform);
        if (second != nullptr) *second = plain_operation([&] { return *second; });
        return result;
    }
    template <class Perform>
    std::uint64_t plain_operation(Perform perform) {
        if (place_ == me().results.size()) {
            const std::uint64_t result = perform();
            me().results.push_back(result);
        }
        return me().results[place_++];
    }

    std::size_t choose(std::size_t choices) {
        choices_ = choices;
        // The latest first: executions that are nearly sequential come first in the search.
        return choices - 1 - choice_;
    }

    std::size_t locate(const At& at) {
        auto [entry, fresh] = places_.try_emplace(at.address, places_.size());
        if (fresh && places_.size() > kLocations) {
            std::cerr << "memory_model: more than " << kLocations << " locations\n";
            std::abort();
        }
        std::vector<Message>& history = state_->locations[entry->second].history;
        if (history.empty()) history.push_back(Message{at.initial, {}, false});
        return entry->second;
    }

    // Whether the operation is `ordered` so, and that has not been taken away.
    bool ordered(const At& at, const char* kind, const char* what, bool ordered) {
        if (!ordered) return false;
        const Place place{at.where.file_name(), at.where.line(), at.where.column(), what};
        auto [entry, fresh] = sites_.try_emplace(place);
        if (fresh) entry->second = describe(at.where, kind, what);
        return !entry->second.weakened;
    }

    // Places of the same description are numbered as they are met.
    SiteName describe(std::source_location where, const char* kind, const char* what) const {
        const std::string base = function_of(where) + ", " + kind + ": " + what;
        const auto twins = std::count_if(sites_.begin(), sites_.end(), [&](const auto& site) {
            return site.second.name.compare(0, base.size(), base) == 0;
        });
        std::string name = twins == 0 ? base : base + " #" + std::to_string(twins + 1);
        const bool weakened = name == weakened_;
        return {std::move(name), weakened};
    }

    void access(std::size_t where, Access kind) {
        const bool write = kind == kPlainWrite || kind == kAtomicWrite;
        const bool plain = kind == kPlainRead || kind == kPlainWrite;
        auto& last = state_->locations[where].last;
        for (std::uint8_t other = 0; other < kAccesses; ++other) {
            const bool other_writes = other == kPlainWrite || other == kAtomicWrite;
            const bool other_plain = other == kPlainRead || other == kPlainWrite;
            if ((!write && !other_writes) || (!plain && !other_plain)) continue;
            for (std::size_t thread = 0; thread < kThreads; ++thread)
                if (thread != self_ && last[other][thread] > me().now.clock[thread])
                    throw Fault{"a data race with thread " + std::to_string(thread)};
        }
        last[kind][self_] = own_clock();
    }

    // Starts at 1, so that 0 is "never".
    std::uint8_t own_clock() { return me().now.clock[self_]; }
    // What happens from here on is not before what has been released so far.
    void tick() {
        const std::uint8_t next = ++me().now.clock[self_];
        me().acquirable.clock[self_] = next;
    }

    void take(std::size_t where, std::size_t chosen, bool acquire) {
        access(where, kAtomicRead);
        Thread& thread = me();
        const Message& message = state_->locations[where].history[chosen];
        thread.now.seen.oldest[where] = static_cast<std::uint8_t>(chosen);
        if (acquire) thread.now.join(message.view);
        thread.acquirable.join(message.view);
        thread.acquirable.join(thread.now);
    }

    void put(std::size_t where, std::size_t place, Message message) {
        std::vector<Message>& history = state_->locations[where].history;
        if (place < history.size()) make_room(where, place, message);
        me().now.seen.oldest[where] = me().acquirable.seen.oldest[where] = static_cast<std::uint8_t>(place);
        message.view.seen.oldest[where] = static_cast<std::uint8_t>(place);
        history.insert(history.begin() + static_cast<std::ptrdiff_t>(place), message);
        tick();
    }

    // All views name messages by their place.
    void make_room(std::size_t where, std::size_t place, Message& fresh) {
        auto shift = [where, place](Seen& seen) { seen.oldest[where] += seen.oldest[where] >= place; };
        shift(fresh.view.seen);
        shift(state_->fenced);
        shift(state_->stored);
        for (Thread& thread : state_->threads) {
            for (View* view : {&thread.now, &thread.acquirable, &thread.released}) shift(view->seen);
            shift(thread.arrived);
        }
        for (Location& location : state_->locations)
            for (Message& message : location.history) shift(message.view.seen);
    }

    // Messages that a read-modify-write may read: none that another one has read already.
    std::vector<std::size_t> last_of_chains(std::size_t where) {
        const std::vector<Message>& history = state_->locations[where].history;
        std::vector<std::size_t> places;
        for (std::size_t i = me().now.seen.oldest[where]; i < history.size(); ++i)
            if (i + 1 == history.size() || !history[i + 1].follows) places.push_back(i);
        return places;
    }

    void replace(std::size_t where, std::size_t chosen, std::uint64_t value, bool acquire, bool release) {
        take(where, chosen, acquire);
        access(where, kAtomicWrite);
        View view = release ? me().now : me().released;
        // The release sequence goes on through read-modify-writes.
        view.join(state_->locations[where].history[chosen].view);
        put(where, chosen + 1, Message{value, view, true});
    }

    std::uint64_t note(const char* kind, const At& at, std::size_t where, std::uint64_t value) {
        if (log != nullptr) {
            *log << "  thread " << self_ << ": " << kind << " location " << where << " value " << std::hex
                 << value << std::dec;
            if (at.where.line() != 0) *log << ", line " << at.where.line() << " of " << function_of(at.where);
            *log << '\n';
        }
        return value;
    }
    std::uint64_t note(const char* kind, std::source_location where) {
        if (log != nullptr)
            *log << "  thread " << self_ << ": " << kind << ", " << function_of(where) << '\n';
        return 0;
    }

    static inline Machine* active_ = nullptr;
    std::string weakened_;
    std::map<Place, SiteName> sites_;
    std::unordered_map<const void*, std::size_t> places_;
    State* state_ = nullptr;
    std::size_t self_ = 0, choice_ = 0, choices_ = 1;
    std::size_t place_ = 0, attempt_ = 0;
    bool performed_ = false, alone_ = false;
};

}  // namespace velo::order
