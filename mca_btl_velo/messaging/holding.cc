#include "messaging/holding.h"

#include <algorithm>
#include <cstring>

#include "messaging/send_events.h"
#include "platform/failure.h"

namespace velo::messaging {
namespace {

RendezvousHeader rendezvous_of(const Held& held, Kind kind, std::uint8_t unused = 0) {
    return {{held.key, 0, kind, unused}, held.id, reinterpret_cast<std::uint64_t>(held.data), held.bytes};
}

std::uint8_t open_parts(const matching::Key& pattern) {
    return static_cast<std::uint8_t>((pattern.source == matching::kAnySource ? kOpenSource : 0) |
                                     (pattern.tag == matching::kAnyTag ? kOpenTag : 0));
}

// About a message that a probe has found, or about none.
ProbeHeader reply(Kind kind, const matching::Key& pattern, const Held* found) {
    if (found == nullptr) return {{pattern, 0, kind, 0}, 0, 0, 0, 0, 0};
    return {{pattern, 0, kind, 0}, found->key.source,
            found->key.tag,        found->id,
            found->bytes,          kind == Kind::kTaken ? reinterpret_cast<std::uint64_t>(found->data) : 0};
}

}  // namespace

Backlog* Holding::backlog_of(const Peer& peer) {
    const auto found = backlogs_.find(peer.index);
    return found == backlogs_.end() ? nullptr : &found->second;
}

velo_status Holding::hold(Peer& to, const matching::Key& key, const std::byte* data, std::size_t bytes,
                          velo_message_send* send) {
    Shares::Share& share = shares_.of(to);
    if (share.is_gone) {
        channel_.failed(to);
        return VELO_ERR_REMOTE;
    }
    auto held = std::make_unique<Held>();
    held->key = key;
    held->send = send;
    held->id = awaited_.add(send, AwaitedSends::kNobody);
    held->data = data;
    held->bytes = bytes;
    // The receiver's DONE, unless it leaves in its turn.
    expect(send, 1);
    send->takes_header = false;
    send->placement = nullptr;
    if (!share.holds) {
        share.holds = true;
        channel_.say(to, Header{{0, 0, 1}, 0, Kind::kHolding, 0});
    }
    Backlog& backlog = backlogs_[to.index];
    backlog.push(std::move(held));
    counts_.held_most = std::max(counts_.held_most, ++counts_.held);
    offer(to, backlog, key);
    return VELO_QUEUED;
}

// A message that is offered is waited for: those behind it must not arrive before it.
void Holding::drain(Peer& to) {
    Backlog& backlog = *backlog_of(to);
    Shares::Share& share = shares_.of(to);
    for (Held* held; share.headers > 0 && (held = backlog.oldest()) != nullptr && !held->offered;) {
        const RendezvousHeader rendezvous = rendezvous_of(*held, Kind::kRendezvous);
        velo_message_send* send = held->send;
        release(to, backlog, held);
        --share.headers;
        expect_answer(send);
        std::memcpy(send->header, &rendezvous, sizeof rendezvous);
        channel_.send_header(to, send);
    }
    if (!backlog.empty()) return;
    backlogs_.erase(to.index);
    share.holds = false;
    channel_.say(to, Header{{0, 0, 0}, 0, Kind::kHolding, 0});
}

// The receiver may end it from now on. Before, the program must not get the send back.
void Holding::release(Peer& to, Backlog& backlog, Held* held) {
    awaited_.tell(held->id, to.index);
    backlog.remove(held);
    --counts_.held;
}

void Holding::departed(Peer& peer) {
    Backlog* backlog = backlog_of(peer);
    if (backlog == nullptr) return;
    while (Held* held = backlog->oldest()) release(peer, *backlog, held);
    backlogs_.erase(peer.index);
}

// Offers each receive that a message with this key matches what it may have now.
void Holding::offer(Peer& to, Backlog& backlog, const matching::Key& key) {
    while (const auto next = backlog.next_offer(key)) {
        const std::uint8_t open = open_parts(next->ask.pattern);
        channel_.say(to, OfferHeader{rendezvous_of(*next->message, Kind::kOffer, open), next->ask.ticket});
    }
}

// Without a backlog: the receiver will ask again should there be one.
void Holding::ask_arrived(Peer& from, const AskHeader& ask) {
    Backlog* backlog = backlog_of(from);
    if (backlog == nullptr) return;
    backlog->ask({ask.header.key, ask.ticket});
    if (const Held* first = backlog->find(ask.header.key)) offer(from, *backlog, first->key);
}

// What was offered is still the first match: older ones may have left, none has come before it.
void Holding::answer_arrived(Peer& from, const AnswerHeader& answer) {
    Backlog* backlog = backlog_of(from);
    Held* held = backlog == nullptr ? nullptr : backlog->find(answer.header.key);
    if (held == nullptr || !held->offered || held->id != answer.id)
        throw Failure(VELO_ERR_PROTOCOL, "an answer to an offer that was not made has come");
    const matching::Key key = held->key;
    held->offered = false;
    if (answer.verdict != Answer::kLater) backlog->answered({answer.header.key, answer.ticket});
    if (answer.verdict == Answer::kAccepted) release(from, *backlog, held);
    offer(from, *backlog, key);
    drain(from);
}

void Holding::peek_arrived(Peer& from, const ProbeHeader& peek) {
    Backlog* backlog = backlog_of(from);
    const Held* first = backlog == nullptr ? nullptr : backlog->find(peek.header.key);
    if (first != nullptr && first->offered) first = nullptr;
    channel_.say(from, reply(Kind::kSeen, peek.header.key, first));
}

void Holding::take_arrived(Peer& from, const ProbeHeader& take) {
    Backlog* backlog = backlog_of(from);
    Held* first = backlog == nullptr ? nullptr : backlog->find(take.header.key);
    if (first == nullptr || first->offered || first->id != take.id)
        return channel_.say(from, reply(Kind::kTaken, take.header.key, nullptr));
    const ProbeHeader taken = reply(Kind::kTaken, take.header.key, first);
    release(from, *backlog, first);
    channel_.say(from, taken);
    drain(from);
}

}  // namespace velo::messaging
