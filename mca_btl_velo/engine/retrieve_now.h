// The way of a message that needs nothing else, from the mailbox up, inline.
#pragma once

#include <cstring>
#include <mutex>

#include "engine/retrieval.h"
#include "platform/failure.h"

namespace velo::engine {

// Packets handled by one poll at most, so that the upper layer gets to act on what has come.
inline constexpr int kBatch = 256;

inline int Retrieval::drain_now(Domain& domain) {
    int handled = 0;
    batch_ = kBatch;
    while (handled < batch_ && !stopped_) {
        const std::uint64_t word = domain.reader.word();
        int packets = 0;
        if (domain.reader.is_plain(word)) [[likely]]
            packets = try_retrieve_fast(domain, word);
        else if (domain.reader.is_plain_reference(word))
            packets = try_retrieve_reference_fast(domain, word);
        if (packets == 0) packets = domain.reader.is_header(word) ? retrieve_other(domain, word) : 0;
        if (packets == 0) break;
        handled += packets;
    }
    if (handled > 0) {
        domain.reader.publish();
    } else {
        release_delayed_credit(domain);
        domain.reader.fetch_awaited();
    }
    return handled;
}

// The sender of a run that is plain, if it is known and nothing else is due; nullptr: look closer.
inline Peer* Retrieval::plain_sender(const Domain& domain, const wire::Header& header) {
    if (domain.reader.position() >= domain.plain_until || header.source >= domain.senders ||
        with_.faults.active()) [[unlikely]]
        return nullptr;
    Peer* const peer = peers_.find(domain.first_peer + header.source);
    if (peer == nullptr || peer->arriving != Incoming::State::kIdle) [[unlikely]]
        return nullptr;
    return peer;
}

// Retrieves a plain message: a known sender, one run, not over the end of the ring. Nearly all are. 0: no
// effect.
inline int Retrieval::try_retrieve_fast(Domain& domain, std::uint64_t word) {
    const wire::Header header = wire::Header::unpack(word);
    Peer* const peer = plain_sender(domain, header);
    if (peer == nullptr) [[unlikely]]
        return 0;
    if (header.length <= wire::kPayloadBytes) return retrieve_plain(domain, *peer, header, 1);
    const std::uint32_t packets = wire::packets_in_run(header.length);
    if (!domain.reader.in_one_piece(packets) || header.length > buffers_.buffer_bytes()) [[unlikely]]
        return 0;
    return retrieve_plain(domain, *peer, header, packets);
}

inline int Retrieval::retrieve_plain(Domain& domain, Peer& peer, const wire::Header& header,
                                     std::uint32_t packets) {
    mailbox::Reader<>& reader = domain.reader;
    release_delayed_credit(domain);
    await_retrieval(peer, packets);
    hand_up(peer, header.tag, reader.payload(), header.length);
    reader.advance(packets);
    std::lock_guard lock(mutex_);
    account(peer, packets, false, 0);
    return static_cast<int>(packets);
}

// What its lines can do while the run is looked at: the next is under way, or an answer is likely.
inline void Retrieval::await_retrieval(Peer& peer, std::uint32_t packets) {
    peer.domain.reader.fetch(packets);
    if (!peer.awaits_answer.load(std::memory_order_relaxed)) return;
    batch_ = 0;
    // Not with several threads: the place to prepare is moved under the lock.
    if (packets > 1 && !threads_ && with_.pace.is_latency_bound(peer)) peer.link.prepare(packets);
    peer.awaits_answer.store(false, std::memory_order_relaxed);
}

// Under the mutex.
inline void Retrieval::account(Peer& peer, std::uint32_t packets, bool waited, std::uint32_t credits) {
    const bool quiet = !waited && credits == 0 && peer.ledger().data_retrieved_if_quiet(peer, packets);
    if (!quiet && !peer.ledger().data_retrieved(peer, packets, waited, credits)) [[unlikely]]
        throw Failure(VELO_ERR_PROTOCOL, "a peer has sent more packets than it has credits for");
    assert_invariants();
}

inline void Retrieval::hand_up(Peer& peer, std::uint8_t tag, std::byte* data, std::size_t bytes) {
    if (tag == kSinkTag && sink_ != nullptr) return sink_->arrived(peer, data, bytes);
    arriving_ = peer.index;
    message_(context_, tag, data, bytes);
}

}  // namespace velo::engine
