#include "flow/ledger.h"

#include "flow/backlog.h"

namespace velo::flow {

using wire::PacketKind;

namespace {

// A control packet leaves.
void count(Counters& counters, PacketKind kind, std::uint32_t value) {
    switch (kind) {
        case PacketKind::kCredit:
            ++counters.credit_packets;
            counters.credits_in_packets += value;
            break;
        case PacketKind::kRequest:
            ++counters.requests;
            break;
        case PacketKind::kResponse:
            ++counters.responses;
            break;
        case PacketKind::kHello:
            ++counters.hellos;
            break;
        case PacketKind::kRelease:
            ++counters.releases;
            break;
        case PacketKind::kLeave:
            ++counters.leaves;
            break;
        default:
            break;
    }
}

}  // namespace

void Ledger::carry(PeerIndex to, PacketKind kind, std::uint32_t value) {
    count(policy_.counters(), kind, value);
    Account& account = carrier_.account(to);
    account.flow = flow_of(to);
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
    if (credits > 0) {
        ++policy_.counters().piggybacks;
        policy_.counters().piggybacked_credits += credits;
    }
    return credits;
}

void Ledger::credited(Account& from, std::uint32_t credits) {
    policy_.credit_received(from.flow, credits);
    carrier_.entered(from, PacketKind::kData, credits);
    if (from.waits || control_waiting(from)) flush(from);
}

bool Ledger::flush(Account& to) {
    if (control_waiting(to) && credits(to) > 0) extensions_.requests->send_waiting_control(to.flow, *this);
    return to.waits = carrier_.send_queued(to);
}

void Ledger::backlogged(const Account& from) {
    if (extensions_.backlog != nullptr)
        extensions_.backlog->backlogged_data_retrieved(from.flow, *this);
    else
        policy_.data_retrieved(from.flow, *this);
}

bool Ledger::control_retrieved(Account& from, PacketKind kind, std::uint32_t value) {
    Requests* const requests = extensions_.requests;
    Contact* const contact = extensions_.contact;
    if (kind == PacketKind::kRequest || kind == PacketKind::kResponse) {
        if (requests == nullptr) return false;
        if (kind == PacketKind::kRequest)
            requests->request_retrieved(from.flow, *this);
        else
            requests->response_retrieved(from.flow, value, *this);
    } else if (contact != nullptr) {
        contact->contact_retrieved(from.peer, kind, value, *this);
    } else {
        if (kind != PacketKind::kCredit) return false;
        policy_.credit_received(from.flow, value);
    }
    if (policy_.offended()) return false;
    carrier_.entered(from, kind, value);
    follow(from);
    return true;
}

void Ledger::follow(Account& from) {
    from.flow = flow_of(from.peer);
    const bool left = flush(from);
    if (!on_demand()) return;
    if (left) extensions_.contact->credit_wanted(from.peer, *this);
    extensions_.contact->control_flushed(*this);
}

bool Ledger::departed(Account& from) {
    if (!policy_.departed(from.peer, *this)) return false;
    from.waits = false;
    if (delayed_to() == from.peer) {
        delayed_to_.store(kNobody, std::memory_order_relaxed);
        delayed_credits_ = 0;
    }
    from.flow = flow_of(from.peer);
    if (on_demand()) extensions_.contact->control_flushed(*this);
    return true;
}

}  // namespace velo::flow
