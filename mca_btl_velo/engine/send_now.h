// How a message is sent. Each step sends it now or has no effect, and then the next one is asked:
// 1. to a plain peer, inline from the C interface down to the mailbox: try_send_fast (one packet),
// try_send_longer_fast (a run of packets, or by reference), try_append_fast (into the batch that is open);
// 2. send_now (sending.cc), to any peer: in a batch, by reference or in packets;
// 3. send_start: the same, and what is left waits (pending_sends.h).
#pragma once

#include "engine/engine.h"
#include "engine/staging/filling.h"
#include "flow/batching.h"

namespace velo::engine {

// How messages are cut, measured (design/shared-memory.md). Many in a row: each goes up without a copy. One
// that is waited for: the receiver fetches its first part while the second is being stored.
inline constexpr std::size_t kTrainFrom = wire::kPayloadBytes + 1;
inline constexpr wire::Framing kRateFraming{kTrainFrom, 140, 16};
inline constexpr wire::Framing kLatencyFraming{kTrainFrom, 24, 40};

inline void Engine::sent(Peer& peer, std::uint32_t packets) {
    const bool owes = peer.ledger().take(peer, packets);
    *peer.domain.sent_packets += packets;
    pace_.sent(peer);
    // One branch for all that is rare.
    if (owes | sends_are_followed_ | peer.dozes) [[unlikely]]
        follow_sent(peer, packets);
}

inline velo_status Engine::count_sent() {
    ++observer_.counts.messages_sent;
    assert_invariants();
    return VELO_OK;
}

// After the store of packets to a plain peer.
inline void Engine::sent_fast(Peer& peer, std::uint32_t packets) {
    *peer.domain.sent_packets += packets;
    pace_.sent(peer);
    (void)count_sent();
}

// Sends a message of one packet to a plain peer (Peer::is_plain). Nearly all messages take this path. The
// last credits are left to a batch. False: no effect.
inline bool Engine::try_send_fast(Peer& peer, std::uint8_t tag, const fabric::MessageView& message) noexcept {
    if (!peer.is_plain() || message.total() > wire::kPayloadBytes || !peer.queue.empty() ||
        !peer.ledger().try_take(peer, 1, flow::kBatchShift))
        return false;
    peer.link.direct().carry_plain_packet(message, tag, pace_.is_latency_bound(peer));
    sent_fast(peer, 1);
    return true;
}

// Appends the message to the batch that is open for the peer. False: no effect.
inline bool Engine::try_append_fast(Peer& peer, std::uint8_t tag,
                                    const fabric::MessageView& message) noexcept {
    if (!peer.may_be_plain || !peer.batch_out.is_open() || !peer.batch_out.holds(message.total()) ||
        pace_.is_latency_bound(peer))
        return false;
    append(peer, tag, 0, message);
    (void)count_sent();
    return true;
}

inline void Engine::append(Peer& peer, std::uint8_t tag, std::uint8_t flags,
                           const fabric::MessageView& message) {
    const std::size_t total = message.total();
    if (total <= wire::kPayloadBytes)
        platform::copy_two_small(peer.batch_out.data(), message.part[0], message.bytes[0], message.part[1],
                                 message.bytes[1]);
    else
        fill(peer.batch_out.data(), message, 0, total, peer.copy_by);
    peer.batch_out.append(total, tag, flags);
    pace_.sent(peer);
    ++observer_.counts.batched_messages;
}

// Sends a message of more than one packet to a plain peer: by reference, or as one run. A 2 KiB MPI_Send
// takes this path. False: no effect.
inline bool Engine::try_send_longer_fast(Peer& peer, std::uint8_t tag,
                                         const fabric::MessageView& message) noexcept {
    const std::size_t total = message.total();
    if (!peer.is_plain() || total <= wire::kPayloadBytes || message.bytes[0] > wire::kPayloadBytes ||
        !peer.queue.empty())
        return false;
    if (Routes::goes_by_reference(peer, total)) return try_send_reference_fast(peer, tag, message);
    return try_send_run_fast(peer, tag, message) || try_send_outgrown_fast(peer, tag, message);
}

inline bool Engine::try_send_run_fast(Peer& peer, std::uint8_t tag,
                                      const fabric::MessageView& message) noexcept {
    const std::size_t total = message.total();
    const bool waited_for = pace_.is_latency_bound(peer);
    const std::size_t packets = (wire::kHeaderBytes + total + wire::kPacketBytes - 1) / wire::kPacketBytes;
    const auto count = static_cast<std::uint32_t>(packets);
    if (packets > (waited_for ? kLatencyFraming : kRateFraming).whole_packets ||
        !peer.link.direct().holds(count) || !peer.proximity.try_count_message() ||
        !peer.ledger().try_take(peer, count, routes_.shift()))
        return false;
    peer.link.direct().carry_plain_run(message, tag, count, waited_for);
    sent_fast(peer, count);
    return true;
}

}  // namespace velo::engine
