// By reference: a message that would take more packets than the credits allow leaves as one, a REF, and stays
// in the outbox of its sender until the receiver has read it there (flow/outbox.h). To the flow control a REF
// is a DATA packet like any other.
#include <cstring>
#include <mutex>

#include "endpoint/filling.h"
#include "endpoint/send_now.h"
#include "flow/batching.h"
#include "platform/process_identity.h"

namespace velo::endpoint {
namespace {

// The data of a transfer leaves in pieces, so that one is stored while the one before is read.
constexpr std::size_t kPiece = 4096;

}  // namespace

// A process may end before its peer has read, and its outbox lives as long as a mapping: the peer, which is
// on this node, must have one.
bool Engine::may_refer(Peer& peer) {
    if (!peer.is_local()) return false;
    if (!peer.maps_us) peer.maps_us = mailbox_.reads(peer.index);
    return peer.maps_us;
}

// The line is one that the peer stores into whenever it has read messages, and that nobody else loads.
void Engine::look_at_distance(Peer& peer) noexcept {
    if (peer.segment.bytes() == 0) return;
    const fabric::shm::SegmentHeader& its = peer.segment.header();
    const auto& line = (peer.domain.kind == Domain::Kind::kVelo ? its.pointers : its.limic_pointers).read;
    std::uint64_t position = 0;
    const std::uint64_t ticks = platform::ticks_of([&] { position = line.load(std::memory_order_relaxed); });
    const std::uint64_t ns = platform::now_ns() - opened_ns_, all = platform::ticks() - opened_ticks_;
    if (!peer.distance.looked(position, ticks * ns / all)) return;
    routes_.set_of(peer);
    tell(config_, 20, "%s is %s", platform::process_array(peer.name).data(),
         peer.distance.far() ? "far: it shares no cache with this one" : "near");
}

// Under the mutex, as all that sends. A chunk for the peer, and a place for its REF, which is the next that
// leaves; without room if there is none of `least` bytes.
flow::Outbox::Chunk Engine::lend(Peer& peer, std::size_t bytes, std::size_t least) {
    if (!may_refer(peer)) return {};
    if (peer.has_read_all()) outbox_.free_all(peer.lent);
    flow::Outbox::Chunk chunk;
    if (Routes::rotates(peer, bytes, large_.deposits().is_provided())) chunk = take_in_turn(peer, bytes);
    if (chunk.room == 0)
        chunk =
            outbox_.take(peer.lent, bytes, [this](std::uint32_t place) { return mailbox_.is_read(place); });
    observer_.counts.outbox_high_water = outbox_.counters().high_water;
    observer_.counts.outbox_full = outbox_.counters().full;
    if (chunk.room == 0) return {};
    if (least <= chunk.room && peer.link.begin_reference(peer.policy().limited())) return peer.kept = chunk;
    outbox_.give_back(chunk);
    return {};
}

// The chunk has been filled: its REF leaves.
void Engine::send_reference(Peer& peer, const flow::Outbox::Chunk& chunk, std::size_t bytes,
                            wire::PacketKind kind, std::uint8_t tag, std::uint8_t flags) {
    const fabric::shm::OutboxChunk there = mailbox_.chunk(chunk.place);
    there.unread.store(1, std::memory_order_relaxed);  // published with the packet
    const wire::Reference reference{chunk.place, static_cast<std::uint32_t>(bytes),
                                    peer.references_read.load(std::memory_order_acquire)};
    peer.referred = reference;
    ++peer.references_sent;
    peer.link.carry_reference(
        {reference, there.data, &there.unread, kind, tag, flags, peer.ledger().attach(peer)});
    sent(peer, 1);
}

// With a credit at hand where they are counted. Returns the number of bytes that have left, of those from
// `offset` on; nothing: they have to go in packets, or none of them may go alone.
std::optional<std::size_t> Engine::refer(Peer& peer, const Outgoing& what) {
    const std::size_t rest = what.message.total() - what.offset;
    const std::size_t most = (what.flags & wire::kInternal) != 0 ? std::min(rest, kPiece) : rest;
    const flow::Outbox::Chunk chunk = lend(peer, most, what.whole ? most : 1);
    if (chunk.room == 0) return {};
    const std::size_t bytes = std::min<std::size_t>(most, chunk.room);
    fill(mailbox_.chunk(chunk.place).data, what.message, what.offset, bytes, peer.copy_by);
    std::uint8_t flags = what.flags;
    if (what.offset == 0) flags |= wire::kFirst;
    if (bytes == rest) flags |= wire::kLast;
    send_reference(peer, chunk, bytes, what.kind, what.tag, flags);
    observer_.counts.messages_by_reference += bytes == rest;
    return bytes;
}

// For a peer of this node; without room if there is none.
flow::Outbox::Chunk Engine::take_in_turn(Peer& peer, std::size_t bytes) {
    if (!large_.deposits().has_memory()) return {};
    const flow::Outbox::Chunk chunk =
        outbox_.take_in_turn(peer.lent, static_cast<std::uint32_t>(bytes),
                             [this](std::uint32_t place) { return mailbox_.is_read(place); });
    if (chunk.room > 0) mailbox_.fault_in_chunk(chunk.place, chunk.room);
    return chunk;
}

// All of it, to a plain peer of this node: where the last lay if it has read all that was referred to.
bool Engine::refer_if_plain(Peer& peer, std::uint8_t tag, const fabric::MessageView& message) noexcept {
    const std::size_t total = message.total();
    if (!peer.maps_us || !peer.distance.passes()) return false;
    const bool all_read = peer.has_read_all();
    const bool again = all_read && total <= peer.kept.room && outbox_.is_lent(peer.kept, peer.lent);
    if (!again) {
        if (all_read) outbox_.free_all(peer.lent);
        peer.kept = Routes::rotates(peer, total, large_.deposits().is_provided()) ? take_in_turn(peer, total)
                                                                                  : flow::Outbox::Chunk{};
        if (peer.kept.room == 0)
            peer.kept = outbox_.take_at_hand(peer.lent, total,
                                             [this](std::uint32_t place) { return mailbox_.is_read(place); });
        if (peer.kept.room == 0) return false;
        observer_.counts.outbox_high_water = outbox_.counters().high_water;
    }
    if (total > peer.kept.room || !peer.ledger().take_if_plain(peer, 1)) {
        if (!again) outbox_.give_back(peer.kept);
        return false;
    }
    const fabric::shm::OutboxChunk there = mailbox_.chunk(peer.kept.place);
    const mailbox::Cursor at = peer.link.direct().begin_plain_reference();
    fill(there.data, message, 0, total, peer.copy_by);
    there.unread.store(1, std::memory_order_relaxed);  // published with the packet
    peer.referred = {peer.kept.place, static_cast<std::uint32_t>(total),
                     peer.references_read.load(std::memory_order_acquire)};
    ++peer.references_sent;
    peer.link.direct().carry_plain_reference(at, peer.referred, tag);
    ++observer_.counts.messages_by_reference;
    left_plainly(peer, 1);
    return true;
}

// In a run if no chunk is at hand and it is short.
bool Engine::send_referred_if_plain(Peer& peer, std::uint8_t tag, fabric::MessageView message) noexcept {
    constexpr std::size_t kLeastSought = 1024;
    if (refer_if_plain(peer, tag, message)) return true;
    return message.total() < kLeastSought && send_run_if_plain(peer, tag, message);
}

// Appends a message to the batch that is open for the peer, or to a new one (flow/batching.h). False: it goes
// another way, or waits, and no batch is open.
bool Engine::send_in_batch(Peer& peer, std::uint8_t tag, std::uint8_t flags,
                           const fabric::MessageView& message, wire::PacketKind kind) {
    const std::size_t total = message.total();
    if (peer.to_it.is_open()) {
        if (!rested(peer) && peer.to_it.holds(total)) {
            append(peer, tag, flags, message);
            peer.wake();
            return true;
        }
        batches_.close(peer);
    }
    if (total > flow::kMostBatchedBytes || !routes_.has_batches() || !peer.is_local()) return false;
    if (packets_allowed(peer) == 0 && &peer.domain == &velo_) take_credits();
    const bool bursts = !rested(peer) && peer.awaits_answer.load(std::memory_order_relaxed);
    if (!flow::opens_batch({.packets = wire::packets_in_run(total),
                            .allowed = packets_allowed(peer),
                            .counted = peer.policy().limited(),
                            .bursts = bursts,
                            .others_wait = peer.queue.holds_several()}))
        return false;
    const flow::Outbox::Chunk chunk = lend(peer, flow::batch_chunk_bytes(total), wire::batch_bytes(total));
    if (chunk.room == 0) return false;
    batches_.open(peer, mailbox_.chunk(chunk.place).data, chunk.room);
    append(peer, tag, flags, message);
    send_reference(peer, chunk, chunk.room, kind, 0, wire::kFirst | wire::kLast | wire::kBatch);
    ++observer_.counts.batches;
    peer.lent.missed = false;
    return true;
}

}  // namespace velo::endpoint
