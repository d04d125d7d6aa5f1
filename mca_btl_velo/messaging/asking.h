// The receiver's side of messages that are held back at their senders: what waits here asks for them. Of the
// receives with one pattern the first one has asked each holder, always: when it gets a message, the next one
// asks before the holder hears of that. Under the messenger's mutex.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "matching/posted_queue.h"
#include "messaging/control_channel.h"
#include "messaging/peeks.h"
#include "messaging/unmatched.h"

namespace velo::messaging {

class Asking {
 public:
    Asking(ControlChannel& channel, const matching::PostedQueue& posted, Unmatched& unmatched)
        : channel_(channel), posted_(posted), unmatched_(unmatched) {}

    // A peer holds something back.
    bool any() const { return !holders_.empty(); }
    void departed(Peer& peer);

    // A receive waits now.
    void posted(const matching::Posted& receive) {
        if (posted_.front(receive.pattern) == &receive) ask_all(receive);
    }
    // The first receive of that pattern waits no longer.
    void ask_for_next(const matching::Key& pattern) {
        if (const matching::Posted* next = posted_.front(pattern)) ask_all(*next);
    }
    // The peer does not hold the message with this id any more.
    void forget(const Peer& peer, std::uint64_t id) {
        if (peeks_.empty()) [[likely]]
            return;
        if (const auto peeks = peeks_.find(peer.index); peeks != peeks_.end()) peeks->second.forget(id);
    }

    // What a probe is told. False: nothing is known of a message that the pattern matches; the holders have
    // been asked.
    bool probe(const matching::Key& pattern, matching::Key* key, std::size_t* bytes);
    // Takes what a probe was told of. nullptr: nothing is known. Otherwise end_take has to follow until it is
    // true: nobody can tell before whether the message is still there.
    Peer* begin_take(const matching::Key& pattern);
    // `taken`: the message, nullptr if it was no longer there.
    bool end_take(const Peer& holder, const matching::Key& pattern, Parked** taken);

    // What the holder says.
    void holding_arrived(Peer& from, bool holds);
    // kAccepted: the first receive that matches gets the message, before the answer is said.
    Answer answer_to(const OfferHeader& offer) const;
    void answer(Peer& to, const OfferHeader& offer, Answer verdict);
    void seen_arrived(Peer& from, const ProbeHeader& seen);
    void taken_arrived(Peer& from, const ProbeHeader& taken);

 private:
    void ask(Peer& holder, const matching::Posted& receive);
    void ask_all(const matching::Posted& receive);
    Peek* peek(Peer& holder, const matching::Key& pattern);
    Peek* seen_by_probe(const matching::Key& pattern, Peer** holder);
    Peek* find_peek(const Peer& holder, const matching::Key& pattern, Peek::State state);

    ControlChannel& channel_;
    const matching::PostedQueue& posted_;
    Unmatched& unmatched_;
    std::vector<Peer*> holders_;
    std::unordered_map<std::uint32_t, Peeks> peeks_;  // by index of the holder
};

}  // namespace velo::messaging
