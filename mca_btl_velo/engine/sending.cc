// The sender's side, of what is not in send_now.h: what credits allow goes out at once.
#include <algorithm>
#include <mutex>

#include "engine/send_now.h"
#include "engine/view.h"
#include "platform/ticks.h"

namespace velo::engine {
namespace {

// A message that is waited for and longer than this is a stream of its own.
constexpr std::size_t kLatencyBytes = std::size_t{5} * 1024;
constexpr wire::Framing kStreamFraming{kTrainFrom, 24, 16};

struct SendFraming {
    const wire::Framing& framing;
    bool latency_bound;
};

SendFraming framing_of(const Peer& peer, std::size_t bytes, bool trains, bool waited_for) {
    const bool is_short = bytes <= kLatencyBytes;
    if (!trains) return {wire::kClassicFraming, is_short && waited_for};
    if (peer.domain.framing != nullptr) [[unlikely]]
        return {*peer.domain.framing, false};
    if (!waited_for) return {kRateFraming, false};
    return is_short ? SendFraming{kLatencyFraming, true} : SendFraming{kStreamFraming, false};
}

}  // namespace

// What follows a send to a peer that dozes, that is not the only one, or that the trace is told of. A process
// that sends to several peers may not look at its mailbox for long: credits that it owes leave now.
void Engine::follow_sent(Peer& peer, std::uint32_t packets) {
    if (peer.ledger().owes_another(peer)) peer.ledger().look();
    if (peer.domain.kind != Domain::Kind::kVelo)
        velo_.ledger.look();
    else if (remote_.domain())
        remote_.domain()->ledger.look();
    observer_.sent(peer, packets);
    peer.wake();
}

velo_status Engine::send_now(Peer& peer, std::uint8_t tag, const fabric::MessageView& message) {
    std::lock_guard lock(mutex_);
    if (!peer.queue.empty()) return VELO_WOULD_BLOCK;
    const std::size_t total = message.total();
    if (pending_.leaves_at_look(peer, total)) return VELO_WOULD_BLOCK;
    if (send_in_batch(peer, tag, 0, message, wire::PacketKind::kData)) return count_sent();
    if (peer.ledger().credits(peer) == 0) return VELO_WOULD_BLOCK;
    if (total > wire::kPayloadBytes) return send_run_now(peer, tag, message);
    const std::uint32_t credits_back = peer.ledger().attach(peer, total <= wire::kPiggybackOffset);
    if (!peer.link.carry_packet(message, tag, credits_back, peer.policy().limited(),
                                pace_.is_latency_bound(peer)))
        return VELO_WOULD_BLOCK;
    sent(peer, 1);
    return count_sent();
}

// Sends by reference. A message below 1 KiB goes as a run if no chunk is free at once.
bool Engine::try_send_reference_fast(Peer& peer, std::uint8_t tag, fabric::MessageView message) noexcept {
    constexpr std::size_t kAlwaysByReference = 1024;
    if (references_.try_send_fast(peer, tag, message)) {
        sent_fast(peer, 1);
        return true;
    }
    return message.total() < kAlwaysByReference && try_send_run_fast(peer, tag, message);
}

// Sends by reference what has found too few credits for its packets, unless a batch takes it.
bool Engine::try_send_outgrown_fast(Peer& peer, std::uint8_t tag, fabric::MessageView message) noexcept {
    const std::uint32_t packets = wire::packets_in_run(message.total()), allowed = packets_allowed(peer);
    return routes_.prefers_reference(peer, message.total(), packets, allowed) &&
           !flow::opens_batch({packets, allowed, true, pace_.bursts(peer), false}) &&
           try_send_reference_fast(peer, tag, message);
}

// Appends the message to the batch that is open for the peer, or to a new one (flow/batching.h). False: it
// takes another route, or waits, and no batch is open.
bool Engine::send_in_batch(Peer& peer, std::uint8_t tag, std::uint8_t flags,
                           const fabric::MessageView& message, wire::PacketKind kind) {
    const std::size_t total = message.total();
    if (peer.batch_out.is_open()) {
        if (!pace_.is_latency_bound(peer) && peer.batch_out.holds(total)) {
            append(peer, tag, flags, message);
            peer.wake();
            return true;
        }
        batches_.close(peer);
    }
    if (total > flow::kMostBatchedBytes || !routes_.has_batches() || !peer.is_local()) return false;
    if (packets_allowed(peer) == 0 && &peer.domain == &velo_) retrieval_.take_credits(velo_);
    if (!flow::opens_batch({.packets = wire::packets_in_run(total),
                            .allowed = packets_allowed(peer),
                            .counted = peer.policy().limited(),
                            .bursts = pace_.bursts(peer),
                            .others_wait = peer.queue.holds_several()}))
        return false;
    const flow::Outbox::Chunk chunk =
        references_.allocate(peer, flow::kBatchChunkBytes, wire::batch_bytes(total));
    if (chunk.room == 0) return false;
    batches_.open(peer, staging_.at(chunk), chunk.room);
    append(peer, tag, flags, message);
    references_.send(peer, chunk, chunk.room, kind, 0, wire::kFirst | wire::kLast | wire::kBatch);
    sent(peer, 1);
    ++observer_.counts.batches;
    peer.sent_references.missed = false;
    return true;
}

bool Engine::push(Peer& peer, velo_send& send, wire::PacketKind kind) {
    std::size_t total = send.bytes[0] + send.bytes[1];
    if (send.sent == 0 && send_in_batch(peer, send.tag, send.flags, view_of(send), kind)) {
        send.sent = total;
        return true;
    }
    do {
        std::size_t rest = total - send.sent;
        const SendFraming how = framing_of(peer, total, config_.packet_trains, pace_.is_latency_bound(peer));
        const std::uint64_t needed = how.framing.packets_for(rest);
        if (needed > 1) routes_.measure_distance(peer);
        if (needed > 1 && routes_.prefers_reference(peer, rest, needed, packets_allowed(peer))) {
            const auto bytes =
                references_.send(peer, {view_of(send), send.sent, kind, send.tag, send.flags, false});
            if (bytes) {
                sent(peer, 1);
                send.sent += *bytes;
                continue;
            }
        }
        fabric::Burst burst{.message = view_of(send),
                            .offset = send.sent,
                            .packets = 0,
                            .kind = kind,
                            .tag = send.tag,
                            .flags = send.flags,
                            .piggyback = 0,
                            .granted = peer.policy().limited(),
                            .whole = false,
                            .rested = how.latency_bound,
                            .stays = send.collectable,
                            .framing = how.framing};
        burst.packets =
            static_cast<std::uint32_t>(std::min<std::uint64_t>(needed, peer.ledger().credits(peer)));
        if (burst.packets == 0) return peer.departed;
        if (burst.packets == needed && burst.framing.room_for_piggyback(rest))
            burst.piggyback = peer.ledger().attach(peer);
        fabric::Carried carried = peer.link.carry(burst);
        if (carried.packets == 0) {
            if (peer.departed) return true;
            if (peer.domain.refusal != nullptr) {
                peer.domain.refusal->refused(peer.source(), platform::now_ns());
                observer_.refused(peer, burst.packets);
            }
            return false;
        }
        sent(peer, carried.packets);
        send.sent += carried.bytes;
    } while (send.sent < total);
    peer.sent_references.missed = false;
    return true;
}

// More than one packet, and nothing is queued. Under the mutex.
velo_status Engine::send_run_now(Peer& peer, std::uint8_t tag, const fabric::MessageView& message) {
    const std::size_t total = message.total();
    const SendFraming how = framing_of(peer, total, config_.packet_trains, pace_.is_latency_bound(peer));
    const std::uint64_t needed = how.framing.packets_for(total);
    routes_.measure_distance(peer);
    if (routes_.prefers_reference(peer, total, needed, packets_allowed(peer)) &&
        references_.send(peer, {message, 0, wire::PacketKind::kData, tag, 0, true})) {
        sent(peer, 1);
        return count_sent();
    }
    if (needed > peer.ledger().credits(peer)) return VELO_WOULD_BLOCK;
    const auto packets = static_cast<std::uint32_t>(needed);
    fabric::Burst burst{.message = message,
                        .offset = 0,
                        .packets = packets,
                        .kind = wire::PacketKind::kData,
                        .tag = tag,
                        .flags = 0,
                        .piggyback = 0,
                        .granted = peer.policy().limited(),
                        .whole = true,
                        .rested = how.latency_bound,
                        .stays = false,
                        .framing = how.framing};
    if (how.framing.room_for_piggyback(total)) burst.piggyback = peer.ledger().attach(peer);
    if (peer.link.carry(burst).packets == 0) return VELO_WOULD_BLOCK;
    peer.sent_references.missed = false;
    sent(peer, packets);
    return count_sent();
}

velo_status Engine::send_start(Peer& peer, velo_send* send) {
    std::lock_guard lock(mutex_);
    send->sent = 0;
    send->flags = 0;
    ++observer_.counts.messages_sent;
    if ((peer.queue.empty() || peer.collects) && send->collectable &&
        remote_.is_one_of_many(peer, send->bytes[0] + send->bytes[1])) {
        pending_.collect(peer, send);
        assert_invariants();
        return VELO_QUEUED;
    }
    if (peer.collects && !send->collectable) (void)pending_.flush(peer);
    bool sent = peer.queue.empty() && push(peer, *send, wire::PacketKind::kData);
    assert_invariants();
    if (sent && (!send->collectable || !peer.link.holds_some())) return VELO_OK;
    if (sent) {
        pending_.await_network(peer, send);
        return VELO_QUEUED;
    }
    ++observer_.counts.messages_delayed;
    pending_.enqueue(peer, send);
    return VELO_QUEUED;
}

void Engine::control_entered(const Peer& from, wire::PacketKind kind, std::uint32_t value) {
    observer_.control_received(from, kind, value);
}

void Engine::carry_control(Peer& peer, wire::PacketKind kind, std::uint32_t value) {
    if (!peers_.may_be_answered(peer)) return;
    peer.link.carry_control(kind, value);
    peer.wake();
    observer_.control_sent(peer, kind, value);
}

void Engine::post(flow::PeerIndex to, velo_send* message) {
    Peer& peer = peers_.reachable(to);
    if (remote_.send_bulk(peer, message)) return;
    message->sent = 0;
    message->collectable = false;
    if (peer.queue.empty() && push(peer, *message, wire::PacketKind::kData))
        return message->done(message, VELO_OK);
    pending_.enqueue(peer, message);
}

}  // namespace velo::engine
