// The sender's side of messages that are held back. Everything here is called under the mutex, and sends
// under it too: what leaves the backlog must not be overtaken by what never was in it.
#include <algorithm>
#include <cstring>

#include "messaging/messenger.h"
#include "platform/failure.h"

namespace velo::messaging {
namespace {

RendezvousHeader rendezvous_of(const Held& held, Kind kind) {
    return {{held.key, 0, kind, 0}, held.id, reinterpret_cast<std::uint64_t>(held.data), held.bytes};
}

std::uint8_t open_parts(const matching::Key& pattern) {
    return static_cast<std::uint8_t>((pattern.source == matching::kAnySource ? kOpenSource : 0) |
                                     (pattern.tag == matching::kAnyTag ? kOpenTag : 0));
}

}  // namespace

velo_status Messenger::hold(Peer& to, const matching::Key& key, const std::byte* data, std::size_t bytes,
                            velo_message_send* send) {
    Share& share = share_of(to);
    if (share.is_gone) {
        engine_.large().failed(to, 0);
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
    if (share.backlog == nullptr) {
        share.backlog = std::make_unique<Backlog>();
        Header begin{{0, 0, 1}, 0, Kind::kHolding, 0};
        say(to, begin, begin);
    }
    share.backlog->push(std::move(held));
    state_.held_most = std::max(state_.held_most, ++state_.held);
    offer(to, key);
    return VELO_QUEUED;
}

// Headers are free again: as many messages leave in their turn. One that is offered is waited for, since
// those behind it must not arrive before it.
void Messenger::drain(Peer& to) {
    Share& share = share_of(to);
    Backlog& backlog = *share.backlog;
    for (Held* held; share.headers > 0 && (held = backlog.oldest()) != nullptr && !held->offered;) {
        const RendezvousHeader rendezvous = rendezvous_of(*held, Kind::kRendezvous);
        velo_message_send* send = held->send;
        release_held(to, held, backlog);
        --share.headers;
        send->takes_header = true;
        send->placement = nullptr;
        expect(send, 2);
        std::memcpy(send->header, &rendezvous, sizeof rendezvous);
        // Its DONE is not heard before the mutex is free, so it cannot be complete now.
        if (const velo_status status = queue(to, sizeof rendezvous, nullptr, 0, send); status != VELO_QUEUED)
            throw Failure(status, "a message that was held back cannot be sent");
    }
    stop_holding_if_empty(to);
}

// Only now may its receiver end it: until it leaves the backlog, the send must not go back to the program.
void Messenger::release_held(Peer& to, Held* held, Backlog& backlog) {
    awaited_.tell(held->id, to.index);
    backlog.remove(held);
    --state_.held;
}

void Messenger::stop_holding_if_empty(Peer& to) {
    Share& share = share_of(to);
    if (!share.backlog->empty()) return;
    share.backlog.reset();
    Header end{{0, 0, 0}, 0, Kind::kHolding, 0};
    say(to, end, end);
}

// Whatever a receive that a message with this key matches may have now.
void Messenger::offer(Peer& to, const matching::Key& key) {
    Backlog& backlog = *share_of(to).backlog;
    while (const auto next = backlog.next_offer(key)) {
        OfferHeader offer{rendezvous_of(*next->message, Kind::kOffer), next->ask.ticket};
        offer.rendezvous.header.unused = open_parts(next->ask.pattern);
        say(to, offer.rendezvous.header, offer);
    }
}

// Without a backlog: the receiver will ask again should there be one.
void Messenger::ask_arrived(Peer& from, const AskHeader& ask) {
    Backlog* backlog = share_of(from).backlog.get();
    if (backlog == nullptr) return;
    backlog->ask({ask.header.key, ask.ticket});
    if (const Held* first = backlog->find(ask.header.key)) offer(from, first->key);
}

// What was offered is still the first match: older ones may have left, none has come before it.
void Messenger::answer_arrived(Peer& from, const AnswerHeader& answer) {
    Backlog* backlog = share_of(from).backlog.get();
    Held* held = backlog == nullptr ? nullptr : backlog->find(answer.header.key);
    if (held == nullptr || !held->offered || held->id != answer.id)
        throw Failure(VELO_ERR_PROTOCOL, "an answer to an offer that was not made has come");
    const matching::Key key = held->key;
    held->offered = false;
    if (answer.verdict != Answer::kLater) backlog->answered({answer.header.key, answer.ticket});
    if (answer.verdict == Answer::kAccepted) release_held(from, held, *backlog);
    offer(from, key);
    drain(from);
}

void Messenger::peek_arrived(Peer& from, const ProbeHeader& peek) {
    Backlog* backlog = share_of(from).backlog.get();
    const Held* first = backlog == nullptr ? nullptr : backlog->find(peek.header.key);
    ProbeHeader seen{{peek.header.key, 0, Kind::kSeen, 0}, 0, 0, 0, 0, 0};
    if (first != nullptr && !first->offered) {
        seen.source = first->key.source;
        seen.tag = first->key.tag;
        seen.id = first->id;
        seen.bytes = first->bytes;
    }
    say(from, seen.header, seen);
}

void Messenger::take_arrived(Peer& from, const ProbeHeader& take) {
    Backlog* backlog = share_of(from).backlog.get();
    Held* first = backlog == nullptr ? nullptr : backlog->find(take.header.key);
    ProbeHeader taken{{take.header.key, 0, Kind::kTaken, 0}, 0, 0, 0, 0, 0};
    if (first == nullptr || first->offered || first->id != take.id) return say(from, taken.header, taken);
    taken.source = first->key.source;
    taken.tag = first->key.tag;
    taken.id = take.id;
    taken.bytes = first->bytes;
    taken.address = reinterpret_cast<std::uint64_t>(first->data);
    release_held(from, first, *backlog);
    say(from, taken.header, taken);
    drain(from);
}

}  // namespace velo::messaging
