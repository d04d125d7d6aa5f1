// By reference: a message that would take more packets than the credits allow leaves as one, a REF, and stays
// in the outbox of its sender until the receiver has read it there (flow/outbox.h). To the flow control a REF
// is a DATA packet like any other.
#include <cstring>
#include <mutex>

#include "endpoint/send_now.h"
#include "platform/failure.h"
#include "platform/process_identity.h"

namespace velo::endpoint {

// A process may end before its peer has read, and its outbox lives as long as a mapping: on this node the
// peer must have one. Whoever was given credits by a window on demand has them from a peer that is connected
// to it.
bool Engine::may_refer(Peer& peer) {
    if (!peer.maps_us)
        peer.maps_us =
            peer.index >= remote_first_ || peer.ledger().on_demand() || mailbox_.is_introduced(peer.index);
    return peer.maps_us;
}

// Under the mutex, with a credit at hand where they are counted. Returns the number of bytes that have left,
// of those from `offset` on; nothing: they have to go in packets, or none of them may go alone.
std::optional<std::size_t> Engine::refer(Peer& peer, const Outgoing& what) {
    if (!may_refer(peer)) return {};
    const std::size_t rest = what.message.total() - what.offset;
    const flow::Outbox::Chunk chunk = outbox_.take(peer.lent, rest, [this](std::uint32_t place) {
        return mailbox_.chunk(place).unread.load(std::memory_order_acquire) == 0;
    });
    statistics_.outbox_high_water = outbox_.counters().high_water;
    statistics_.outbox_full = outbox_.counters().full;
    if (chunk.room == 0) return {};
    const std::size_t bytes = std::min<std::size_t>(rest, chunk.room);
    if (bytes < rest && what.whole) {
        outbox_.give_back(chunk);
        return {};
    }
    fabric::shm::OutboxChunk& there = mailbox_.chunk(chunk.place);
    what.message.copy_to(there.data, what.offset, bytes);
    there.unread.store(1, std::memory_order_relaxed);  // published with the packet
    std::uint8_t flags = what.flags;
    if (what.offset == 0) flags |= wire::kFirst;
    if (bytes == rest) flags |= wire::kLast;
    const wire::Reference reference{chunk.place, static_cast<std::uint32_t>(bytes)};
    if (!peer.link.carry_reference({reference, there.data, &there.unread, what.kind, what.tag, flags,
                                    peer.ledger().attach(peer), peer.policy().limited()})) {
        outbox_.give_back(chunk);
        return {};
    }
    statistics_.messages_by_reference += bytes == rest;
    sent(peer, 1);
    return bytes;
}

// The data that a REF stands for, in place. Throws Failure.
std::byte* Engine::referenced(const Peer& peer, const wire::Reference& reference) {
    if (peer.index >= remote_first_) {
        std::lock_guard lock(mutex_);
        return network_->pulled(reference.place);
    }
    const fabric::shm::Segment& segment = peer.segment;
    const bool there = segment.bytes() > 0 && segment.outbox_plan().holds(reference.place, reference.bytes) &&
                       segment.chunk(reference.place).unread.load(std::memory_order_relaxed) == 1;
    if (!there)
        throw Failure(VELO_ERR_PROTOCOL, "process " + platform::process_text(peer_name(peer.index)) +
                                             " refers to " + std::to_string(reference.bytes) +
                                             " bytes at offset " + std::to_string(reference.place) +
                                             " of its outbox, where it has stored none");
    return segment.chunk(reference.place).data;
}

void Engine::release(const Peer& peer, const wire::Reference& reference) {
    if (peer.index >= remote_first_) {
        std::lock_guard lock(mutex_);
        return network_->release(reference.place);
    }
    peer.segment.chunk(reference.place).unread.store(0, std::memory_order_release);
}

// The next packet in the mailbox is a REF whose data is still on its way.
bool Engine::is_awaited(Domain& domain, std::uint64_t word) {
    const wire::Header header = wire::Header::unpack(word);
    if (!wire::is_data(header.kind) || (header.flags & wire::kReference) == 0) return false;
    wire::Reference reference;
    std::memcpy(&reference, domain.reader.payload(), sizeof reference);
    std::lock_guard lock(mutex_);
    return network_->pulled(reference.place) == nullptr;
}

}  // namespace velo::endpoint
