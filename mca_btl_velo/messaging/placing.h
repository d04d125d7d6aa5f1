// Large messages to receives that have been announced. The receiver tells of a receive that no message is
// there for where the data will go; the sender, when it has them, sends its header as always, and copies what
// the receiver does not fetch meanwhile. If that is all, the send is over without the receiver's answer.
//
// The two share a get (rma/share.h): whoever comes late finds nothing left, and an announcement that has been
// overtaken by the message has no effect.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <vector>

#include "engine/large/large.h"
#include "messaging/announcements.h"
#include "messaging/awaited_sends.h"
#include "messaging/control_channel.h"
#include "messaging/send_events.h"
#include "platform/gate.h"

namespace velo::messaging {

class Placing {
 public:
    Placing(engine::Large& large, ControlChannel& channel, AwaitedSends& awaited,
            platform::OptionalMutex& mutex)
        : large_(large), channel_(channel), awaited_(awaited), mutex_(mutex) {}

    // Under the messenger's mutex.

    // Tells the peer of a receive that waits. False: it is as if it had not been asked for.
    bool announce(Peer& from, const matching::Key& key, velo_message_receive* receive);
    void announcement_arrived(Peer& from, const AnnounceHeader& header);
    // A send is about to leave as a header. Returns what the receiver is to be told of: the send, or, if its
    // receive has been announced, another one in its place, for which `place` has to follow when the header
    // has left.
    velo_message_send* begin(Peer& to, const matching::Key& key, const std::byte* data, std::size_t bytes,
                             velo_message_send* send);
    void departed(const Peer& peer) { announcements_.erase(peer.index); }

    // Without it, but where the send copies when it is idle.
    void place(Peer& to, velo_message_send* answer);
    // The receiver is done with what it was told of.
    static void answered(velo_message_send* send, velo_status status);
    std::uint64_t placed() const { return placed_.load(std::memory_order_relaxed); }

 private:
    // A message is answered, and it is copied; either may be over first.
    struct Placement {
        velo_message_send answer;
        Placing* owner;
        std::atomic<velo_message_send*> send;  // nullptr: complete
        std::uint64_t bytes;
        std::optional<rma::Help> help;
        rma::Share::Range first;
        bool when_idle;

        void complete(velo_status status) {
            if (velo_message_send* whole = send.exchange(nullptr, std::memory_order_acq_rel))
                settle(whole, status);
        }
    };
    velo_message_send* begin(Peer& to, const Announcement& announcement, const std::byte* data,
                             velo_message_send* send, bool when_idle);
    static void copied(void* placement, velo_status status, std::uint64_t bytes);

    engine::Large& large_;
    ControlChannel& channel_;
    AwaitedSends& awaited_;
    platform::OptionalMutex& mutex_;
    std::unordered_map<std::uint32_t, Announcements> announcements_;  // by index of the peer
    std::deque<Placement> placements_;
    std::vector<Placement*> free_;
    std::atomic<std::uint64_t> placed_{0};
};

}  // namespace velo::messaging
