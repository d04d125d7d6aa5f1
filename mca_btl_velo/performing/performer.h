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
#include <unordered_map>
#include <vector>

#include "endpoint/gate.h"
#include "fabric/udp/channel.h"
#include "messaging/messenger.h"
#include "multicast/attachment.h"
#include "performing/group.h"
#include "performing/helper.h"
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

class Performer final : private goal::Executor, private messaging::MessengerEvents {
 public:
    Performer(endpoint::Engine& engine, messaging::Messenger& messenger, goal::collectives::Choices choices);
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
    // What all leaders of nodes get goes to them at once from then on, where that can be.
    void multicast(const fabric::udp::ChannelConfig& config);
    // This process gets it from one of them, and joins them when that one is late too often.
    void be_led(const fabric::udp::ChannelConfig& config, std::uint64_t late_after_ns);

 private:
    static constexpr std::uint32_t kMost = 256;   // operations that are started at a time
    static constexpr std::size_t kMostIdle = 16;  // runs of a schedule that are kept
    static constexpr std::uint32_t kLooksAtTheClock = 1024;

    // What a program is to be told: a call, a calculation or a combination of its own, or that the run is
    // over.
    struct News {
        LiveRun* run;
        goal::Vertex vertex;  // kNoVertex: over
    };

    // A run that a member cannot bring to its end, as it tells those who wait for something from it: why, at
    // whom, and by which number.
    struct Ending {
        std::uint64_t number;
        std::uint32_t group, lane;  // Group::told_as
        velo_goal_result result;

        bool concerns(const LiveRun& run) const;
    };
    // A run that has failed: its messages are dropped, those of no other one.
    struct Spoiled {
        std::uint32_t group, lane;  // Group::told_as
        std::uint64_t number;
        std::uint32_t context, round, first_tag;

        bool is_of(const matching::Key& key) const;
        bool may_come_no_more(const LiveRun& run) const;
    };
    void drop_late(const Spoiled& spoiled);

    // goal::Executor
    void send(goal::Run& run, goal::Vertex v, const goal::Operation& operation) override;
    void send_now(LiveRun& run, goal::Vertex v, const goal::Operation& operation);
    void count_remote(const endpoint::Peer& peer);
    void receive(goal::Run& run, goal::Vertex v, const goal::Operation& operation) override;
    void work(goal::Run& run, goal::Vertex v, const goal::Operation& operation) override;

    // All with the turn.
    void open(LiveRun& run);
    void open_after_failures(LiveRun& run);
    std::uint32_t perform(std::uint32_t most);
    std::uint32_t collect();
    void settle(Slot& slot);
    void fail(LiveRun& run, goal::Vertex v, velo_status status);
    void stop(LiveRun& run, const velo_goal_result& why);
    void tell_who_waits(LiveRun& run, const Ending& ending);
    void keep(const Ending& ending);
    void attend();
    void look_for_departed();
    void count_idle_look() {
        const std::uint32_t looks = idle_looks_.load(std::memory_order_relaxed) + 1;
        idle_looks_.store(looks, std::memory_order_relaxed);
        if (looks % kLooksAtTheClock == 0) [[unlikely]]
            look_for_stalls();
    }
    void look_for_stalls();
    void compare(LiveRun& run);
    void warn(const LiveRun& run, std::uint64_t quiet_ns) const;
    void heed(const Ending& ending);
    void touch(LiveRun& run);
    void activate(LiveRun& run);
    void conclude(LiveRun& run);
    bool wants_help(const LiveRun& run) const;
    void reach_members(const std::shared_ptr<Group>& group, Compiled& compiled);
    Helper::Step help();
    Slot& take_slot(LiveRun& run, goal::Vertex v, endpoint::Peer* peer);
    void release(Slot& slot);
    void note_work();
    bool has_departed(const endpoint::Peer* peer) const {
        return std::ranges::find(departed_, peer) != departed_.end();
    }

    static fabric::udp::Name name_of(const LiveRun& run) { return {run.number, run.group->name}; }
    void deliver_to();
    bool may_share(const LiveRun& run) const;
    bool share(LiveRun& run, goal::Vertex v, const goal::Operation& operation);
    bool may_wait(const LiveRun& run) const;
    bool hold(LiveRun& run, goal::Vertex v, const goal::Operation& operation);
    void share_held();
    void give_back_held(LiveRun& run);
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
    void departed(endpoint::Peer& peer) override;
    void noticed(const messaging::Notice& notice) override;

    endpoint::Engine& engine_;
    messaging::Messenger& messenger_;
    const goal::collectives::Choices choices_;
    const bool threads_;
    Turn turn_;
    endpoint::Gate telling_;
    std::atomic<Slot*> told_{nullptr};  // the youngest first
    std::atomic<bool> work_{false};     // there is something to do with the turn, or to tell
    std::atomic<std::uint32_t> idle_looks_{0};
    std::atomic<bool> has_moved_{false};  // since the last look for stalls
    std::uint64_t looked_ns_ = 0, quiet_since_ns_ = 0, compare_after_ns_ = 0, warn_after_ns_ = 0;
    LiveRun* runs_ = nullptr;  // from their start to their end
    LiveRun *first_active_ = nullptr, *last_active_ = nullptr;
    std::deque<Slot> slots_;
    Slot* free_ = nullptr;
    std::deque<News> news_;
    std::vector<Spoiled> spoiled_;
    std::vector<Ending> endings_;  // of runs that are not begun here, and of lanes
    std::vector<endpoint::Peer*> departed_;
    std::vector<bool> sent_to_;       // by index: for network_peers
    std::atomic<bool> heard_{false};  // one of the following:
    std::mutex heard_mutex_;
    std::vector<endpoint::Peer*> departed_news_;  // under heard_mutex_
    std::vector<Ending> ending_news_;             // under heard_mutex_
    std::unique_ptr<fabric::udp::Channel> channel_;
    struct Sharing {
        std::uint64_t name;
        std::weak_ptr<Group> group;
    };
    std::vector<Sharing> sharing_;                            // groups that have waited for something by it
    std::unordered_map<std::uint64_t, std::uint32_t> named_;  // by members and id: groups with a name
    struct Held {
        LiveRun* run;
        goal::Vertex vertex;
    };
    std::deque<Held> held_;  // sends that wait for room there, the oldest first
    struct Led {
        fabric::udp::ChannelConfig config;
        multicast::Attachment attachment;
        std::uint64_t overheard = 0;
        unsigned looks = 0;
    };
    std::unique_ptr<Led> led_;             // another process leads this one's node
    std::atomic<bool> multicasts_{false};  // there is a channel, or could be
    Helper* helper_ = nullptr;             // nullptr: none
    std::uint64_t helped_from_bytes_ = 0;
    std::atomic<bool> ready_{false};  // an operation may start
    bool helpless_ = false;           // a member is out of reach: only the program's threads ask for it
    velo_performer_state state_{};
};

}  // namespace velo::performing
