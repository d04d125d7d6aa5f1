#include "flow/ledger.h"

namespace velo::flow {

using wire::PacketKind;

void Ledger::carry(PeerIndex to, PacketKind kind, std::uint32_t value) {
    policy_.count_control(kind, value);
    Account& account = carrier_.account(to);
    account.flow = policy_.flow_of(to);
    carrier_.carry(account, kind, value);
}

void Ledger::release() {
    const PeerIndex to = delayed_to_.exchange(kNobody, std::memory_order_relaxed);
    if (to != kNobody) carry(to, PacketKind::kCredit, std::exchange(delayed_credits_, 0));
}

void Ledger::emit(PeerIndex to, PacketKind kind, std::uint32_t value) {
    if (kind != PacketKind::kCredit || !delays_) {
        release();
        return carry(to, kind, value);
    }
    if (delayed_to() != to || delayed_credits_ + value > kMaxQuota) release();
    delayed_to_.store(to, std::memory_order_relaxed);
    delayed_credits_ += value;
}

std::uint32_t Ledger::attach_due(const Account& to) {
    std::uint32_t credits = policy_.piggyback(to.flow, *this);
    // What was delayed may just have left: before a request to another peer.
    if (delayed_to() == to.peer && credits + delayed_credits_ <= kMaxQuota) [[unlikely]] {
        delayed_to_.store(kNobody, std::memory_order_relaxed);
        credits += std::exchange(delayed_credits_, 0);
    }
    if (credits > 0) policy_.count_piggyback(credits);
    return credits;
}

void Ledger::credited(Account& from, std::uint32_t credits) {
    policy_.credit_received(from.flow, credits);
    carrier_.entered(from, PacketKind::kData, credits);
    if (from.waits || policy_.control_waiting(from.flow)) flush(from);
}

bool Ledger::flush(Account& to) {
    if (policy_.control_waiting(to.flow) && credits(to) > 0) policy_.send_waiting_control(to.flow, *this);
    return to.waits = carrier_.send_queued(to);
}

bool Ledger::control_retrieved(Account& from, PacketKind kind, std::uint32_t value) {
    switch (kind) {
        case PacketKind::kCredit:
            if (policy_.on_demand())
                policy_.credit_retrieved(from.peer, value, *this);
            else
                policy_.credit_received(from.flow, value);
            break;
        case PacketKind::kRequest:
            policy_.request_retrieved(from.flow, *this);
            break;
        case PacketKind::kResponse:
            policy_.response_retrieved(from.flow, value, *this);
            break;
        default:
            if (!policy_.on_demand()) return false;
            policy_.contact_retrieved(from.peer, kind, value, *this);
    }
    if (policy_.offended()) return false;
    carrier_.entered(from, kind, value);
    follow(from);
    return true;
}

void Ledger::follow(Account& from) {
    from.flow = policy_.flow_of(from.peer);
    const bool left = flush(from);
    if (!policy_.on_demand()) return;
    if (left) policy_.credit_wanted(from.peer, *this);
    policy_.control_flushed(*this);
}

bool Ledger::departed(Account& from) {
    if (!policy_.departed(from.peer, *this)) return false;
    from.waits = false;
    if (delayed_to() == from.peer) {
        delayed_to_.store(kNobody, std::memory_order_relaxed);
        delayed_credits_ = 0;
    }
    from.flow = policy_.flow_of(from.peer);
    policy_.control_flushed(*this);
    return true;
}

}  // namespace velo::flow
