// Messages leave: with their payload, or as a header.
#include <cstring>
#include <utility>

#include "messaging/fast_path.h"

namespace velo::messaging {

bool Messenger::try_send_longer_fast(Peer& to, matching::Key key, const std::byte* data,
                                     std::size_t bytes) noexcept {
    constexpr auto run = [] [[gnu::always_inline]] (engine::Engine & engine, Peer & peer,
                                                    const fabric::MessageView& message) {
        return engine.try_send_longer_fast(peer, engine::kSinkTag, message);
    };
    return send_by(run, to, key, data, bytes);
}

velo_status Messenger::send(Peer* to, matching::Key key, const std::byte* data, std::size_t bytes,
                            velo_send_mode mode, velo_message_send* send) {
    if (to == nullptr) return send_to_self(in_memory(key), data, bytes, mode, send);
    std::uint16_t returned;
    bool eager;
    std::uint64_t id = 0;
    velo_message_send* awaited = send;  // what the receiver knows of
    send->send.collectable = mode != VELO_SEND_BUFFERED;
    {
        std::lock_guard lock(mutex_);
        Shares::Share& share = shares_.of(*to);
        const bool small = bytes <= eager_limit_of(*to);
        const std::uint32_t cells = small ? cells_for(bytes) : 0;
        const bool holding = share.holds;
        eager = small && cells <= share.there && !holding;
        if (eager) [[likely]] {
            share.there -= cells;
            ++state_.eager;
        } else {
            ++state_.rendezvous;
            state_.degraded += small;
            if (holding || share.headers == 0) return holding_.hold(*to, in_memory(key), data, bytes, send);
            --share.headers;
        }
        if (!eager || mode == VELO_SEND_SYNCHRONOUS) {
            expect_answer(send);
            send->takes_header = !eager;
            if (!eager) awaited = placing_.begin(*to, in_memory(key), data, bytes, send);
            id = awaited_.add(awaited, to->index);
        }
        returned = Shares::take_owed(share);
        if (!eager) {
            RendezvousHeader rendezvous{header_of(key, returned, Kind::kRendezvous), id,
                                        reinterpret_cast<std::uint64_t>(data), bytes};
            // The data that the peer is about to get may be in a ring, where they are stored once the header
            // has left: one event more to await.
            if (awaited == send) {
                send->depositor = to;
                send->deposit = engine_.large().begin_deposit(*to, data, bytes);
                if (VELO_DEPOSIT_NUMBER(send->deposit) != 0) ++send->awaited;
            }
            rendezvous.header.unused = VELO_DEPOSIT_NUMBER(send->deposit);
            static_assert(sizeof rendezvous <= sizeof send->header);
            std::memcpy(send->header, &rendezvous, sizeof rendezvous);
        }
    }
    if (!eager) {
        const std::uint64_t deposited = send->deposit;
        const velo_status status = channel_.queue(*to, sizeof(RendezvousHeader), nullptr, 0, send);
        if (awaited != send) placing_.place(*to, awaited);
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
        const fabric::MessageView message{{reinterpret_cast<const std::byte*>(&header), data},
                                          {sizeof header, bytes}};
        const velo_status status = engine_.send_now(*to, engine::kSinkTag, message);
        if (status != VELO_WOULD_BLOCK) return status;
        if (to->is_local() && to->policy().traits().rendezvous_without_credit)
            return send_without_credit(*to, key, returned, data, bytes, send);
        std::memcpy(send->header, &header, sizeof header);
        expect(send, 1);
        return channel_.queue(*to, sizeof header, data, bytes, send);
    }
    header.kind = Kind::kSynchronous;
    const SynchronousHeader synchronous{header, id};
    std::memcpy(send->header, &synchronous, sizeof synchronous);
    return channel_.queue(*to, sizeof synchronous, data, bytes, send);
}

// The message has its cells, and finds no credit: it leaves as a header instead, whose answer brings credits.
velo_status Messenger::send_without_credit(Peer& to, matching::Key key, std::uint16_t returned,
                                           const std::byte* data, std::size_t bytes,
                                           velo_message_send* send) {
    {
        std::lock_guard lock(mutex_);
        Shares::Share& share = shares_.of(to);
        share.there += cells_for(bytes);
        share.owed += returned;
        --state_.eager;
        ++state_.rendezvous;
        if (share.holds || share.headers == 0) return holding_.hold(to, in_memory(key), data, bytes, send);
        --share.headers;
        expect_answer(send);
        const RendezvousHeader rendezvous{header_of(key, Shares::take_owed(share), Kind::kRendezvous),
                                          awaited_.add(send, to.index), reinterpret_cast<std::uint64_t>(data),
                                          bytes};
        std::memcpy(send->header, &rendezvous, sizeof rendezvous);
    }
    return channel_.queue(to, sizeof(RendezvousHeader), nullptr, 0, send);
}

bool Messenger::lacks_room(const Peer& to, std::size_t bytes) {
    if (bytes > network_eager_limit_) return false;
    std::lock_guard lock(mutex_);
    const Shares::Share& share = shares_.of(to);
    return cells_for(bytes) > share.there && !share.holds;
}

bool Messenger::would_wait(const Peer* to, std::size_t bytes) {
    if (bytes > (to != nullptr ? eager_limit_of(*to) : eager_limit_)) return false;
    std::lock_guard lock(mutex_);
    const Shares::Share& share = to == nullptr ? shares_.own() : shares_.of(*to);
    return share.holds || cells_for(bytes) > share.there;
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
            const Kind kind = small && cells <= shares_.own().there ? Kind::kEager : Kind::kRendezvous;
            const Parked like = parked_like(nullptr, key, kind, bytes, reinterpret_cast<std::uint64_t>(send),
                                            reinterpret_cast<std::uint64_t>(data));
            if (kind == Kind::kEager) {
                shares_.own().there -= cells;
                unmatched_.park(like, data, bytes);
                return VELO_OK;
            }
            expect(send, 1);
            unmatched_.park(like, nullptr, 0);
            return VELO_QUEUED;
        }
        ++state_.matched_at_once;
        receive = receive_of(posted);
    }
    deliver(receive, key, data, bytes);
    return VELO_OK;
}

}  // namespace velo::messaging
