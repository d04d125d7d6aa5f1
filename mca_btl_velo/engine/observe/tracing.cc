#include "engine/observe/tracing.h"

#include <algorithm>
#include <utility>

namespace velo::engine {
namespace {

using trace::Kind;
using wire::PacketKind;

constexpr std::uint64_t kFlushEveryNs = 1'000'000'000;

std::uint32_t clamp(std::uint64_t value) {
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(value, UINT32_MAX));
}
// The growth of a counter since it was looked at last.
std::uint32_t growth(std::uint64_t now, std::uint64_t& seen) {
    return clamp(now - std::exchange(seen, now));
}

}  // namespace

void Tracing::open(const flow::Policy& policy, const trace::Destination& destination,
                   const trace::FileHeader& header) {
    policy_ = &policy;
    recorder_.emplace(destination, header);
    seen_ = policy_->counters();
    intended_.resize(policy_->config().total_peers());
    for (flow::PeerIndex peer = 0; peer < intended_.size(); ++peer) intended_[peer] = policy_->intended(peer);
}

void Tracing::idle(std::uint64_t now_ns) {
    if (on() && now_ns - recorder_->flushed_ns() >= kFlushEveryNs) recorder_->flush();
}

void Tracing::add(Kind kind, const Peer& peer, std::uint32_t count, std::uint32_t extra) {
    std::uint32_t credits = trace::kNone, held = trace::kNone;
    if (peer.policy().limited()) {
        credits = peer.ledger().credits(peer);
        held = peer.counts().current;
    }
    recorder_->add(kind, peer.index, count, credits, held, extra);
}

void Tracing::stall(const Peer& peer, Kind kind, std::uint64_t count, std::uint64_t extra) {
    if (on()) add(kind, peer, clamp(count), clamp(extra));
}

void Tracing::board(Kind kind, std::uint64_t count, std::uint32_t extra) {
    if (on()) recorder_->add(kind, trace::kNone, clamp(count), trace::kNone, trace::kNone, extra);
}

void Tracing::mailbox(std::uint64_t occupied, std::uint32_t slots) {
    if (!on() || (occupied == 0 && mailbox_was_empty_)) return;
    mailbox_was_empty_ = occupied == 0;
    recorder_->add(Kind::kMailbox, trace::kNone, clamp(occupied),
                   policy_->limited() ? policy_->available() : trace::kNone, trace::kNone, slots);
}

void Tracing::record_connected(const Peer& peer) {
    add(Kind::kPeer, peer, static_cast<std::uint32_t>(peer.name),
        static_cast<std::uint32_t>(peer.name >> 32));
    if (&peer.policy() == policy_ && intended_[peer.index] != 0) {
        recorder_->add(Kind::kIntended, peer.index, intended_[peer.index], trace::kNone, trace::kNone, 0);
    }
}

void Tracing::record_sent(const Peer& peer, std::uint32_t packets) {
    if (&peer.policy() != policy_) return add(Kind::kSend, peer, packets, 0);
    std::uint32_t piggyback = growth(policy_->counters().piggybacked_credits, seen_.piggybacked_credits);
    add(Kind::kSend, peer, packets, piggyback);
    record_policy_changes(peer);
}

void Tracing::record_emitted(const Peer& peer, PacketKind kind, std::uint32_t value) {
    switch (kind) {
        case PacketKind::kCredit:
            add(Kind::kCreditSent, peer, value, peer.policy().available());
            break;
        case PacketKind::kRequest:
            add(Kind::kRequestSent, peer, 0, 0);
            break;
        case PacketKind::kResponse:
            add(Kind::kResponseSent, peer, value, 0);
            break;
        default:
            add(Kind::kContactSent, peer, value, static_cast<std::uint32_t>(kind));
    }
    record_policy_changes(peer);
}

void Tracing::record_received(const Peer& peer, PacketKind kind, std::uint32_t value) {
    switch (kind) {
        case PacketKind::kData:
            add(Kind::kPiggybackReceived, peer, value, 0);
            break;
        case PacketKind::kCredit:
            add(Kind::kCreditReceived, peer, value, 0);
            break;
        case PacketKind::kRequest:
            add(Kind::kRequestReceived, peer, 0, 0);
            break;
        case PacketKind::kResponse:
            add(Kind::kResponseReceived, peer, value, 0);
            break;
        default:
            add(Kind::kContactReceived, peer, value, static_cast<std::uint32_t>(kind));
    }
}

// Steals and growth happen inside the policy, always on the occasion of a packet for the peer that gains.
void Tracing::record_policy_changes(const Peer& peer) {
    if (&peer.policy() != policy_) return;
    const flow::Counters& now = policy_->counters();
    if (std::uint32_t buffers = growth(now.grown_buffers, seen_.grown_buffers); buffers > 0)
        add(Kind::kGrown, peer, buffers, 0);
    if (now.steals == seen_.steals) return;
    seen_.steals = now.steals;
    recorder_->add(Kind::kSteal, trace::kNone, growth(now.stolen_slots, seen_.stolen_slots), trace::kNone,
                   trace::kNone, clamp(now.steals));
    for (flow::PeerIndex index = 0; index < intended_.size(); ++index) {
        std::uint32_t old = std::exchange(intended_[index], policy_->intended(index));
        if (old == intended_[index]) continue;
        recorder_->add(Kind::kIntended, index, intended_[index], trace::kNone, trace::kNone, old);
    }
}

}  // namespace velo::engine
