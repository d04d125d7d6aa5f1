// The memory of unmatched messages, in cells of one size, so that what has been used for one kind of message
// serves the next. It grows as it is needed and is kept.
//
// What bounds it: payload comes only within the shares of the senders, which add up to the pool. A rendezvous
// header takes one cell beyond that; senders have a limit for these too and hold back what is beyond it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/peers/peer.h"
#include "matching/unexpected_queue.h"
#include "messaging/protocol.h"

namespace velo::messaging {

inline constexpr std::size_t kCellBytes = 256;

struct Cell {
    std::byte data[kCellBytes];
};

// An unmatched message; its first cell.
struct Parked : matching::Unexpected {
    engine::Peer* from;  // nullptr: this process itself
    std::uint64_t bytes;
    std::uint64_t id;
    std::uint64_t address = 0;  // kRendezvous: at the sender
    Kind kind;
    std::uint8_t deposit = 0;      // kRendezvous: its header's
    std::uint32_t generation = 0;  // of `from`: another process may have taken its place
    static constexpr std::size_t kInline = kCellBytes - sizeof(Unexpected) - 40;
    std::byte data[kInline];
};

static_assert(sizeof(Cell) == kCellBytes && sizeof(Parked) == kCellBytes);

// That a message with so much payload takes.
constexpr std::uint32_t cells_for(std::size_t bytes) {
    if (bytes <= Parked::kInline) return 1;
    return static_cast<std::uint32_t>(1 + (bytes - Parked::kInline + kCellBytes - 1) / kCellBytes);
}

class Pool {
 public:
    // A copy of the payload, with the other members of `from` as they are.
    Parked* park(const Parked& like, const std::byte* data, std::size_t bytes);
    void release(Parked* message);
    // Bytes taken from the system.
    std::size_t memory() const { return slabs_.size() * sizeof(Slab); }

    // Calls use(data, bytes) for each piece of the payload in order: one, where its cells lie one behind the
    // other, as they mostly do.
    template <typename Use>
    static void for_each_piece(const Parked& message, Use use) {
        pieces(
            const_cast<Cell*>(reinterpret_cast<const Cell*>(&message)), message.data, message.bytes,
            [](Cell* cell) { return next_of(cell); }, use);
    }

 private:
    // Aligned to its size, so that a cell tells its slab.
    static constexpr std::size_t kSlabBytes = std::size_t{128} * 1024;
    struct alignas(kSlabBytes) Slab {
        static constexpr std::size_t kCells = kSlabBytes / (kCellBytes + sizeof(Cell*));
        std::array<Cell, kCells> cells;
        std::array<Cell*, kCells> next;
    };
    static_assert(sizeof(Slab) == kSlabBytes);

    static Cell*& next_of(Cell* cell) {
        const auto at = reinterpret_cast<std::uintptr_t>(cell);
        return reinterpret_cast<Slab*>(at & ~(kSlabBytes - 1))->next[(at & (kSlabBytes - 1)) / kCellBytes];
    }
    // Of `bytes` that begin in this cell at `data`; step(cell) is the one behind it.
    template <typename Byte, typename Step, typename Use>
    static void pieces(Cell* cell, Byte* data, std::size_t bytes, Step&& step, Use&& use) {
        std::size_t piece = std::min(bytes, Parked::kInline);
        while (piece < bytes) {
            Cell* const next = step(cell);
            if (next != cell + 1) {
                use(data, piece);
                data = next->data;
                bytes -= piece;
                piece = 0;
            }
            cell = next;
            piece += std::min(bytes - piece, kCellBytes);
        }
        use(data, piece);
    }
    Cell* take();
    void grow();

    std::vector<std::unique_ptr<Slab>> slabs_;
    Cell* free_ = nullptr;
};

}  // namespace velo::messaging
