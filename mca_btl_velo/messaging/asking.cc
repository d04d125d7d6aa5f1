// The receiver's side of messages that are held back at their senders: what waits here asks for them. Of the
// receives with one pattern the first one has asked each holder, always: when it gets a message, the next one
// asks before the holder hears of that.
#include <algorithm>

#include "messaging/messenger.h"

namespace velo::messaging {
namespace {

matching::Key pattern_of(const RendezvousHeader& offer) {
    matching::Key pattern = offer.header.key;
    if (offer.header.unused & kOpenSource) pattern.source = matching::kAnySource;
    if (offer.header.unused & kOpenTag) pattern.tag = matching::kAnyTag;
    return pattern;
}

}  // namespace

void Messenger::holding_arrived(Peer& from, bool holds) {
    const auto place = std::find(holders_.begin(), holders_.end(), &from);
    if (!holds) {
        if (place != holders_.end()) holders_.erase(place);
        note_holders();
        share_of(from).peeks.stop();
        return;
    }
    if (place == holders_.end()) holders_.push_back(&from);
    note_holders();
    posted_.for_each_front([this, &from](const matching::Posted& receive) { ask(from, receive); });
}

void Messenger::ask(Peer& holder, const matching::Posted& receive) {
    AskHeader ask{{receive.pattern, 0, Kind::kAsk, 0}, receive.sequence};
    say(holder, ask.header, ask);
}

void Messenger::ask_all(const matching::Posted& receive) {
    for (Peer* holder : holders_) ask(*holder, receive);
}

void Messenger::ask_for_next(const matching::Key& pattern) {
    if (const matching::Posted* next = posted_.front(pattern)) ask_all(*next);
}

// An older receive that matches has asked as well, and gets this message or one that was sent before it.
Answer Messenger::answer_to(const OfferHeader& offer) const {
    const matching::Posted* first = posted_.find(offer.rendezvous.header.key);
    if (first != nullptr && first->sequence == offer.ticket) return Answer::kAccepted;
    const matching::Posted* asker = posted_.front(pattern_of(offer.rendezvous));
    return asker != nullptr && asker->sequence == offer.ticket ? Answer::kLater : Answer::kGone;
}

void Messenger::offer_arrived(Peer& from, const OfferHeader& offer) {
    const RendezvousHeader& rendezvous = offer.rendezvous;
    const Parked like = parked_like(from, rendezvous);
    velo_message_receive* receive = nullptr;
    {
        std::lock_guard lock(mutex_);
        Share& share = reached_share_of(from);
        share.there += rendezvous.header.returned;
        AnswerHeader answer{
            {pattern_of(rendezvous), 0, Kind::kAnswer, 0}, rendezvous.id, offer.ticket, answer_to(offer)};
        if (answer.verdict == Answer::kAccepted) {
            share.peeks.forget(like.id);
            ++state_.matched_at_once;
            receive = fetching(match(like.key));
        }
        say(from, answer.header, answer);
    }
    if (receive != nullptr) fetch(receive, like);
}

// What is known of the first message that the pattern matches at the holder; asks unless it has.
Peek* Messenger::peek(Peer& holder, const matching::Key& pattern) {
    Peek* known = share_of(holder).peeks.of(pattern);
    if (known == nullptr) return nullptr;
    if (known->state == Peek::State::kNothing) {
        if (many_notes_wait()) return known;  // a later probe asks: questions do not pile up
        known->state = Peek::State::kAsked;
        ProbeHeader question{{pattern, 0, Kind::kPeek, 0}, 0, 0, 0, 0, 0};
        say(holder, question.header, question);
    }
    return known;
}

Peek* Messenger::seen_by_probe(const matching::Key& pattern, Peer** holder) {
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

void Messenger::seen_arrived(Peer& from, const ProbeHeader& seen) {
    Peek* peek = share_of(from).peeks.find(seen.header.key);
    if (peek == nullptr || peek->state != Peek::State::kAsked) return;
    peek->state = seen.id != 0 ? Peek::State::kSeen : Peek::State::kNothing;
    peek->found = {seen.header.key.context, seen.source, seen.tag};
    peek->bytes = seen.bytes;
    peek->id = seen.id;
}

// Takes what a probe has seen. Waits for its sender's next progress: until then nobody can tell whether the
// message is still there.
Parked* Messenger::take_held(const matching::Key& pattern) {
    Peer* holder;
    {
        std::lock_guard lock(mutex_);
        // Something may have come since the caller looked; the next call finds it.
        if (unexpected_.find(pattern) != nullptr) return nullptr;
        Peek* seen = seen_by_probe(pattern, &holder);
        if (seen == nullptr) return nullptr;
        seen->state = Peek::State::kTaking;
        ProbeHeader take{{pattern, 0, Kind::kTake, 0}, 0, 0, seen->id, 0, 0};
        say(*holder, take.header, take);
    }
    for (;;) {
        engine_.progress();
        std::lock_guard lock(mutex_);
        Peek* peek = share_of(*holder).peeks.find(pattern);
        if (peek->state == Peek::State::kTaking) {
            if (engine_.failed()) return nullptr;
            continue;
        }
        return share_of(*holder).peeks.end(peek);
    }
}

void Messenger::taken_arrived(Peer& from, const ProbeHeader& taken) {
    Peek* peek = share_of(from).peeks.find(taken.header.key);
    if (peek == nullptr || peek->state != Peek::State::kTaking) return;
    peek->state = Peek::State::kTaken;
    peek->taken = nullptr;
    if (taken.id == 0) return;
    Parked like;
    like.key = {taken.header.key.context, taken.source, taken.tag};
    like.from = &from;
    like.generation = from.generation.load(std::memory_order_relaxed);
    like.bytes = taken.bytes;
    like.id = taken.id;
    like.address = taken.address;
    like.kind = Kind::kRendezvous;
    state_.headers_most = std::max(state_.headers_most, ++state_.headers);
    peek->taken = pool_.park(like, nullptr, 0);
    share_of(from).peeks.forget(taken.id);
}

}  // namespace velo::messaging
