// Receives and probes of what has come, or comes later.
#include "messaging/fast_path.h"
#include "platform/copy.h"

namespace velo::messaging {
namespace {

void copy_out(velo_message_receive* receive, const Parked& message) {
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

}  // namespace

bool Messenger::cancel(velo_message_receive* receive) {
    bool announced;
    {
        std::lock_guard lock(mutex_);
        announced = receive->turn == kAnnounced;
        if (!announced && receive->turn != kWaiting) return false;
        receive->turn = kMatched;
        matching::Posted* posted = posted_of(receive);
        posted_.remove(posted);
        if (asking_.any()) asking_.ask_for_next(posted->pattern);
    }
    return !announced || withdraw(receive);
}

// All of what a process has sent before it died has come. Under the mutex, but for the callback: the receive
// is nobody's any more then.
void Messenger::heed(matching::Posted& posted, velo_message_receive* receive) {
    if (!dead_.waits_in_vain(posted)) return asking_.posted(posted);
    posted_.remove(&posted);
    mutex_.unlock();
    fail(receive);
    mutex_.lock();
}

void Messenger::fail(velo_message_receive* receive) {
    receive->turn = kMatched;
    note_match(receive, posted_of(receive)->pattern, 0);
    receive->done(receive, VELO_ERR_REMOTE);
}

void Messenger::announce(Peer& from, const matching::Key& key, velo_message_receive* receive) {
    if (receive->capacity <= eager_limit_) return;
    std::lock_guard lock(mutex_);
    state_.announced += placing_.announce(from, key, receive);
}

bool Messenger::probe(const matching::Key& pattern, matching::Key* key, std::size_t* bytes) {
    std::lock_guard lock(mutex_);
    const Parked* const message = unmatched_.find(pattern);
    if (message == nullptr) return asking_.any() && asking_.probe(pattern, key, bytes);
    *key = message->key;
    *bytes = message->bytes;
    return true;
}

// What a probe has seen at a holder is waited for, until the holder's next progress.
Parked* Messenger::take(const matching::Key& pattern) {
    const Peer* holder;
    {
        std::lock_guard lock(mutex_);
        if (Parked* message = unmatched_.take(pattern)) return message;
        if (!asking_.any()) [[likely]]
            return nullptr;
        if ((holder = asking_.begin_take(pattern)) == nullptr) return nullptr;
    }
    for (Parked* taken;;) {
        engine_.progress();
        std::lock_guard lock(mutex_);
        if (asking_.end_take(*holder, pattern, &taken)) return taken;
        if (engine_.failed()) return nullptr;
    }
}

void Messenger::drop(Parked* message) {
    velo_message_receive nowhere{};
    nowhere.done = [](velo_message_receive*, velo_status) {};
    consume(message, &nowhere);
}

void Messenger::consume(Parked* message, velo_message_receive* receive) {
    receive->turn = kMatched;
    const Kind kind = message->kind;
    if (kind == Kind::kRendezvous) {
        Parked rendezvous = *message;
        {
            std::lock_guard lock(mutex_);
            rendezvous.from = sender_of(*message);
            (void)unmatched_.release(message);
        }
        return fetching_.fetch(receive, rendezvous);
    }
    copy_out(receive, *message);
    const std::uint64_t id = message->id;
    Peer* from;
    bool due;
    {
        std::lock_guard lock(mutex_);
        from = sender_of(*message);
        due = shares_.give_back(from, unmatched_.release(message));
    }
    if (kind == Kind::kSynchronous) channel_.say_done(*from, id, VELO_OK);
    receive->done(receive, VELO_OK);
    if (due) channel_.return_cells(*from);
}

}  // namespace velo::messaging
