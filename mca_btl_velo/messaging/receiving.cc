// Receives: what has come already, and what comes later; from the packets, from the pool, or by rendezvous.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "messaging/messenger.h"
#include "platform/copy.h"

namespace velo::messaging {
namespace {

// Of a message that is unpacked: so much of it is fetched at a time.
constexpr std::size_t kPartBytes = std::size_t{256} * 1024;

std::size_t wanted(const velo_message_receive* receive) {
    return std::min(receive->bytes, receive->capacity);
}

void note_match(velo_message_receive* receive, const matching::Key& key, std::size_t bytes) {
    receive->matched = {key.context, key.source, key.tag};
    receive->bytes = bytes;
}

}  // namespace

bool Messenger::cancel(velo_message_receive* receive) {
    bool announced;
    {
        std::lock_guard lock(mutex_);
        announced = receive->turn == kAnnounced;
        if (!announced && receive->turn != kWaiting) return false;
        receive->turn = kMatched;
        auto* posted = reinterpret_cast<matching::Posted*>(receive->posted);
        posted_.remove(posted);
        if (!holders_.empty()) ask_for_next(posted->pattern);
    }
    return !announced || withdraw(receive);
}

// All of what a process has sent before it died has come. Under the mutex, but for the callback: the receive
// is nobody's any more then.
void Messenger::heed(matching::Posted& posted, velo_message_receive* receive) {
    if (some_have_died_ && is_of_dead(posted.pattern)) {
        posted_.remove(&posted);
        mutex_.unlock();
        fail(receive);
        mutex_.lock();
    } else if (!holders_.empty() && posted_.front(posted.pattern) == &posted) {
        ask_all(posted);
    }
}

std::vector<velo_message_receive*> Messenger::take_those_of_dead() {
    std::vector<velo_message_receive*> all;
    for (std::vector<matching::Posted*> found;; found.clear()) {
        posted_.for_each_front([&](matching::Posted& front) {
            if (is_of_dead(front.pattern)) found.push_back(&front);
        });
        if (found.empty()) return all;
        for (matching::Posted* posted : found) {
            posted_.remove(posted);
            all.push_back(receive_of(posted));
        }
    }
}

void Messenger::fail(velo_message_receive* receive) {
    const auto* posted = reinterpret_cast<const matching::Posted*>(receive->posted);
    receive->turn = kMatched;
    note_match(receive, posted->pattern, 0);
    receive->done(receive, VELO_ERR_REMOTE);
}

bool Messenger::probe(const matching::Key& pattern, matching::Key* key, std::size_t* bytes) {
    std::lock_guard lock(mutex_);
    if (const auto* message = static_cast<const Parked*>(unexpected_.find(pattern))) {
        *key = message->key;
        *bytes = message->bytes;
        return true;
    }
    if (holders_.empty()) return false;
    Peer* holder;
    const Peek* seen = seen_by_probe(pattern, &holder);
    if (seen == nullptr) return false;
    *key = seen->found;
    *bytes = seen->bytes;
    return true;
}

Parked* Messenger::take(const matching::Key& pattern) {
    {
        std::lock_guard lock(mutex_);
        if (auto* message = static_cast<Parked*>(unexpected_.take(pattern))) return message;
        if (holders_.empty()) [[likely]]
            return nullptr;
    }
    return take_held(pattern);
}

void Messenger::consume(Parked* message, velo_message_receive* receive) {
    receive->messenger = reinterpret_cast<velo_messenger*>(this);
    receive->turn = kMatched;
    const Kind kind = message->kind;
    if (kind == Kind::kRendezvous) {
        Parked rendezvous = *message;
        {
            std::lock_guard lock(mutex_);
            rendezvous.from = sender_of(*message);
            release(message);
        }
        return fetch(receive, rendezvous);
    }
    copy_out(receive, *message);
    const std::uint64_t id = message->id;
    Peer* from;
    bool due;
    {
        std::lock_guard lock(mutex_);
        from = sender_of(*message);
        due = release(message);
    }
    if (kind == Kind::kSynchronous) say_done(*from, id, VELO_OK);
    receive->done(receive, VELO_OK);
    if (due) return_credits(*from);
}

// True if the sender should be told that its cells are free.
bool Messenger::release(Parked* message) {
    bool due = false;
    if (message->kind == Kind::kRendezvous) {
        --state_.headers;
    } else {
        const std::uint32_t cells = cells_for(message->bytes);
        state_.pool_used_bytes -= cells * kCellBytes;
        due = give_back(sender_of(*message), cells);
    }
    pool_.release(message);
    return due;
}

// A program that frees a communicator with messages in it does not want them; their senders may go on.
void Messenger::forget(std::uint32_t context) {
    for (;;) {
        Parked* message;
        {
            std::lock_guard lock(mutex_);
            message = static_cast<Parked*>(unexpected_.any_of(context));
            if (message == nullptr) return;
            unexpected_.remove(message);
        }
        drop(message);
    }
}

void Messenger::drop(Parked* message) {
    velo_message_receive nowhere{};
    nowhere.done = [](velo_message_receive*, velo_status) {};
    consume(message, &nowhere);
}

void Messenger::deliver(velo_message_receive* receive, matching::Key key, const std::byte* data,
                        std::size_t bytes) {
    note_match(receive, key, bytes);
    const std::size_t kept = wanted(receive);
    if (receive->unpack != nullptr) {
        if (kept > 0) receive->unpack(receive, data, kept);
    } else if (kept > 0) {
        platform::copy(static_cast<std::byte*>(receive->buffer), data, kept);
    }
    receive->done(receive, VELO_OK);
}

void Messenger::copy_out(velo_message_receive* receive, const Parked& message) {
    note_match(receive, message.key, message.bytes);
    std::size_t left = wanted(receive);
    auto* to = static_cast<std::byte*>(receive->buffer);
    Pool::for_each_piece(message, [&](const std::byte* data, std::size_t bytes) {
        bytes = std::min(bytes, left);
        left -= bytes;
        if (bytes == 0) return;
        if (receive->unpack != nullptr) return receive->unpack(receive, data, bytes);
        platform::copy(to, data, bytes);
        to += bytes;
    });
}

void Messenger::fetch(velo_message_receive* receive, const Parked& rendezvous) {
    note_match(receive, rendezvous.key, rendezvous.bytes);
    if (rendezvous.from == nullptr) {
        auto* send = reinterpret_cast<velo_message_send*>(rendezvous.id);
        deliver(receive, rendezvous.key, reinterpret_cast<const std::byte*>(rendezvous.address),
                rendezvous.bytes);
        return settle(send, VELO_OK);
    }
    std::uint32_t ticket = 0;
    if (receive->turn == kMatchedAnnounced) [[unlikely]] {
        if (receive->peer == rendezvous.from && receive->capacity == rendezvous.bytes)
            ticket = take_ticket(receive);
        else if (!withdraw(receive))
            return;
    }
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
        reinterpret_cast<Messenger*>(whole->messenger)->fetched(whole, status);
    };
    const endpoint::Get get{receive->buffer,
                            receive->remote,
                            kept,
                            {done, receive},
                            receive->announced == 0 ? CopyBy::kFastest : CopyBy::kReader};
    endpoint::Large& large = engine_.large();
    const velo_status status = ticket == 0
                                   ? large.get_deposited(*receive->peer, rendezvous.deposit, get)
                                   : large.get_announced(*receive->peer, ticket, rendezvous.deposit, get);
    if (status < VELO_OK) fetched(receive, status);
}

