// Whether a message is waited for, so that its latency counts, or is one of many: nothing was sent to its
// receiver for a few polls of the mailbox that found nothing.
#pragma once

#include <atomic>
#include <cstdint>

#include "engine/peers/peer.h"

namespace velo::engine {

class Pace {
 public:
    static constexpr std::uint64_t kLeastPolls = 3;

    bool is_latency_bound(const Peer& peer) const {
        return empty_polls_.load(std::memory_order_relaxed) - peer.polls_at_send >= kLeastPolls;
    }
    // The message that is sent next is one of a burst: this process has not waited since the last one to that
    // peer, and nothing has come from there.
    bool bursts(const Peer& peer) const {
        return !is_latency_bound(peer) && peer.awaits_answer.load(std::memory_order_relaxed);
    }
    // Something has left for the peer, whose answer is awaited.
    [[gnu::always_inline]] void sent(Peer& peer) const {
        peer.polls_at_send = empty_polls_.load(std::memory_order_relaxed);
        peer.awaits_answer.store(true, std::memory_order_relaxed);
    }
    // Only the thread that is in the gate counts. Returns the number.
    std::uint64_t count_empty_poll() {
        const std::uint64_t polls = empty_polls_.load(std::memory_order_relaxed) + 1;
        empty_polls_.store(polls, std::memory_order_relaxed);
        return polls;
    }

 private:
    std::atomic<std::uint64_t> empty_polls_{0};
};

}  // namespace velo::engine
