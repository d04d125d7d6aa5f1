#include "memory_model.h"

#include <algorithm>
#include <cstring>
#include <sstream>
#include <unordered_map>

#include "memory_machine.h"

namespace velo::order {
namespace {

constexpr std::uint64_t kMostStates = 3'000'000;

struct Digest {
    std::uint64_t low = 0x9e3779b97f4a7c15, high = 0xc2b2ae3d27d4eb4f;

    void add(std::uint64_t word) {
        low = (low ^ word) * 0xff51afd7ed558ccd;
        low ^= low >> 32;
        high = (high + word) * 0xc4ceb9fe1a85ec53;
        high ^= high >> 29;
    }
    template <std::size_t kBytes>
    void add(const std::array<std::uint8_t, kBytes>& bytes) {
        for (std::size_t i = 0; i < kBytes; i += 8) {
            std::uint64_t word = 0;
            std::memcpy(&word, bytes.data() + i, std::min<std::size_t>(8, kBytes - i));
            add(word);
        }
    }
    void add(const View& view) {
        add(view.seen.oldest);
        add(view.clock);
    }
    bool operator==(const Digest&) const = default;
};
struct DigestHash {
    std::size_t operator()(const Digest& digest) const { return digest.low; }
};

Digest digest(const State& state) {
    Digest all;
    for (const Thread& thread : state.threads) {
        all.add(thread.now);
        all.add(thread.acquirable);
        all.add(thread.released);
        all.add(thread.arrived.oldest);
        all.add(std::uint64_t{thread.results.size()} << 32 | thread.ended << 8 | thread.asleep_on);
        for (std::uint64_t result : thread.results) all.add(result);
    }
    for (const Location& location : state.locations) {
        all.add(location.history.size());
        for (const Message& message : location.history) {
            all.add(message.value);
            all.add(message.follows);
            all.add(message.view);
        }
        for (const auto& clocks : location.last) all.add(clocks);
    }
    all.add(state.fenced.oldest);
    all.add(state.stored.oldest);
    return all;
}

// The search: states are numbered as they are found, each knows how it was reached.
class Search {
 public:
    Search(const Program& program, const std::string& weakened) : program_(program), machine_(weakened) {}

    Verdict run() {
        try {
            Found start{first(), 0};
            number(start.state, Origin{});
            frontier_.push_back(std::move(start));
            while (!frontier_.empty()) {
                Found found = std::move(frontier_.back());
                frontier_.pop_back();
                follow(found);
                if (origins_.size() > kMostStates)
                    throw Fault{"more than " + std::to_string(kMostStates) + " states"};
            }
            find_halts();
        } catch (const Fault& fault) {
            verdict_.fault = fault.text;
        }
        verdict_.states = origins_.size();
        verdict_.endings = endings_.size();
        verdict_.sites = machine_.sites();
        return verdict_;
    }

 private:
    struct Origin {
        std::uint32_t before = 0, thread = 0, choice = 0;
    };
    struct Found {
        State state;
        std::uint32_t number;
    };

    State first() {
        State state;
        state.threads[kMain].now.clock[kMain] = 1;
        if (program_.before) machine_.run(state, program_.before);
        for (std::size_t i = 0; i < kMain; ++i) {
            Thread& thread = state.threads[i];
            thread.now = state.threads[kMain].now;
            thread.now.clock[i] = 1;
            thread.acquirable = thread.now;
            thread.ended = i >= program_.threads.size();
        }
        Thread& main = state.threads[kMain];
        ++main.now.clock[kMain];
        main.ended = true;
        return state;
    }

    void follow(const Found& found) {
        bool all_ended = true;
        for (std::size_t thread = 0; thread < program_.threads.size(); ++thread) {
            if (found.state.threads[thread].ended) continue;
            all_ended = false;
            if (found.state.threads[thread].asleep_on != 0) continue;
            std::size_t choices = 1;
            for (std::size_t choice = 0; choice < choices; ++choice) {
                const Origin origin{found.number, static_cast<std::uint32_t>(thread),
                                    static_cast<std::uint32_t>(choice)};
                Found next{found.state, 0};
                try {
                    choices = machine_.step(next.state, thread, program_.threads[thread], choice);
                } catch (const Fault&) {
                    tell(origin);
                    throw;
                }
                reach(std::move(next), origin);
            }
        }
        if (all_ended) end(found);
    }

    void end(const Found& found) {
        endings_.push_back(found.number);
        if (!program_.after) return;
        State state = found.state;
        Thread& main = state.threads[kMain];
        for (const Thread& thread : state.threads) main.now.join(thread.now);
        main.acquirable = main.now;
        try {
            machine_.run(state, program_.after);
        } catch (const Fault&) {
            tell(origins_[found.number]);
            throw;
        }
    }

