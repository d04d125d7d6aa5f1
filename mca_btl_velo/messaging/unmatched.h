// The messages that have come and met no receive, in the memory of the pool. Under the messenger's mutex.
#pragma once

#include <algorithm>

#include "engine/peers/peer.h"
#include "matching/unexpected_queue.h"
#include "messaging/pool.h"
#include "messaging/protocol.h"
#include "types/messages.h"

namespace velo::messaging {

// What would be parked of a message of that peer's.
inline Parked parked_like(engine::Peer* from, const matching::Key& key, Kind kind, std::uint64_t bytes,
                          std::uint64_t id, std::uint64_t address = 0, std::uint8_t deposit = 0) {
    Parked like;
    like.key = key;
    like.from = from;
    like.generation = from == nullptr ? 0 : from->generation.load(std::memory_order_relaxed);
    like.bytes = bytes;
    like.id = id;
    like.address = address;
    like.kind = kind;
    like.deposit = deposit;
    return like;
}

inline Parked parked_like(engine::Peer& from, const RendezvousHeader& rendezvous) {
    const Header& header = rendezvous.header;
    return parked_like(&from, header.key, Kind::kRendezvous, rendezvous.bytes, rendezvous.id,
                       rendezvous.address, header.kind == Kind::kRendezvous ? header.unused : 0);
}

class Unmatched {
 public:
    explicit Unmatched(velo_messenger_state& counts) : counts_(counts) {}

    void park(const Parked& like, const std::byte* data, std::size_t bytes) {
        ++counts_.unexpected;
        if (like.kind == Kind::kRendezvous) return queue_.push(park_header(like));
        counts_.pool_used_bytes += cells_for(bytes) * kCellBytes;
        counts_.pool_most_bytes = std::max(counts_.pool_most_bytes, counts_.pool_used_bytes);
        queue_.push(pool_.park(like, data, bytes));
    }
    // A rendezvous that no receive is to find.
    Parked* park_header(const Parked& like) {
        counts_.headers_most = std::max(counts_.headers_most, ++counts_.headers);
        return pool_.park(like, nullptr, 0);
    }

    bool empty() const { return queue_.size() == 0; }
    Parked* find(const matching::Key& pattern) { return static_cast<Parked*>(queue_.find(pattern)); }
    Parked* take(const matching::Key& pattern) { return static_cast<Parked*>(queue_.take(pattern)); }
    // Any message of the context.
    Parked* take_any_of(std::uint32_t context) { return removed(queue_.any_of(context)); }
    // One that fits. Looks at all messages, if there is any of the context.
    template <typename Fits>
    Parked* take_of(std::uint32_t context, Fits fits) {
        return removed(queue_.any_of(context) == nullptr ? nullptr : queue_.find_of(context, fits));
    }
    // The same, and it stays.
    template <typename Fits>
    const Parked* find_of(std::uint32_t context, Fits fits) const {
        return static_cast<Parked*>(queue_.find_of(context, fits));
    }

    // Of a message that has been taken: its memory. Returns the cells that its sender may fill again.
    std::uint32_t release(Parked* message) {
        std::uint32_t cells = 0;
        if (message->kind == Kind::kRendezvous) {
            --counts_.headers;
        } else {
            cells = cells_for(message->bytes);
            counts_.pool_used_bytes -= cells * kCellBytes;
        }
        pool_.release(message);
        return cells;
    }
    std::size_t memory() const { return pool_.memory(); }

 private:
    Parked* removed(matching::Unexpected* message) {
        if (message != nullptr) queue_.remove(message);
        return static_cast<Parked*>(message);
    }

    velo_messenger_state& counts_;
    matching::UnexpectedQueue queue_;
    Pool pool_;
};

}  // namespace velo::messaging
