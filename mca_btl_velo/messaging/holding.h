// The sender's side of messages that are held back: a backlog for each receiver whose memory for headers this
// process has filled. Design: design/messages.md, "Headers".
//
// All is called under the messenger's mutex, and sends under it: what leaves a backlog must not be overtaken
// by what never was in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "messaging/awaited_sends.h"
#include "messaging/backlog.h"
#include "messaging/control_channel.h"
#include "messaging/shares.h"

namespace velo::messaging {

class Holding {
 public:
    Holding(ControlChannel& channel, Shares& shares, AwaitedSends& awaited, velo_messenger_state& counts)
        : channel_(channel), shares_(shares), awaited_(awaited), counts_(counts) {}

    // Returns VELO_QUEUED, or an error if the receiver has departed.
    velo_status hold(Peer& to, const matching::Key& key, const std::byte* data, std::size_t bytes,
                     velo_message_send* send);
    // Headers are free again: the oldest messages leave.
    void drain(Peer& to);
    // Its messages wait for nothing but its departure, which AwaitedSends tells them of.
    void departed(Peer& peer);

    // What the receiver says.
    void ask_arrived(Peer& from, const AskHeader& ask);
    void answer_arrived(Peer& from, const AnswerHeader& answer);
    void peek_arrived(Peer& from, const ProbeHeader& peek);
    void take_arrived(Peer& from, const ProbeHeader& take);

 private:
    Backlog* backlog_of(const Peer& peer);
    void offer(Peer& to, Backlog& backlog, const matching::Key& key);
    void release(Peer& to, Backlog& backlog, Held* held);

    ControlChannel& channel_;
    Shares& shares_;
    AwaitedSends& awaited_;
    velo_messenger_state& counts_;
    std::unordered_map<std::uint32_t, Backlog> backlogs_;  // by index of the peer; none is empty
};

}  // namespace velo::messaging
