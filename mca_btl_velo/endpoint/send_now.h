// The way of a message of one run, inline from the C interface down to the mailbox.
#pragma once

#include "endpoint/engine.h"
#include "endpoint/filling.h"
#include "endpoint/view.h"
#include "flow/batching.h"

namespace velo::endpoint {

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
inline void Engine::left_plainly(Peer& peer, std::uint32_t packets) {
    *peer.domain.sent_packets += packets;
    pace_.sent(peer);
    (void)count_sent();
}

// Of one packet, to a peer towards which nothing is due: nearly all messages, and all that they need.
// The last credits are left to a batch. False: nothing has been done.
inline bool Engine::send_if_plain(Peer& peer, std::uint8_t tag, const fabric::MessageView& message) noexcept {
    if (!peer.is_plain() || message.total() > wire::kPayloadBytes || !peer.queue.empty() ||
        !peer.ledger().take_if_plain(peer, 1, flow::kBatchShift))
        return false;
    peer.link.direct().carry_plain_packet(message, tag, pace_.is_latency_bound(peer));
    left_plainly(peer, 1);
    return true;
}

// Into the batch that is open for the peer, likewise.
inline bool Engine::append_if_plain(Peer& peer, std::uint8_t tag,
                                    const fabric::MessageView& message) noexcept {
    if (!peer.may_be_plain || !peer.to_it.is_open() || !peer.to_it.holds(message.total()) ||
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
        platform::copy_two_small(peer.to_it.data(), message.part[0], message.bytes[0], message.part[1],
                                 message.bytes[1]);
    else
        fill(peer.to_it.data(), message, 0, total, peer.copy_by);
    peer.to_it.append(total, tag, flags);
    pace_.sent(peer);
    ++observer_.counts.batched_messages;
}

// Of several packets in one run, or by reference, likewise.
inline bool Engine::send_longer_if_plain(Peer& peer, std::uint8_t tag,
                                         const fabric::MessageView& message) noexcept {
    const std::size_t total = message.total();
    if (!peer.is_plain() || total <= wire::kPayloadBytes || message.bytes[0] > wire::kPayloadBytes ||
        !peer.queue.empty())
        return false;
    if (Routes::takes(peer, total)) return send_referred_if_plain(peer, tag, message);
    return send_run_if_plain(peer, tag, message);
}

inline bool Engine::send_run_if_plain(Peer& peer, std::uint8_t tag,
                                      const fabric::MessageView& message) noexcept {
    const std::size_t total = message.total();
    const bool waited_for = pace_.is_latency_bound(peer);
    const std::size_t packets = (wire::kHeaderBytes + total + wire::kPacketBytes - 1) / wire::kPacketBytes;
    const auto count = static_cast<std::uint32_t>(packets);
    if (packets > (waited_for ? kLatencyFraming : kRateFraming).whole_packets ||
        !peer.link.direct().holds(count) || !peer.distance.passes() ||
        !peer.ledger().take_if_plain(peer, count, routes_.shift()))
        return false;
    peer.link.direct().carry_plain_run(message, tag, count, waited_for);
    left_plainly(peer, count);
    return true;
}

}  // namespace velo::endpoint
