#include "messaging/pool.h"

#include <algorithm>
#include <cstring>
#include <new>

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
    for (auto cell = slab.rbegin(); cell != slab.rend(); ++cell) {
        cell->next = free_;
        free_ = &*cell;
    }
}

Cell* Pool::take() {
    if (free_ == nullptr) grow();
    Cell* cell = free_;
    free_ = cell->next;
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
    std::size_t piece = std::min(bytes, Parked::kInline);
    if (piece > 0) std::memcpy(message->data, data, piece);
    for (Cell** link = &message->more; (bytes -= piece) > 0; link = &(*link)->next) {
        data += piece;
        *link = take();
        piece = std::min(bytes, sizeof Cell::data);
        std::memcpy((*link)->data, data, piece);
    }
    return message;
}

// In the order in which they were taken: the next message finds them one behind the other.
void Pool::release(Parked* message) {
    const bool eager = message->kind != Kind::kRendezvous;
    std::uint32_t more = eager ? cells_for(message->bytes) - 1 : 0;
    Cell* const second = message->more;
    auto* const first = new (message) Cell;
    first->next = second;
    Cell* last = first;
    for (; more > 0; --more) last = last->next;
    last->next = free_;
    free_ = first;
}

}  // namespace velo::messaging