    void reach(Found next, Origin origin) {
        const auto [number, fresh] = this->number(next.state, origin);
        edges_.push_back({number, origin.before});
        if (!fresh) return;
        next.number = number;
        frontier_.push_back(std::move(next));
    }

    std::pair<std::uint32_t, bool> number(const State& state, Origin origin) {
        auto [entry, fresh] =
            numbers_.try_emplace(digest(state), static_cast<std::uint32_t>(origins_.size()));
        if (fresh) origins_.push_back(origin);
        return {entry->second, fresh};
    }

    // From every state there is a way to an end; a thread that waits for what never comes has none.
    void find_halts() {
        std::sort(edges_.begin(), edges_.end());
        std::vector<bool> good(origins_.size());
        std::vector<std::uint32_t> open = endings_;
        for (std::uint32_t ending : endings_) good[ending] = true;
        while (!open.empty()) {
            const std::uint32_t at = open.back();
            open.pop_back();
            for (auto edge = std::lower_bound(edges_.begin(), edges_.end(), std::pair{at, std::uint32_t{0}});
                 edge != edges_.end() && edge->first == at; ++edge) {
                if (good[edge->second]) continue;
                good[edge->second] = true;
                open.push_back(edge->second);
            }
        }
        for (std::uint32_t i = 0; i < good.size(); ++i) {
            if (good[i]) continue;
            tell(origins_[i]);
            throw Fault{"a halt: somebody waits for ever"};
        }
    }

    // The execution whose last step is `last`, once more with a log.
    void tell(Origin last) {
        std::vector<Origin> steps{last};
        while (steps.back().before != 0) steps.push_back(origins_[steps.back().before]);
        std::ostringstream text;
        State state = first();
        machine_.log = &text;
        try {
            for (auto step = steps.rbegin(); step != steps.rend(); ++step)
                machine_.step(state, step->thread, program_.threads[step->thread], step->choice);
        } catch (const Fault&) {
        }
        machine_.log = nullptr;
        verdict_.execution = text.str();
    }

    const Program& program_;
    Machine machine_;
    Verdict verdict_;
    std::vector<Found> frontier_;
    std::unordered_map<Digest, std::uint32_t, DigestHash> numbers_;
    std::vector<Origin> origins_;                                 // by number
    std::vector<std::pair<std::uint32_t, std::uint32_t>> edges_;  // to, from
    std::vector<std::uint32_t> endings_;
};

}  // namespace

Verdict explore(const Program& program, const std::string& weakened) {
    return Search(program, weakened).run();
}

void begin_attempt() {
    Machine::active().begin_attempt();
}
void end_attempt() {
    throw Retry{};
}
void write(void* plain, std::uint64_t value) {
    Machine::active().write(plain, value);
}
std::uint64_t read(const void* plain) {
    return Machine::active().read(plain);
}
void require(bool holds, const char* otherwise) {
    if (!holds) throw Fault{otherwise};
}
std::uint64_t load(const At& at, std::memory_order order) {
    return Machine::active().load(at, order);
}
void store(const At& at, std::uint64_t value, std::memory_order order) {
    Machine::active().store(at, value, order);
}
std::uint64_t exchange(const At& at, std::uint64_t value, std::memory_order order) {
    return Machine::active().update(at, "exchange", order, [value](std::uint64_t) { return value; });
}
std::uint64_t fetch_add(const At& at, std::uint64_t amount, std::memory_order order) {
    return Machine::active().update(at, "fetch_add", order,
                                    [amount](std::uint64_t before) { return before + amount; });
}
std::uint64_t fetch_or(const At& at, std::uint64_t bits, std::memory_order order) {
    return Machine::active().update(at, "fetch_or", order,
                                    [bits](std::uint64_t before) { return before | bits; });
}
bool compare_exchange(const At& at, std::uint64_t* expected, std::uint64_t desired, std::memory_order success,
                      std::memory_order failure) {
    return Machine::active().compare_exchange(at, expected, desired, success, failure);
}
void full_fence(std::source_location where) {
    Machine::active().full_fence(where);
}
void keep_program_order(std::source_location where) {
    Machine::active().keep_program_order(where);
}
void wait_for_stores(std::source_location where) {
    Machine::active().wait_for_stores(where);
}
void sleep(const At& at) {
    Machine::active().sleep(at);
}
void wake_one(const At& at) {
    Machine::active().wake_one(at);
}

}  // namespace velo::order
