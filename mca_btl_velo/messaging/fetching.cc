#include "messaging/fetching.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "messaging/send_events.h"
#include "platform/copy.h"

namespace velo::messaging {
namespace {

// Of a message that is unpacked: so much of it is fetched at a time.
constexpr std::size_t kPartBytes = std::size_t{256} * 1024;

}  // namespace

void deliver(velo_message_receive* receive, matching::Key key, const std::byte* data, std::size_t bytes) {
    note_match(receive, key, bytes);
    const std::size_t kept = wanted(receive);
    if (receive->unpack != nullptr) {
        if (kept > 0) receive->unpack(receive, data, kept);
    } else if (kept > 0) {
        platform::copy(static_cast<std::byte*>(receive->buffer), data, kept);
    }
    receive->done(receive, VELO_OK);
}

bool Fetching::withdraw(velo_message_receive* receive) {
    const auto done = [](void* argument, velo_status, std::uint64_t) {
        auto* withdrawn = static_cast<velo_message_receive*>(argument);
        withdrawn->done(withdrawn, VELO_ERR_REMOTE);
    };
    return large_.withdraw(*receive->peer, take_ticket(receive), receive->capacity, {done, receive});
}

void Fetching::fetch(velo_message_receive* receive, const Parked& rendezvous) {
    if (rendezvous.from == nullptr) {
        deliver(receive, rendezvous.key, reinterpret_cast<const std::byte*>(rendezvous.address),
                rendezvous.bytes);
        return settle(reinterpret_cast<velo_message_send*>(rendezvous.id), VELO_OK);
    }
    note_match(receive, rendezvous.key, rendezvous.bytes);
    std::uint32_t ticket = 0;
    if (receive->turn == kMatchedAnnounced) [[unlikely]] {
        if (receive->peer == rendezvous.from && receive->capacity == rendezvous.bytes)
            ticket = take_ticket(receive);
        else if (!withdraw(receive))
            return;
    }
    receive->fetching = this;
    receive->peer = rendezvous.from;
    receive->remote = rendezvous.address;
    receive->id = rendezvous.id;
    receive->position = 0;
    receive->part = nullptr;
    const std::size_t kept = wanted(receive);
    if (kept == 0) return fetched(receive, VELO_OK);
    if (receive->unpack != nullptr) return fetch_parts(receive);
    const auto done = [](void* argument, velo_status status, std::uint64_t) {
        auto* whole = static_cast<velo_message_receive*>(argument);
        of(whole).fetched(whole, status);
    };
    const auto by = receive->announced == 0 ? engine::CopyBy::kFastest : engine::CopyBy::kReader;
    const engine::Get get{receive->buffer, receive->remote, kept, {done, receive}, by};
    const velo_status status = ticket == 0
                                   ? large_.get_deposited(*receive->peer, rendezvous.deposit, get)
                                   : large_.get_announced(*receive->peer, ticket, rendezvous.deposit, get);
    if (status < VELO_OK) fetched(receive, status);
}

// Of the two, the callback and the loop below, the second one at `turn` goes on.
void Fetching::fetch_parts(velo_message_receive* receive) {
    const std::size_t kept = wanted(receive);
    if (receive->part == nullptr) receive->part = notes_->take_part(std::min(kept, kPartBytes));
    const auto done = [](void* argument, velo_status status, std::uint64_t) {
        auto* parted = static_cast<velo_message_receive*>(argument);
        Fetching& self = of(parted);
        const std::size_t bytes = std::min(wanted(parted) - parted->position, kPartBytes);
        if (status == VELO_OK) parted->unpack(parted, parted->part, bytes);
        parted->position = status == VELO_OK ? parted->position + bytes : kFailed;
        std::atomic_ref<std::uint32_t> turn(parted->turn);
        if (turn.exchange(kSecond, std::memory_order_acq_rel) == kSecond) self.fetch_parts(parted);
    };
    while (receive->position < kept) {
        receive->turn = kFirst;
        const std::size_t bytes = std::min(kept - receive->position, kPartBytes);
        const velo_status status = large_.get(
            *receive->peer, {receive->part, receive->remote + receive->position, bytes, {done, receive}});
        if (status < VELO_OK) return fetched(receive, status);
        std::atomic_ref<std::uint32_t> turn(receive->turn);
        if (turn.exchange(kSecond, std::memory_order_acq_rel) != kSecond) return;
    }
    fetched(receive, receive->position == kFailed ? VELO_ERR_REMOTE : VELO_OK);
}

void Fetching::fetched(velo_message_receive* receive, velo_status status) {
    if (receive->part != nullptr) [[unlikely]]
        notes_->drop_part(receive->part);
    channel_.say_done(*receive->peer, receive->id, status);
    receive->done(receive, status);
}

}  // namespace velo::messaging
