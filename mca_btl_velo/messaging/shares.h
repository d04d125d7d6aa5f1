// What each peer's pool has room for of this process, and what this process owes each peer of its own. All
// under the messenger's mutex, but for the fast path of a single thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/peers/peer.h"
#include "messaging/pool.h"
#include "types/messages.h"

namespace velo::messaging {

using engine::Peer;

// What a messenger needs to know about a peer's, carried by the job's start-up exchange.
struct Address {
    static constexpr std::uint64_t kMagic = 0x344d6f6c6556;  // "VeloM4"
    std::uint64_t magic;
    std::uint32_t share;    // cells
    std::uint32_t headers;  // rendezvous that may be under way
};

class Shares {
 public:
    struct Share {
        std::uint32_t there = 0;    // cells that this process may still fill in the peer's pool
        std::uint32_t owed = 0;     // cells that the peer may fill again and has not been told of
        std::uint32_t headers = 0;  // rendezvous that this process may still start
        bool reached = false;       // there is a way to the peer
        bool connected = false;     // its share is known
        bool is_gone = false;       // the peer has departed
        bool holds = false;         // messages to the peer are held back: see Holding
    };

    explicit Shares(const velo_messenger_config& config);

    const Address& address() const noexcept { return address_; }
    // Throws Failure.
    void connect(const Peer& peer, const Address& address);
    // Its share is that of a process that was never met.
    void departed(const Peer& peer) {
        of(peer) = Share();
        of(peer).is_gone = true;
    }

    Share& of(const Peer& peer) {
        if (peer.index >= all_.size()) [[unlikely]]
            all_.resize(peer.index + 1);
        return all_[peer.index];
    }
    // For the fast path, which adds none.
    bool knows(const Peer& peer) const { return peer.index < all_.size(); }
    Share& known(const Peer& peer) { return all_[peer.index]; }
    // Of this process in its own pool.
    Share& own() { return own_; }

    // Cells to tell the peer of.
    static std::uint16_t take_owed(Share& share) {
        const std::uint32_t told = std::min<std::uint32_t>(share.owed, UINT16_MAX);
        share.owed -= told;
        return static_cast<std::uint16_t>(told);
    }
    // So many cells are owed that they are worth a message.
    bool is_due(const Share& share) const { return share.owed >= due_from_; }
    // The sender, nullptr: this process, may fill these cells again. True: it should be told now.
    bool give_back(const Peer* from, std::uint32_t cells) {
        if (from == nullptr) {
            own_.there += cells;
            return false;
        }
        Share& share = of(*from);
        share.owed += cells;
        return is_due(share);
    }

 private:
    Address address_;
    std::uint32_t due_from_;
    std::vector<Share> all_;  // by index of the peer
    Share own_;
};

}  // namespace velo::messaging
