// Messages leave: with their payload, or as a header.
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstring>
#include <utility>

#include "endpoint/send_now.h"
#include "messaging/messenger.h"

namespace velo::messaging {
namespace {

velo_message_send* owner_of(velo_send* send) {
    return reinterpret_cast<velo_message_send*>(reinterpret_cast<std::byte*>(send) -
                                                offsetof(velo_message_send, send));
}

const std::byte* bytes_of(const void* data) {
    return static_cast<const std::byte*>(data);
}

}  // namespace

bool Messenger::try_send_longer_fast(Peer& to, matching::Key key, const std::byte* data,
                                     std::size_t bytes) noexcept {
    constexpr auto run = [] [[gnu::always_inline]] (endpoint::Engine & engine, Peer & peer,
                                                    const fabric::MessageView& message) {
        return engine.try_send_longer_fast(peer, endpoint::kSinkTag, message);
    };
    return send_by(run, to, key, data, bytes);
}

velo_status Messenger::send(Peer* to, matching::Key key, const std::byte* data, std::size_t bytes,
                            velo_send_mode mode, velo_message_send* send) {
    if (to == nullptr) return send_to_self(in_memory(key), data, bytes, mode, send);
    std::uint16_t returned;
    bool eager;
    std::uint64_t id = 0;
    Placement* placement = nullptr;
    send->send.collectable = mode != VELO_SEND_BUFFERED;
    {
        std::lock_guard lock(mutex_);
        Share& share = share_of(*to);
        const bool small = bytes <= eager_limit_of(*to);
        const std::uint32_t cells = small ? cells_for(bytes) : 0;
        const bool holding = share.backlog != nullptr;
        eager = small && cells <= share.there && !holding;
        if (eager) [[likely]] {
            share.there -= cells;
            ++state_.eager;
        } else {
            ++state_.rendezvous;
            state_.degraded += small;
            if (holding || share.headers == 0) return hold(*to, in_memory(key), data, bytes, send);
            --share.headers;
        }
        if (!eager || mode == VELO_SEND_SYNCHRONOUS) {
            send->takes_header = !eager;
            send->placement = nullptr;
            expect(send, 2);
            if (share.announcements != nullptr && !eager) [[unlikely]]
                if (const auto announced = share.announcements->take(in_memory(key), bytes))
                    placement = begin_placing(*to, *announced, data, send, announced->when_idle);
            id = awaited_.add(placement == nullptr ? send : &placement->answer, to->index);
        }
        returned = take_owed(share);
        if (!eager) {
            RendezvousHeader rendezvous{header_of(key, returned, Kind::kRendezvous), id,
                                        reinterpret_cast<std::uint64_t>(data), bytes};
            if (placement == nullptr) deposit(*to, data, bytes, send);
            rendezvous.header.unused = VELO_DEPOSIT_NUMBER(send->deposit);
            static_assert(sizeof rendezvous <= sizeof send->header);
            std::memcpy(send->header, &rendezvous, sizeof rendezvous);
        }
    }
    if (!eager) {
        const std::uint64_t deposited = send->deposit;
        const velo_status status = queue(*to, sizeof(RendezvousHeader), nullptr, 0, send);
        if (placement != nullptr) place(*to, *placement);
        if (status < VELO_OK) {
            if (Peer* const peer = std::exchange(send->depositor, nullptr); peer != nullptr)
                engine_.large().end_deposit(*peer, deposited);
            return status;
        }
        if (VELO_DEPOSIT_NUMBER(deposited) == 0) return status;
        engine_.large().store_deposit(deposited);
        return is_last(send) ? send->status : VELO_QUEUED;
    }
    Header header = header_of(key, returned, Kind::kEager);
    if (mode != VELO_SEND_SYNCHRONOUS) [[likely]] {
        const fabric::MessageView message{{bytes_of(&header), data}, {sizeof header, bytes}};
        const velo_status status = engine_.send_now(*to, endpoint::kSinkTag, message);
        if (status != VELO_WOULD_BLOCK) return status;
        if (to->is_local() && to->policy().traits().rendezvous_without_credit)
            return send_without_credit(*to, key, returned, data, bytes, send);
        std::memcpy(send->header, &header, sizeof header);
        expect(send, 1);
        return queue(*to, sizeof header, data, bytes, send);
    }
    header.kind = Kind::kSynchronous;
    const SynchronousHeader synchronous{header, id};
    std::memcpy(send->header, &synchronous, sizeof synchronous);
    return queue(*to, sizeof synchronous, data, bytes, send);
}

// The message has its cells, and finds no credit: it leaves as a header instead, whose answer brings credits.
velo_status Messenger::send_without_credit(Peer& to, matching::Key key, std::uint16_t returned,
                                           const std::byte* data, std::size_t bytes,
                                           velo_message_send* send) {
    {
        std::lock_guard lock(mutex_);
        Share& share = share_of(to);
        share.there += cells_for(bytes);
        share.owed += returned;
        --state_.eager;
        ++state_.rendezvous;
        if (share.backlog != nullptr || share.headers == 0)
            return hold(to, in_memory(key), data, bytes, send);
        --share.headers;
        send->takes_header = true;
        send->placement = nullptr;
        expect(send, 2);
        const RendezvousHeader rendezvous{header_of(key, take_owed(share), Kind::kRendezvous),
                                          awaited_.add(send, to.index), reinterpret_cast<std::uint64_t>(data),
                                          bytes};
        std::memcpy(send->header, &rendezvous, sizeof rendezvous);
    }
    return queue(to, sizeof(RendezvousHeader), nullptr, 0, send);
}

bool Messenger::lacks_room(const Peer& to, std::size_t bytes) {
    if (bytes > network_eager_limit_) return false;
    std::lock_guard lock(mutex_);
    const Share& share = share_of(to);
    return cells_for(bytes) > share.there && share.backlog == nullptr;
}

bool Messenger::would_wait(const Peer* to, std::size_t bytes) {
    if (bytes > (to != nullptr ? eager_limit_of(*to) : eager_limit_)) return false;
    std::lock_guard lock(mutex_);
    const Share& share = to == nullptr ? own_ : share_of(*to);
    return share.backlog != nullptr || cells_for(bytes) > share.there;
}

// `events`: 1 if the send is complete when it has left, 2 if the receiver will say when.
void Messenger::expect(velo_message_send* send, std::uint32_t events) {
    send->status = VELO_OK;
    send->awaited = events;
    send->depositor = nullptr;
    send->deposit = 0;
}

// Before the peer is told: the data that it is about to get may be in a chunk of the outbox, where it is
// stored once the header has left. That is one event more to await.
void Messenger::deposit(Peer& to, const std::byte* data, std::size_t bytes, velo_message_send* send) {
    send->depositor = &to;
    send->deposit = engine_.large().begin_deposit(to, data, bytes);
    if (VELO_DEPOSIT_NUMBER(send->deposit) != 0) ++send->awaited;
}

velo_status Messenger::queue(Peer& to, std::size_t header_bytes, const std::byte* data, std::size_t bytes,
                             velo_message_send* send) {
    send->send.part[0] = send->header;
    send->send.bytes[0] = header_bytes;
    send->send.part[1] = data;
    send->send.bytes[1] = bytes;
    send->send.tag = endpoint::kSinkTag;
    send->send.done = [](velo_send* sent, velo_status status) { settle(owner_of(sent), status); };
    const velo_status status = engine_.send_start(to, &send->send);
    if (status != VELO_OK) return status;
    return is_last(send) ? send->status : VELO_QUEUED;
}

// One of the awaited events has come; true if it is the last one. Then nobody needs the deposit any more.
bool Messenger::is_last(velo_message_send* send) {
    std::atomic_ref<std::uint32_t> left(send->awaited);
    if (left.fetch_sub(1, std::memory_order_acq_rel) != 1) return false;
    if (send->depositor != nullptr)
        endpoint::engine_of(*send->depositor).large().end_deposit(*send->depositor, send->deposit);
    return true;
}

// The answer may overtake the news that the message has left.
void Messenger::settle(velo_message_send* send, velo_status status) {
    if (status != VELO_OK) send->status = status;
    if (is_last(send)) send->done(send, send->status);
}

velo_status Messenger::send_to_self(const matching::Key& key, const std::byte* data, std::size_t bytes,
                                    velo_send_mode mode, velo_message_send* send) {
    velo_message_receive* receive;
    {
        std::lock_guard lock(mutex_);
        matching::Posted* posted = match(key);
        if (posted == nullptr) {
            const bool small = bytes <= eager_limit_ && mode != VELO_SEND_SYNCHRONOUS;
            const std::uint32_t cells = small ? cells_for(bytes) : 0;
            Parked like;
            like.key = key;
            like.from = nullptr;
            like.bytes = bytes;
            like.id = reinterpret_cast<std::uint64_t>(send);
            like.address = reinterpret_cast<std::uint64_t>(data);
            like.kind = small && cells <= own_.there ? Kind::kEager : Kind::kRendezvous;
            if (like.kind == Kind::kEager) {
                own_.there -= cells;
                park(like, data, bytes);
                return VELO_OK;
            }
            expect(send, 1);
            park(like, nullptr, 0);
            return VELO_QUEUED;
        }
        ++state_.matched_at_once;
        receive = receive_of(posted);
    }
    deliver(receive, key, data, bytes);
    return VELO_OK;
}

// Tells the sender that its message has been fetched or has matched.
void Messenger::say_done(Peer& to, std::uint64_t id, velo_status status) {
    DoneHeader done{{{0, 0, static_cast<std::int32_t>(status)}, 0, Kind::kDone, 0}, id};
    std::lock_guard lock(mutex_);
    say(to, done.header, done);
}

void Messenger::notify(Peer& to, const Notice& notice) {
    NoticeHeader text{{{}, 0, Kind::kNotice, 0}, notice};
    std::lock_guard lock(mutex_);
    say(to, text.header, text);
}

void Messenger::say(Peer& to, Header& header, const void* text, std::size_t bytes) {
    header.returned = take_owed(reached_share_of(to));
    const fabric::MessageView message{{bytes_of(text), nullptr}, {bytes, 0}};
    if (engine_.send_now(to, endpoint::kSinkTag, message) == VELO_OK) return;
    velo_send* const note = notes_->keep(text, bytes, endpoint::kSinkTag);
    if (engine_.send_start(to, note) != VELO_QUEUED) Notes::drop(note);
}

}  // namespace velo::messaging
