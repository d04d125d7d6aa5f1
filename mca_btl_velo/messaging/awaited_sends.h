// The sends whose receivers will say when they are done. What travels is a number and no address: a peer that
// names a send which does not wait for it is found out.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "types/messages.h"

namespace velo::messaging {

class AwaitedSends {
 public:
    // `generation`: that of each place when it is first used.
    explicit AwaitedSends(std::uint32_t generation = 1) : first_(generation) {}

    // A receiver that does not know of the send yet, see tell.
    static constexpr std::uint32_t kNobody = UINT32_MAX;

    // The id of the send, to be told to `peer`.
    std::uint64_t add(velo_message_send* send, std::uint32_t peer) {
        if (free_.empty()) {
            free_.push_back(static_cast<std::uint32_t>(entries_.size()));
            entries_.push_back({nullptr, 0, first_});
        }
        const std::uint32_t place = free_.back();
        free_.pop_back();
        Entry& entry = entries_[place];
        entry.send = send;
        entry.peer = peer;
        return std::uint64_t{entry.generation} << 32 | place;
    }
    // From here on the peer may say that the send with this id, which was added for nobody, is done.
    void tell(std::uint64_t id, std::uint32_t peer) { entries_[static_cast<std::uint32_t>(id)].peer = peer; }
    // The send that waits for this peer under this id, which is over with that; nullptr if there is none.
    velo_message_send* remove(std::uint64_t id, std::uint32_t peer) {
        const auto place = static_cast<std::uint32_t>(id);
        if (place >= entries_.size()) return nullptr;
        Entry& entry = entries_[place];
        if (entry.send == nullptr || entry.peer != peer || entry.generation != id >> 32) return nullptr;
        velo_message_send* send = entry.send;
        entry.send = nullptr;
        entry.generation = std::max(entry.generation + 1, 1U);  // no id is 0, which says that nobody waits
        free_.push_back(place);
        return send;
    }

    // The first that waits for this peer and satisfies the condition; nullptr: none.
    template <typename Condition>
    velo_message_send** find(std::uint32_t peer, Condition condition) {
        for (Entry& entry : entries_)
            if (entry.send != nullptr && entry.peer == peer && condition(*entry.send)) return &entry.send;
        return nullptr;
    }

    // All that wait for this peer.
    std::vector<velo_message_send*> remove_all(std::uint32_t peer) {
        std::vector<velo_message_send*> sends;
        for (std::uint32_t place = 0; place < entries_.size(); ++place) {
            const Entry& entry = entries_[place];
            if (entry.send != nullptr && entry.peer == peer)
                sends.push_back(remove(std::uint64_t{entry.generation} << 32 | place, peer));
        }
        return sends;
    }

 private:
    struct Entry {
        velo_message_send* send = nullptr;
        std::uint32_t peer = 0;
        std::uint32_t generation = 0;  // one more with each use
    };

    std::uint32_t first_;
    std::vector<Entry> entries_;
    std::vector<std::uint32_t> free_;
};

}  // namespace velo::messaging
