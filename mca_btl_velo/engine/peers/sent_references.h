// What one peer has been sent by reference: the chunks that it is to read, and how many of them it has read.
// The peer counts in its own segment, and says its count in each REF of its own: what it has said costs
// nothing to know, a look at its count takes a cache line's journey.
//
// Under the engine's mutex, unless it says otherwise.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "flow/outbox.h"
#include "wire/packet.h"

namespace velo::engine {

class SentReferences : public flow::OutboxShare {
 public:
    // count: of the peer, in its segment, which outlives this or is replaced by forget().
    void follow(const std::atomic<std::uint32_t>& count) { count_ = &count; }
    // The peer has ended. Another process may take its place.
    void forget() {
        sent = read = look_at = 0;
        told_.store(0, std::memory_order_relaxed);
        count_ = nullptr;
        last = before_last = {};
        last_chunk = {};
    }

    // The peer's count as its REF says, modulo 2^32: who says nothing for 2^32 messages has not read them.
    // Under the gate.
    void tell(std::uint32_t count) {
        const std::uint64_t before = told_.load(std::memory_order_relaxed);
        told_.store(before + (count - static_cast<std::uint32_t>(before)), std::memory_order_release);
    }
    // The last one that it has read, if it is one of the last two. Under the gate and the mutex.
    wire::Reference read_last() const {
        const std::uint64_t unread = sent - told_.load(std::memory_order_acquire);
        return unread == 0 ? last : unread == 1 ? before_last : wire::Reference{};
    }
    // acquire, as in look: what it read comes before what is stored there next.
    void note_told() { note(sent - told_.load(std::memory_order_acquire)); }
    void look() {
        if (count_ == nullptr) return;
        note(static_cast<std::uint32_t>(sent) - count_->load(std::memory_order_acquire));
    }

    wire::Reference last{}, before_last{};  // that were sent
    flow::Outbox::Chunk last_chunk;         // that was allocated

 private:
    // Never more than it was before: a peer that says so lies, or has said it earlier.
    void note(std::uint64_t unread) { read = sent - std::min(unread, this->unread()); }

    std::atomic<std::uint64_t> told_{0};
    const std::atomic<std::uint32_t>* count_ = nullptr;
};

}  // namespace velo::engine
