// What all leaders of nodes get: by multicast, if its source finds that all hear it and that there is room,
// and else to each. A receive takes what comes first; nothing comes twice. With the performer's turn.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "collectives/multicast/attachment.h"
#include "collectives/performing/run.h"
#include "collectives/performing/slots.h"
#include "collectives/udp/channel.h"

namespace velo::performing {

// What Sharing asks of the performer.
class SharingHost {
 public:
    // The runs from their start to their end, linked by `following`.
    virtual LiveRun* first_run() = 0;
    virtual void send_now(LiveRun& run, goal::Vertex v, const goal::Operation& operation) = 0;
    virtual void touch(LiveRun& run) = 0;
    // The receive waits for its message no longer. False: that has come before.
    virtual bool cancel(Slot& slot) = 0;
    // The message of a receive that has been cancelled still comes.
    virtual void pass_over(Slot& slot) = 0;
    // The receive is over with slot.status.
    virtual void settle(Slot& slot) = 0;

 protected:
    ~SharingHost() = default;
};

class Sharing {
 public:
    explicit Sharing(SharingHost& host) : host_(host) {}

    // What all leaders of nodes get goes to them at once from then on, where that can be.
    void multicast(const fabric::udp::ChannelConfig& config);
    // This process gets it from one of them, and joins them when that one is late too often.
    void be_led(const fabric::udp::ChannelConfig& config, std::uint64_t late_after_ns);
    // There is a channel, or could be. Without the turn, too.
    bool may_multicast() const { return multicasts_.load(std::memory_order_acquire); }
    void observe(velo_performer_state& state) const;

    // Looks at the channel. True: something is to be collected.
    bool poll();
    // Ends the receives of what has come, and sends what has waited for room. Returns how many have ended.
    std::uint32_t collect() { return channel_ == nullptr ? 0 : collect_arrived(); }

    // A send of what all leaders get. True: it waits for room.
    bool hold(LiveRun& run, goal::Vertex v, const goal::Operation& operation);
    // True: it is done, because the data has gone, or has come, by multicast.
    bool share(LiveRun& run, goal::Vertex v, const goal::Operation& operation);
    // A receive of it.
    void want(Slot& slot);
    // A receive that is over.
    void forget(Slot& slot);
    void heard_from_leader();
    // A run has failed: its sends that wait for room have not been started.
    void give_back_held(LiveRun& run);

 private:
    struct Listening {
        std::uint64_t name;
        std::weak_ptr<Group> group;
    };
    struct Held {
        LiveRun* run;
        goal::Vertex vertex;
    };
    struct Led {
        fabric::udp::ChannelConfig config;
        multicast::Attachment attachment;
        std::uint64_t overheard = 0;
        unsigned looks = 0;
    };
    bool may_share(const LiveRun& run) const;
    bool may_wait(const LiveRun& run) const;
    std::uint32_t collect_arrived();
    void send_held();
    void listen(Slot& slot);
    void listen_beside_leader(Slot& slot);
    void mind_leader();
    void join();
    void part();

    SharingHost& host_;
    std::unique_ptr<fabric::udp::Channel> channel_;
    std::vector<Listening> listening_;  // groups that have waited for something by it
    std::deque<Held> held_;             // sends that wait for room there, the oldest first
    std::unique_ptr<Led> led_;          // another process leads this one's node
    std::atomic<bool> multicasts_{false};
};

}  // namespace velo::performing
