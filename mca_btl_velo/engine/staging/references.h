// Sends by reference: a message that would take more packets than the credits allow leaves as one, a REF, and
// stays in the outbox until its receiver has read it there (flow/outbox.h). To the flow control a REF is a
// DATA packet like any other: the caller accounts for it, as for one packet. Under the engine's mutex.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "engine/peers/peer_events.h"
#include "engine/staging/staging.h"
#include "fabric/fabric.h"
#include "wire/packet.h"

namespace velo::engine {

class References final : public PeerEvents {
 public:
    // What is to leave, or what is left of it.
    struct Outgoing {
        const fabric::MessageView& message;
        std::size_t offset;
        wire::PacketKind kind;
        std::uint8_t tag;
        std::uint8_t flags;  // wire::kInternal or 0
        bool whole;          // all of it or nothing
    };

    // Both outlive it.
    References(Staging& staging, fabric::shm::Statistics& counts) : staging_(staging), counts_(counts) {}

    // A chunk for the peer, and a slot for its REF, which is the next that leaves: `send` follows. Without
    // room if there is no chunk for `least` of the bytes, or no slot.
    flow::Outbox::Chunk allocate(Peer& peer, std::size_t bytes, std::size_t least);
    // The chunk has been filled: its REF leaves.
    void send(Peer& peer, const flow::Outbox::Chunk& chunk, std::size_t bytes, wire::PacketKind kind,
              std::uint8_t tag, std::uint8_t flags);
    // With a credit at hand where they are counted. Returns the number of bytes that have left; nullopt:
    // they have to go in packets, or none of them may go alone.
    std::optional<std::size_t> send(Peer& peer, const Outgoing& what);
    // All of it, to a plain peer, and its credit is taken. False: no effect.
    bool try_send_fast(Peer& peer, std::uint8_t tag, const fabric::MessageView& message) noexcept;

    void ended(Peer& peer) override;
    void departed(Peer& peer) override { peer.forget_references(); }

 private:
    Staging& staging_;
    fabric::shm::Statistics& counts_;
};

}  // namespace velo::engine
