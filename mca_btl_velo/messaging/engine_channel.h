// The ControlChannel of an engine; and the messages of programs that wait for credits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "engine/engine.h"
#include "messaging/control_channel.h"
#include "messaging/notes.h"
#include "messaging/shares.h"

namespace velo::messaging {

class EngineChannel final : public ControlChannel {
 public:
    EngineChannel(engine::Engine& engine, Shares& shares, platform::OptionalMutex& mutex,
                  std::shared_ptr<Notes> notes)
        : engine_(engine), shares_(shares), mutex_(mutex), notes_(std::move(notes)) {}

    using ControlChannel::say;
    void say(Peer& to, Header* message, std::size_t bytes) override;
    bool is_crowded() const override;
    void send_header(Peer& to, velo_message_send* send) override;
    void failed(Peer& peer) override { engine_.large().failed(peer, 0); }

    // Connects to a peer that has sent something. Under the mutex.
    void reach(Peer& peer, Shares::Share& share) {
        engine_.peers().reach(peer);
        share.reached = true;
    }

    // Without the mutex.

    void say_done(Peer& to, std::uint64_t id, velo_status status) override;
    void notify(Peer& to, const Notice& notice);
    // Unless the peer has been told with something else meanwhile.
    void return_cells(Peer& to);
    // A message with a header that send->header holds. As velo_message_start.
    velo_status queue(Peer& to, std::size_t header_bytes, const std::byte* data, std::size_t bytes,
                      velo_message_send* send);

 private:
    engine::Engine& engine_;
    Shares& shares_;
    platform::OptionalMutex& mutex_;
    std::shared_ptr<Notes> notes_;
};

}  // namespace velo::messaging
