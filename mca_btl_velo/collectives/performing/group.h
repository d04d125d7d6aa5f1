// Processes that run schedules together, as one of them sees it.
#pragma once

#include <deque>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "collectives/algorithms/choice.h"
#include "collectives/performing/compiled.h"
#include "types/engine.h"
#include "types/goal.h"

namespace velo::performing {

struct LiveRun;

// Of runs with numbers that are so far apart the messages look alike. They never meet: a run is begun when
// all that are so much older are over here, so that its receives follow theirs; and as each process sends the
// messages of a run before those of one that is so much younger, they match in order.
inline constexpr std::uint32_t kWindow = 32768;
// Of lanes: each is a context above those of the numbers and the tags from a multiple of this on; below it
// are the tags of schedules, and above it, where there is no lane, their signatures. A billion of them are
// taken before one is had again.
inline constexpr std::uint32_t kLaneTag = 65536;

// As the source of a message: the sender's rank, and above it a round, which keeps what comes late, of a run
// that has failed here, from what looks like it. How often the numbers have come around, and how many groups
// of these members have had the id, as far as these bits go. `kAny` asks for no source, and for no round.
inline constexpr unsigned kRankBits = 21, kTurnBits = 3, kTimeBits = 7;
static_assert(kRankBits + kTurnBits + kTimeBits < 32);

struct Group {
    Group(std::uint32_t id, std::uint32_t rank, std::uint32_t size, velo_goal_reach_fn reach, void* context)
        : id(id), rank(rank), size(size), name(id), peers_(size), reach_(reach), context_(context) {}

    // nullptr: nowhere.
    velo_peer* peer(std::uint32_t of) {
        if (peers_[of] == nullptr) [[unlikely]]
            peers_[of] = reach_(context_, of);
        return peers_[of];
    }

    std::uint64_t take_number() {
        over_.push_back(false);
        return next_++;
    }
    void give_back_number() {
        over_.pop_back();
        --next_;
    }
    bool may_begin(std::uint64_t number) const { return number - first_ < kWindow; }
    void is_over(std::uint64_t number) {
        over_[number - first_] = true;
        for (; !over_.empty() && over_.front(); ++first_) over_.pop_front();
    }

    std::uint32_t take_lane() { return lanes_ = lanes_ % (kWindow * (kWindow - 1)) + 1; }

    // Schedules that are kept, those used last: a call like one of them starts without building one.
    static constexpr std::size_t kMostKept = 64;
    // One that is kept, or made now. Throws Failure.
    std::shared_ptr<Compiled>* schedule(const velo_goal_request& request,
                                        const goal::collectives::Choices& choices, std::uint64_t* made);

    const std::uint32_t id, rank, size;
    // What no other group ever has; its lowest bits are those of the round.
    std::uint64_t name;
    std::uint32_t time() const { return static_cast<std::uint32_t>(name) & ((1U << kTimeBits) - 1); }
    std::uint32_t round(std::uint64_t number) const {
        const auto turn = static_cast<std::uint32_t>(number / kWindow) & ((1U << kTurnBits) - 1);
        return (time() << kTurnBits | turn) << kRankBits;
    }
    // Of what is told of it.
    std::uint32_t told_as() const { return time() << 16 | id; }
    std::deque<LiveRun*> waiting;  // for may_begin
    bool shares = false;           // the performer's: has waited for a multicast

 private:
    struct Kept {
        std::string operation, algorithm;
        velo_goal_request request;
        std::vector<goal::collectives::Block> sends, receives;
        std::shared_ptr<Compiled> compiled;
    };

    std::vector<velo_peer*> peers_;  // by rank; nullptr: not asked for
    velo_goal_reach_fn reach_;
    void* context_;
    std::uint64_t next_ = 0, first_ = 0;  // number of the next run; of the first one that is not over
    std::deque<bool> over_;               // from first_ on
    std::uint32_t lanes_ = 0;             // the last one that was taken
    std::list<Kept> kept_;                // the one used last comes first
};

// The names of groups. Ids come again, and with them what looks like messages of the group before: what comes
// late after a failure, or by multicast to a process that has long had it from its leader. Whoever is in one
// group of these members, in this order, is in all of them, and they begin one after the other where they
// have the same id, so that all count alike without a word.
class GroupNames {
 public:
    std::uint64_t take(std::uint64_t members, std::uint32_t id);

 private:
    // By members and id: groups that have had them. What is counted is not forgotten, 40 bytes each.
    std::unordered_map<std::uint64_t, std::uint32_t> counts_;
};

}  // namespace velo::performing
