// The memory of unmatched messages, in cells of one size, so that what has been used for one kind of message
// serves the next. It grows as it is needed and is kept.
//
// What bounds it: payload comes only within the shares of the senders, which add up to the pool. A rendezvous
// header takes one cell beyond that; senders have a limit for these too and hold back what is beyond it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "endpoint/peer.h"
#include "matching/unexpected_queue.h"
#include "messaging/protocol.h"

namespace velo::messaging {

inline constexpr std::size_t kCellBytes = 256;

struct Cell {
    Cell* next;
    std::byte data[kCellBytes - sizeof(void*)];
};

// An unmatched message; its first cell.
struct Parked : matching::Unexpected {
    endpoint::Peer* from;  // nullptr: this process itself
    std::uint64_t bytes;
    std::uint64_t id;
    std::uint64_t address = 0;  // kRendezvous: at the sender
    Cell* more = nullptr;
    Kind kind;
    std::uint8_t deposit = 0;      // kRendezvous: its header's
    std::uint32_t generation = 0;  // of `from`: another process may have taken its place
    static constexpr std::size_t kInline = kCellBytes - sizeof(Unexpected) - 48;
    std::byte data[kInline];
};

static_assert(sizeof(Cell) == kCellBytes && sizeof(Parked) == kCellBytes);

// That a message with so much payload takes.
constexpr std::uint32_t cells_for(std::size_t bytes) {
    if (bytes <= Parked::kInline) return 1;
    return static_cast<std::uint32_t>(1 +
                                      (bytes - Parked::kInline + sizeof Cell::data - 1) / sizeof Cell::data);
}

class Pool {
 public:
    // A copy of the payload, with the other members of `from` as they are.
    Parked* park(const Parked& like, const std::byte* data, std::size_t bytes);
    void release(Parked* message);
    // Bytes taken from the system.
    std::size_t memory() const { return slabs_.size() * sizeof(Slab); }

    // Calls use(data, bytes) for each piece of the payload in order.
    template <typename Use>
    static void for_each_piece(const Parked& message, Use use) {
        std::size_t left = message.bytes;
        std::size_t piece = left < Parked::kInline ? left : Parked::kInline;
        use(message.data, piece);
        for (const Cell* cell = message.more; (left -= piece) > 0; cell = cell->next) {
            piece = left < sizeof cell->data ? left : sizeof cell->data;
            use(cell->data, piece);
        }
    }

 private:
    using Slab = std::array<Cell, 256>;

    Cell* take();
    void grow();

    std::vector<std::unique_ptr<Slab>> slabs_;
    Cell* free_ = nullptr;
};

}  // namespace velo::messaging
