#include "messaging/pool.h"

#include <new>

#include "platform/copy.h"
#include "platform/failure.h"

namespace velo::messaging {

void Pool::grow() {
    try {
        slabs_.push_back(std::make_unique_for_overwrite<Slab>());
    } catch (const std::bad_alloc&) {
        throw Failure(VELO_ERR_RESOURCE,
                      "out of memory for messages that no receive has matched; mtl_velo_unexpected_pool "
                      "bounds what they take");
    }
    // Backwards, so that cells are handed out in ascending order.
    Slab& slab = *slabs_.back();
    for (std::size_t cell = Slab::kCells; cell-- > 0;) {
        slab.next[cell] = free_;
        free_ = &slab.cells[cell];
    }
}

Cell* Pool::take() {
    if (free_ == nullptr) grow();
    Cell* cell = free_;
    free_ = next_of(cell);
    return cell;
}

Parked* Pool::park(const Parked& like, const std::byte* data, std::size_t bytes) {
    auto* message = new (take()) Parked;
    message->key = like.key;
    message->from = like.from;
    message->bytes = like.bytes;
    message->id = like.id;
    message->address = like.address;
    message->kind = like.kind;
    message->deposit = like.deposit;
    message->generation = like.generation;
    const auto step = [this](Cell* cell) { return next_of(cell) = take(); };
    pieces(reinterpret_cast<Cell*>(message), message->data, bytes, step,
           [&](std::byte* to, std::size_t piece) {
               platform::copy(to, data, piece);
               data += piece;
           });
    return message;
}

// In the order in which they were taken: the next message finds them one behind the other.
void Pool::release(Parked* message) {
    const bool eager = message->kind != Kind::kRendezvous;
    std::uint32_t more = eager ? cells_for(message->bytes) - 1 : 0;
    auto* const first = reinterpret_cast<Cell*>(message);
    Cell* last = first;
    for (; more > 0; --more) last = next_of(last);
    next_of(last) = free_;
    free_ = first;
}

}  // namespace velo::messaging
