// Executes runs over an engine and a messenger: what a schedule sends and receives are messages whose key is
// the group, the number of the run, the sender's rank and the operation's tag. What comes too early waits in
// the messenger, in bounded memory.
//
// Who has the turn may start operations. Completions are told from anywhere, and only noted; the one who has
// the turn takes them, so that nothing calls itself. Callbacks of programs are called without the turn. It
// may be had while the messenger's and the engine's mutexes are taken, never the other way round.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>

#include "collectives/performing/failures.h"
#include "collectives/performing/group.h"
#include "collectives/performing/helper.h"
#include "collectives/performing/inbox.h"
#include "collectives/performing/operations.h"
#include "collectives/performing/run.h"
#include "collectives/performing/sharing.h"
#include "collectives/performing/stall_watch.h"
#include "collectives/performing/turn.h"
#include "messaging/messenger.h"
#include "platform/gate.h"

namespace velo::performing {

class Performer final : private OperationsHost, private SharingHost, private StallWatchHost {
 public:
    Performer(engine::Engine& engine, messaging::Messenger& messenger, goal::collectives::Choices choices);
    // Before the first run: a thread of its own goes on with runs of so many bytes and more. It has ended
    // before the messenger and the engine are closed.
    void have_help(Helper& helper, std::uint64_t from_bytes);
    // Runs that are under way end without a word. The messenger and the engine are closed already.
    ~Performer();

    // No allocation fails after a number has been taken: throws before, and nothing has happened.
    LiveRun* prepare(const std::shared_ptr<Group>& group, const std::shared_ptr<Compiled>& compiled,
                     const velo_goal_start& start);
    void begin(LiveRun* run);
    velo_goal_result end(LiveRun* run);
    void skip(Group& group);
    std::uint32_t take_lane(Group& group);
    std::uint64_t new_name(std::uint64_t members, std::uint32_t id);
    // No run of it is started any more.
    void close(const Group& group);
    std::shared_ptr<Compiled>* schedule(Group& group, const velo_goal_request& request);
    std::shared_ptr<Compiled> keep(Group& group, const velo_goal_request& request);
    int progress();
    velo_performer_state observe();
    // See Sharing.
    void multicast(const fabric::udp::ChannelConfig& config) {
        std::lock_guard lock(turn_);
        sharing_.multicast(config);
    }
    void be_led(const fabric::udp::ChannelConfig& config, std::uint64_t late_after_ns) {
        std::lock_guard lock(turn_);
        sharing_.be_led(config, late_after_ns);
    }

 private:
    static constexpr std::uint32_t kMost = 256;   // operations that are started at a time
    static constexpr std::size_t kMostIdle = 16;  // runs of a schedule that are kept

    // What a program is to be told: a call, a calculation or a combination of its own, or that the run is
    // over.
    struct News {
        LiveRun* run;
        goal::Vertex vertex;  // kNoVertex: over
    };

    // All with the turn.

    void open(LiveRun& run);
    std::uint32_t perform(std::uint32_t most);
    std::uint32_t collect();
    void stop(LiveRun& run, const velo_goal_result& why);
    void tell_who_waits(LiveRun& run, const Ending& ending);
    void drop_late(const Spoiled& spoiled);
    void attend();
    void heed(const Ending& ending);
    void look_for_departed();
    void activate(LiveRun& run);
    void conclude(LiveRun& run);
    bool wants_help(const LiveRun& run) const;
    void reach_members(const std::shared_ptr<Group>& group, Compiled& compiled);
    void note_work();

    // Of OperationsHost and SharingHost.
    void fail(LiveRun& run, goal::Vertex v, velo_status status) override;
    void fail_with_departed(LiveRun& run, goal::Vertex v, velo_peer& peer) override;
    void ask_program(LiveRun& run, goal::Vertex v) override { news_.push_back({&run, v}); }
    LiveRun* first_run() override { return runs_; }
    void send_now(LiveRun& run, goal::Vertex v, const goal::Operation& operation) override {
        operations_.send_now(run, v, operation);
    }
    void touch(LiveRun& run) override;
    bool cancel(Slot& slot) override { return messenger_.cancel(&slot.receive); }
    void pass_over(Slot& slot) override { operations_.pass_over(slot); }
    void settle(Slot& slot) override;
    // Of StallWatchHost.
    void look_for_stalls() override;
    void stop_mismatched(LiveRun& run, const velo_goal_result& why) override {
        stop(run, why);
        touch(run);
    }

    // Without the turn.
    void poll_sharing();
    Helper::Step help();
    std::uint32_t tell();

    engine::Engine& engine_;
    messaging::Messenger& messenger_;
    const goal::collectives::Choices choices_;
    const bool threads_;
    Turn turn_;
    platform::Gate telling_;
    velo_performer_state state_{};
    std::atomic<bool> work_{false};   // there is something to do with the turn, or to tell
    std::atomic<bool> ready_{false};  // an operation may start
    LiveRun* runs_ = nullptr;         // from their start to their end
    LiveRun *first_active_ = nullptr, *last_active_ = nullptr;
    std::deque<News> news_;
    Inbox inbox_;
    Failures failures_;
    Sharing sharing_{*this};
    Operations operations_{*this, messenger_, sharing_, inbox_, state_};
    StallWatch stalls_;
    GroupNames names_;
    Helper* helper_ = nullptr;  // nullptr: none
    std::uint64_t helped_from_bytes_ = 0;
    bool helpless_ = false;  // a member is out of reach: only the program's threads ask for it
};

}  // namespace velo::performing
