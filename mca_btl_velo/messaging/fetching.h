// The payload of a message reaches its receive: from packets, from the pool, or by a get from its sender. All
// without the messenger's mutex.
#pragma once

#include <cstddef>
#include <memory>

#include "engine/large/large.h"
#include "messaging/control_channel.h"
#include "messaging/notes.h"
#include "messaging/pool.h"
#include "messaging/receive_state.h"
#include "types/messages.h"

namespace velo::messaging {

// A message that is there in one piece.
void deliver(velo_message_receive* receive, matching::Key key, const std::byte* data, std::size_t bytes);

class Fetching {
 public:
    Fetching(engine::Large& large, ControlChannel& channel, std::shared_ptr<Notes> notes)
        : large_(large), channel_(channel), notes_(std::move(notes)) {}

    // A rendezvous, of this process itself, too.
    void fetch(velo_message_receive* receive, const Parked& rendezvous);
    // Of a receive that was announced: nobody writes to it any more. False: nobody will when `done` is
    // called, possibly once more.
    bool withdraw(velo_message_receive* receive);

 private:
    static constexpr std::uint64_t kFailed = UINT64_MAX;  // velo_message_receive::position

    static Fetching& of(const velo_message_receive* receive) {
        return *static_cast<Fetching*>(receive->fetching);
    }
    void fetch_parts(velo_message_receive* receive);
    void fetched(velo_message_receive* receive, velo_status status);

    engine::Large& large_;
    ControlChannel& channel_;
    std::shared_ptr<Notes> notes_;
};

}  // namespace velo::messaging
