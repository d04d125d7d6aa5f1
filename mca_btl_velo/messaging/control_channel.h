// How the units of a messenger speak to peers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "engine/peers/peer.h"
#include "messaging/protocol.h"
#include "types/messages.h"

namespace velo::messaging {

using engine::Peer;

class ControlChannel {
 public:
    // Under the messenger's mutex.

    // Sends a message that begins with this header, now or when there are credits. Adds the cells that are
    // owed to the header.
    virtual void say(Peer& to, Header* message, std::size_t bytes) = 0;
    // One of the types of protocol.h.
    template <typename Message>
    void say(Peer& to, Message message) {
        static_assert(std::is_standard_layout_v<Message>);
        say(to, reinterpret_cast<Header*>(&message), sizeof message);
    }
    // So many messages wait for credits that a question had better wait, too.
    virtual bool is_crowded() const = 0;
    // Sends the header of a rendezvous, which send->header holds. Throws Failure.
    virtual void send_header(Peer& to, velo_message_send* send) = 0;
    // Logs, once, that the peer has ended.
    virtual void failed(Peer& peer) = 0;

    // Without it: tells the sender that its message has been fetched, or has matched.
    virtual void say_done(Peer& to, std::uint64_t id, velo_status status) = 0;

 protected:
    ~ControlChannel() = default;
};

}  // namespace velo::messaging
