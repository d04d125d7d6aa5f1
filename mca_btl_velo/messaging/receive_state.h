// What the engine notes in a receive.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "fabric/shm/share_cell.h"
#include "matching/posted_queue.h"
#include "types/messages.h"

namespace velo::messaging {

// velo_message_receive::turn: whether a receive may be cancelled, and later who goes on with its parts.
enum Turn : std::uint32_t { kWaiting, kMatched, kFirst, kSecond, kAnnounced, kMatchedAnnounced };

// velo_message_receive::announced: the ticket, or 0, and this.
inline constexpr std::uint32_t kByOneself = 1U << 7;
static_assert(fabric::shm::kShareCells <= kByOneself);

inline std::uint32_t take_ticket(velo_message_receive* receive) {
    return std::exchange(receive->announced, receive->announced & kByOneself) & ~kByOneself;
}

inline matching::Posted* posted_of(velo_message_receive* receive) {
    static_assert(sizeof receive->posted >= sizeof(matching::Posted));
    return reinterpret_cast<matching::Posted*>(receive->posted);
}
inline velo_message_receive* waiting_of(matching::Posted* posted) {
    return reinterpret_cast<velo_message_receive*>(reinterpret_cast<std::byte*>(posted) -
                                                   offsetof(velo_message_receive, posted));
}
// The receive that has matched.
inline velo_message_receive* receive_of(matching::Posted* posted) {
    velo_message_receive* receive = waiting_of(posted);
    receive->turn = kMatched;
    return receive;
}
// The same of a message that will be fetched.
inline velo_message_receive* fetching(matching::Posted* posted) {
    velo_message_receive* receive = waiting_of(posted);
    receive->turn = receive->turn == kAnnounced ? kMatchedAnnounced : kMatched;
    return receive;
}

inline void note_match(velo_message_receive* receive, const matching::Key& key, std::size_t bytes) {
    receive->matched = {key.context, key.source, key.tag};
    receive->bytes = bytes;
}
inline std::size_t wanted(const velo_message_receive* receive) {
    return std::min(receive->bytes, receive->capacity);
}

}  // namespace velo::messaging
