#include "engine/staging/references.h"

#include <algorithm>

#include "engine/staging/filling.h"

namespace velo::engine {
namespace {

// The data of a transfer leaves in pieces, so that one is stored while the one before is read.
constexpr std::size_t kPiece = 4096;

// What the next REF says.
inline const wire::Reference& refer(Peer& peer, const flow::Outbox::Chunk& chunk, std::size_t bytes) {
    SentReferences& sent = peer.sent_references;
    ++sent.sent;
    sent.before_last = sent.last;
    return sent.last = {chunk.place, static_cast<std::uint32_t>(bytes),
                        peer.references_read.load(std::memory_order_acquire)};
}

}  // namespace

flow::Outbox::Chunk References::allocate(Peer& peer, std::size_t bytes, std::size_t least) {
    if (!staging_.is_mapped_by(peer)) return {};
    const flow::Outbox::Chunk chunk = staging_.allocate(peer, bytes, Staging::Search::kAllChunks);
    if (chunk.room == 0) return {};
    if (least <= chunk.room && peer.link.begin_reference(peer.policy().limited()))
        return peer.sent_references.last_chunk = chunk;
    staging_.give_back(chunk);
    return {};
}

void References::send(Peer& peer, const flow::Outbox::Chunk& chunk, std::size_t bytes, wire::PacketKind kind,
                      std::uint8_t tag, std::uint8_t flags) {
    peer.link.carry_reference(
        {refer(peer, chunk, bytes), staging_.at(chunk), kind, tag, flags, peer.ledger().attach(peer)});
}

std::optional<std::size_t> References::send(Peer& peer, const Outgoing& what) {
    const std::size_t rest = what.message.total() - what.offset;
    const std::size_t most = (what.flags & wire::kInternal) != 0 ? std::min(rest, kPiece) : rest;
    const flow::Outbox::Chunk chunk = allocate(peer, most, what.whole ? most : 1);
    if (chunk.room == 0) return {};
    const std::size_t bytes = std::min<std::size_t>(most, chunk.room);
    fill(staging_.at(chunk), what.message, what.offset, bytes, peer.copy_by);
    std::uint8_t flags = what.flags;
    if (what.offset == 0) flags |= wire::kFirst;
    if (bytes == rest) flags |= wire::kLast;
    send(peer, chunk, bytes, what.kind, what.tag, flags);
    counts_.messages_by_reference += bytes == rest;
    return bytes;
}

// It lies where the last one lay, if the peer has read all.
bool References::try_send_fast(Peer& peer, std::uint8_t tag, const fabric::MessageView& message) noexcept {
    const std::size_t total = message.total();
    if (!peer.maps_us || peer.ledger().credits(peer) == 0 || !peer.proximity.try_count_message())
        return false;
    peer.sent_references.note_told();
    flow::Outbox::Chunk& chunk = peer.sent_references.last_chunk;
    const bool again = total <= chunk.room && staging_.is_last_chunk_free(peer);
    if (!again) chunk = staging_.allocate(peer, total, Staging::Search::kOwnChunks);
    if (chunk.room == 0) return false;
    if (total > chunk.room) {
        staging_.give_back(chunk);
        return false;
    }
    const std::uint32_t credits_back = peer.ledger().attach(peer);
    peer.ledger().sent(peer, 1);
    const mailbox::Cursor at = peer.link.direct().begin_plain_reference();
    fill(staging_.at(chunk), message, 0, total, peer.copy_by);
    peer.link.direct().carry_plain_reference(at, refer(peer, chunk, total), tag, credits_back);
    ++counts_.messages_by_reference;
    return true;
}

// The peer has ended: free its chunks and allocate it no more.
void References::ended(Peer& peer) {
    staging_.free_all(peer);
    peer.maps_us = false;
}

}  // namespace velo::engine
