// The way of a message of one packet, inline from the C interface down to the mailbox.
#pragma once

#include <mutex>

#include "endpoint/engine.h"

namespace velo::endpoint {

inline fabric::MessageView view_of(const velo_send& send) {
    return {{static_cast<const std::byte*>(send.part[0]), static_cast<const std::byte*>(send.part[1])},
            {send.bytes[0], send.bytes[1]}};
}

inline void Engine::sent(Peer& peer, std::uint32_t packets) {
    const bool owes = peer.ledger().take(peer, packets);
    *peer.domain.sent_packets += packets;
    peer.polls_at_send = empty_polls_.load(std::memory_order_relaxed);
    peer.awaits_answer.store(true, std::memory_order_relaxed);
    // One branch for all that is rare.
    if (owes | sends_are_followed_ | peer.dozes) [[unlikely]]
        follow_sent(peer, packets);
}

inline velo_status Engine::count_sent() {
    ++statistics_.messages_sent;
    assert_invariants();
    return VELO_OK;
}

// All of a message, at once.
inline velo_status Engine::sent_whole(Peer& peer, std::uint32_t packets) {
    sent(peer, packets);
    return count_sent();
}

inline velo_status Engine::send_now(Peer& peer, std::uint8_t tag, const fabric::MessageView& message) {
    if (config_.threads) [[unlikely]]
        return send_now_locked(peer, tag, message);
    return send_now_alone(peer, tag, message);
}

// Under the mutex, or with a single thread.
inline velo_status Engine::send_now_alone(Peer& peer, std::uint8_t tag, const fabric::MessageView& message) {
    if (!peer.queue.empty() | (peer.ledger().credits(peer) == 0)) return VELO_WOULD_BLOCK;
    const std::size_t total = message.total();
    if (total > wire::kPayloadBytes) [[unlikely]]
        return send_run_now(peer, tag, message);
    const std::uint32_t credits_back = peer.ledger().attach(peer, total <= wire::kPiggybackOffset);
    if (!peer.link.carry_packet(message, tag, credits_back, peer.policy().limited(), rested(peer)))
        return VELO_WOULD_BLOCK;
    return sent_whole(peer, 1);
}

}  // namespace velo::endpoint