// Of the two, the callback and the loop below, the second one at `turn` goes on.
void Messenger::fetch_parts(velo_message_receive* receive) {
    const std::size_t kept = wanted(receive);
    if (receive->part == nullptr) receive->part = notes_->take_part(std::min(kept, kPartBytes));
    const auto done = [](void* argument, velo_status status, std::uint64_t) {
        auto* parted = static_cast<velo_message_receive*>(argument);
        auto* self = reinterpret_cast<Messenger*>(parted->messenger);
        const std::size_t bytes = std::min(wanted(parted) - parted->position, kPartBytes);
        if (status == VELO_OK) parted->unpack(parted, parted->part, bytes);
        parted->position = status == VELO_OK ? parted->position + bytes : kFailed;
        std::atomic_ref<std::uint32_t> turn(parted->turn);
        if (turn.exchange(kSecond, std::memory_order_acq_rel) == kSecond) self->fetch_parts(parted);
    };
    while (receive->position < kept) {
        receive->turn = kFirst;
        const std::size_t bytes = std::min(kept - receive->position, kPartBytes);
        const velo_status status = engine_.large().get(
            *receive->peer, {receive->part, receive->remote + receive->position, bytes, {done, receive}});
        if (status < VELO_OK) return fetched(receive, status);
        std::atomic_ref<std::uint32_t> turn(receive->turn);
        if (turn.exchange(kSecond, std::memory_order_acq_rel) != kSecond) return;
    }
    fetched(receive, receive->position == kFailed ? VELO_ERR_REMOTE : VELO_OK);
}

void Messenger::fetched(velo_message_receive* receive, velo_status status) {
    if (receive->part != nullptr) [[unlikely]]
        notes_->drop_part(receive->part);
    say_done(*receive->peer, receive->id, status);
    receive->done(receive, status);
}

}  // namespace velo::messaging
