// Executes runs over an engine and a messenger: what a schedule sends and receives are messages whose key is
// the group, the number of the run, the sender's rank and the operation's tag. What comes too early waits in
// the messenger, in bounded memory.
//
// Who has the turn may start operations. Completions are told from anywhere, and only noted; the one who has
// the turn takes them, so that nothing calls itself. Callbacks of programs are called without the turn. It
// may be had while the messenger's and the engine's mutexes are taken, never the other way round.
#pragma once

#include <algorithm>
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "endpoint/gate.h"
#include "fabric/udp/channel.h"
#include "messaging/messenger.h"
#include "multicast/attachment.h"
#include "performing/group.h"
#include "performing/run.h"

namespace velo::performing {

// As endpoint::OptionalMutex; with one thread, too, a second one finds it taken.
class Turn {
 public:
    explicit Turn(bool threads) : threads_(threads) {}
    void lock() {
        if (threads_) mutex_.lock();
        taken_ = true;
    }
    bool try_lock() {
        if (threads_ ? !mutex_.try_lock() : taken_) return false;
        taken_ = true;
        return true;
    }
    void unlock() {
        taken_ = false;
        if (threads_) mutex_.unlock();
    }

 private:
    bool threads_, taken_ = false;
    std::mutex mutex_;
};

class Performer final : private goal::Executor {
 public:
    Performer(endpoint::Engine& engine, messaging::Messenger& messenger, std::uint32_t schedules,
              goal::collectives::Choices choices);
    // Runs that are under way end without a word. The messenger and the engine are closed already.
    ~Performer();

    // No allocation fails after a number has been taken: throws before, and nothing has happened.
    LiveRun* prepare(const std::shared_ptr<Group>& group, const std::shared_ptr<Compiled>& compiled,
                     const velo_goal_start& start);
    void begin(LiveRun* run);
    velo_goal_result end(LiveRun* run);
    void skip(Group& group);
    std::uint32_t take_lane(Group& group);
    std::shared_ptr<Compiled>* schedule(Group& group, const velo_goal_request& request);
    int progress();
    velo_performer_state observe();
    // What all leaders of nodes get goes to them at once from then on, where that can be.
    void multicast(const fabric::udp::ChannelConfig& config);
    // This process gets it from one of them, and joins them when that one is late too often.
    void be_led(const fabric::udp::ChannelConfig& config, std::uint64_t late_after_ns);

 private:
    static constexpr std::uint32_t kMost = 256;   // operations that are started at a time
    static constexpr std::size_t kMostIdle = 16;  // runs of a schedule that are kept

    // What a program is to be told: a call or a calculation, or that the run is over.
    struct News {
        LiveRun* run;
        goal::Vertex vertex;  // kNoVertex: over
    };

    // goal::Executor
    void send(goal::Run& run, goal::Vertex v, const goal::Operation& operation) override;
    void receive(goal::Run& run, goal::Vertex v, const goal::Operation& operation) override;
    void work(goal::Run& run, goal::Vertex v, const goal::Operation& operation) override;

    // All with the turn.
    void open(LiveRun& run);
    std::uint32_t perform(std::uint32_t most);
    std::uint32_t collect();
    void settle(Slot& slot);
    void fail(LiveRun& run, goal::Vertex v, velo_status status);
    void look_for_departed();
    void touch(LiveRun& run);
    void activate(LiveRun& run);
    void conclude(LiveRun& run);
    Slot& take_slot(LiveRun& run, goal::Vertex v, endpoint::Peer* peer);
    void release(Slot& slot);
    void note_work();
    bool has_departed(const endpoint::Peer* peer) const {
        return std::ranges::find(departed_, peer) != departed_.end();
    }

    static fabric::udp::Name name_of(const LiveRun& run) { return {run.number, run.group->id}; }
    void listen();
    bool may_share(const LiveRun& run) const;
    bool share(LiveRun& run, goal::Vertex v, const goal::Operation& operation);
    void want(Slot& slot);
    std::uint32_t collect_shared();
    // Of a process that is led.
    void follow(Slot& slot);
    void want_led(Slot& slot);
    void mind_leader();
    void join();
    void part();
    void hear_from_leader();
    void pass_over(Slot& slot);
    void observe_led(velo_performer_state& state) const;

    std::uint32_t tell();
    // From anywhere.
    static void told(Slot& slot, velo_status status);
    static void unpack(velo_message_receive* receive, const void* data, std::size_t bytes);
    static void hear_of_departure(void* performer, endpoint::Peer& peer);

    endpoint::Engine& engine_;
    messaging::Messenger& messenger_;
    const std::uint32_t schedules_;
    const goal::collectives::Choices choices_;
    const bool threads_;
    Turn turn_;
    endpoint::Gate telling_;
    std::atomic<Slot*> told_{nullptr};  // the youngest first
    std::atomic<bool> work_{false};     // there is something to do with the turn, or to tell
    LiveRun* runs_ = nullptr;           // from their start to their end
    LiveRun *first_active_ = nullptr, *last_active_ = nullptr;
    std::deque<Slot> slots_;
    Slot* free_ = nullptr;
    std::deque<News> news_;
    std::vector<std::uint32_t> spoiled_;  // contexts of failed runs: what still comes there is dropped
    std::mutex departed_mutex_;
    std::vector<endpoint::Peer*> departed_news_;  // under departed_mutex_
    std::atomic<bool> some_departed_{false};
    std::vector<endpoint::Peer*> departed_;
    std::unique_ptr<fabric::udp::Channel> channel_;
    struct Sharing {
        std::uint32_t id;
        std::weak_ptr<Group> group;
    };
    std::vector<Sharing> sharing_;         // groups that have waited for something by it
    struct Led {
        fabric::udp::ChannelConfig config;
        multicast::Attachment attachment;
        std::uint64_t overheard = 0;
        unsigned looks = 0;
    };
    std::unique_ptr<Led> led_;             // another process leads this one's node
    std::atomic<bool> multicasts_{false};  // there is a channel, or could be
    velo_performer_state state_{};
};

}  // namespace velo::performing
