// By reference: a message that would take more packets than the credits allow leaves as one, a REF, and stays
// in the outbox of its sender until the receiver has read it there (flow/outbox.h). To the flow control a REF
// is a DATA packet like any other.
#include <cstring>
#include <mutex>

#include "endpoint/filling.h"
#include "endpoint/send_now.h"
#include "flow/batching.h"
#include "platform/cache.h"
#include "platform/copy.h"
#include "platform/failure.h"
#include "platform/process_identity.h"

namespace velo::endpoint {
namespace {

// The data of a transfer leaves in pieces, so that one is stored while the one before is read.
constexpr std::size_t kPiece = 4096;

// Of a chunk that is cut in turn the pages come many at once, and not each with its first use.
void fault_in(const fabric::shm::Segment& segment, std::uint32_t place, std::size_t bytes) {
    const std::uint32_t begin = segment.outbox_plan().in_turn_begin();
    if (place >= begin) segment.fault_in_turn(place - begin + bytes);
}

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
    peer.refer_from = routes_.reference_from(peer);
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
    fill(mailbox_.chunk(chunk.place).data, what.message, what.offset, bytes,
         storing_for(peer.distance.far()));
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
    if (chunk.room > 0) fault_in(mailbox_, chunk.place, chunk.room);
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
    fill(there.data, message, 0, total, storing_for(peer.distance.far()));
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

bool Engine::is_lent(const fabric::shm::Segment& segment, const wire::Reference& reference) {
    return segment.bytes() > 0 && segment.outbox_plan().holds(reference.place, reference.bytes) &&
           segment.chunk(reference.place).unread.load(std::memory_order_relaxed) == 1;
}

// The data that a REF stands for, in place. Throws Failure.
std::byte* Engine::referenced(const Peer& peer, const wire::Reference& reference) {
    const fabric::shm::Segment& segment = peer.segment;
    if (!is_lent(segment, reference))
        throw Failure(VELO_ERR_PROTOCOL, platform::process_here(peers_.name_at(peer.index)) + " refers to " +
                                             std::to_string(reference.bytes) + " bytes at offset " +
                                             std::to_string(reference.place) +
                                             " of its outbox, where it has stored none");
    fault_in(segment, reference.place, reference.bytes);
    return segment.chunk(reference.place).data;
}

// Lines that travel while the message is matched: from far those that are read next; from near, which are as
// quick then, those of the message that went there last, in whose place the answer is likely to be stored, if
// the peer has read them.
void Engine::fetch_lines(Peer& peer, const std::byte* data, const wire::Reference& reference) const {
    constexpr std::size_t kLinesRead = 32, kLinesStored = 20;
    peer.read_by_it.store(reference.read, std::memory_order_release);
    if (config_.threads) return;  // what others may be changing is not looked at
    if (peer.distance.far()) {
        const std::size_t lines = std::min(kLinesRead, (std::size_t{reference.bytes} + 63) / 64);
        for (std::size_t line = 0; line < lines; ++line) platform::prefetch(data + 64 * line);
    } else if (peer.referred.bytes > 0 && peer.referred.place < outbox_.plan().bytes() &&
               reference.read == peer.references_sent) {
        const auto* chunk = reinterpret_cast<const std::byte*>(&mailbox_.chunk(peer.referred.place).unread);
        const std::size_t lines = std::min<std::size_t>(kLinesStored, 1 + (peer.referred.bytes + 63) / 64);
        for (std::size_t line = 0; line < lines; ++line) platform::prefetch_for_write(chunk + 64 * line);
    }
}

// The message has come by reference: whether it is of a stream that the upper layer copies, and is handed up
// in a copy. The library's copy reads long messages by the processor's string instruction, and while it does,
// some processors hold up whoever stores into the lines behind.
bool Engine::counts_as_streamed(Peer& peer, std::uint8_t tag, std::size_t bytes) const {
    if (bytes < kLeastCopied || bytes > kMostCopied || tag == kListenerTag || config_.threads) return false;
    return peer.streams_to_us();
}

// Until the next one.
std::byte* Engine::copy_of(const std::byte* data, std::size_t bytes) {
    copied_.resize(kMostCopied);
    platform::copy(copied_.data(), data, bytes);
    return copied_.data();
}

// The count comes last: another thread may tell it to the owner at once, who then stores other data there.
void Engine::release(Peer& peer, const wire::Reference& reference) {
    peer.segment.chunk(reference.place).unread.store(0, std::memory_order_release);
    const std::uint32_t read = peer.references_read.load(std::memory_order_relaxed);
    peer.references_read.store(read + 1, std::memory_order_release);  // what was read comes before
}

}  // namespace velo::endpoint
