#include "messaging/asking.h"

#include <algorithm>

namespace velo::messaging {
namespace {

matching::Key pattern_of(const RendezvousHeader& offer) {
    matching::Key pattern = offer.header.key;
    if (offer.header.unused & kOpenSource) pattern.source = matching::kAnySource;
    if (offer.header.unused & kOpenTag) pattern.tag = matching::kAnyTag;
    return pattern;
}

}  // namespace

void Asking::holding_arrived(Peer& from, bool holds) {
    const auto place = std::find(holders_.begin(), holders_.end(), &from);
    if (!holds) {
        if (place != holders_.end()) holders_.erase(place);
        if (const auto peeks = peeks_.find(from.index); peeks != peeks_.end()) peeks->second.stop();
        return;
    }
    if (place == holders_.end()) holders_.push_back(&from);
    posted_.for_each_front([this, &from](const matching::Posted& receive) { ask(from, receive); });
}

void Asking::departed(Peer& peer) {
    std::erase(holders_, &peer);
    if (const auto peeks = peeks_.find(peer.index); peeks != peeks_.end()) peeks->second.depart();
}

void Asking::ask(Peer& holder, const matching::Posted& receive) {
    channel_.say(holder, AskHeader{{receive.pattern, 0, Kind::kAsk, 0}, receive.sequence});
}

void Asking::ask_all(const matching::Posted& receive) {
    for (Peer* holder : holders_) ask(*holder, receive);
}

// An older receive that matches has asked as well, and gets this message or one that was sent before it.
Answer Asking::answer_to(const OfferHeader& offer) const {
    const matching::Posted* first = posted_.find(offer.rendezvous.header.key);
    if (first != nullptr && first->sequence == offer.ticket) return Answer::kAccepted;
    const matching::Posted* asker = posted_.front(pattern_of(offer.rendezvous));
    return asker != nullptr && asker->sequence == offer.ticket ? Answer::kLater : Answer::kGone;
}

void Asking::answer(Peer& to, const OfferHeader& offer, Answer verdict) {
    if (verdict == Answer::kAccepted) forget(to, offer.rendezvous.id);
    channel_.say(
        to,
        AnswerHeader{
            {pattern_of(offer.rendezvous), 0, Kind::kAnswer, 0}, offer.rendezvous.id, offer.ticket, verdict});
}

// What is known of the first message that the pattern matches at the holder; asks unless it has.
Peek* Asking::peek(Peer& holder, const matching::Key& pattern) {
    Peek* known = peeks_[holder.index].of(pattern);
    if (known == nullptr || known->state != Peek::State::kNothing) return known;
    if (channel_.is_crowded()) return known;  // a later probe asks
    known->state = Peek::State::kAsked;
    channel_.say(holder, ProbeHeader{{pattern, 0, Kind::kPeek, 0}, 0, 0, 0, 0, 0});
    return known;
}

Peek* Asking::find_peek(const Peer& holder, const matching::Key& pattern, Peek::State state) {
    const auto peeks = peeks_.find(holder.index);
    Peek* const peek = peeks == peeks_.end() ? nullptr : peeks->second.find(pattern);
    return peek != nullptr && peek->state == state ? peek : nullptr;
}

Peek* Asking::seen_by_probe(const matching::Key& pattern, Peer** holder) {
    for (Peer* each : holders_) {
        Peek* known = peek(*each, pattern);
        if (known == nullptr || known->state != Peek::State::kSeen) continue;
        if (posted_.find(known->found) != nullptr) {
            // It belongs to a receive, or one before it does: neither is the probe's.
            known->state = Peek::State::kNothing;
            continue;
        }
        *holder = each;
        return known;
    }
    return nullptr;
}

bool Asking::probe(const matching::Key& pattern, matching::Key* key, std::size_t* bytes) {
    Peer* holder;
    const Peek* seen = seen_by_probe(pattern, &holder);
    if (seen == nullptr) return false;
    *key = seen->found;
    *bytes = seen->bytes;
    return true;
}

void Asking::seen_arrived(Peer& from, const ProbeHeader& seen) {
    Peek* peek = find_peek(from, seen.header.key, Peek::State::kAsked);
    if (peek == nullptr) return;
    peek->state = seen.id != 0 ? Peek::State::kSeen : Peek::State::kNothing;
    peek->found = {seen.header.key.context, seen.source, seen.tag};
    peek->bytes = seen.bytes;
    peek->id = seen.id;
}

Peer* Asking::begin_take(const matching::Key& pattern) {
    Peer* holder;
    Peek* seen = seen_by_probe(pattern, &holder);
    if (seen == nullptr) return nullptr;
    seen->state = Peek::State::kTaking;
    channel_.say(*holder, ProbeHeader{{pattern, 0, Kind::kTake, 0}, 0, 0, seen->id, 0, 0});
    return holder;
}

bool Asking::end_take(const Peer& holder, const matching::Key& pattern, Parked** taken) {
    const Peek* peek = find_peek(holder, pattern, Peek::State::kTaken);
    if (peek != nullptr) *taken = peeks_[holder.index].end(peek);
    return peek != nullptr;
}

void Asking::taken_arrived(Peer& from, const ProbeHeader& taken) {
    Peek* peek = find_peek(from, taken.header.key, Peek::State::kTaking);
    if (peek == nullptr) return;
    peek->state = Peek::State::kTaken;
    peek->taken = nullptr;
    if (taken.id == 0) return;
    const matching::Key key{taken.header.key.context, taken.source, taken.tag};
    peek->taken = unmatched_.park_header(
        parked_like(&from, key, Kind::kRendezvous, taken.bytes, taken.id, taken.address));
    forget(from, taken.id);
}

}  // namespace velo::messaging
