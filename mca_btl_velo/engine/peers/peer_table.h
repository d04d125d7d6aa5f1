// The peers of a process by index, null until first contact. Each is made once, under the engine's mutex, and
// stays; whoever retrieves packets or reads counters finds it without the mutex.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include "engine/peers/peer.h"

namespace velo::engine {

class PeerTable {
 public:
    static constexpr std::size_t kEntryBytes = sizeof(Peer*);

    explicit PeerTable(std::size_t entries) : peers_(entries) {}
    ~PeerTable() {
        for_each([](Peer& peer) { delete &peer; });
    }
    PeerTable(const PeerTable&) = delete;
    PeerTable& operator=(const PeerTable&) = delete;

    std::size_t size() const { return peers_.size(); }
    // Before the first peer.
    void resize(std::size_t entries) { peers_ = std::vector<std::atomic<Peer*>>(entries); }

    // acquire pairs with `add`: whoever finds a peer sees all of it.
    Peer* find(flow::PeerIndex index) const { return peers_[index].load(std::memory_order_acquire); }
    // Under the mutex, where there is none yet. `peer` is complete.
    void add(std::unique_ptr<Peer> peer) {
        std::atomic<Peer*>& entry = peers_[peer->index];
        entry.store(peer.release(), std::memory_order_release);
    }

    template <typename Visit>
    void for_each(Visit visit) const {
        for (const std::atomic<Peer*>& entry : peers_) {
            if (Peer* peer = entry.load(std::memory_order_acquire)) visit(*peer);
        }
    }
    std::size_t met() const {
        std::size_t count = 0;
        for_each([&count](const Peer&) { ++count; });
        return count;
    }

 private:
    std::vector<std::atomic<Peer*>> peers_;
};

}  // namespace velo::engine
