// Large messages to receives that have been announced. The receiver tells of a receive that no message is
// there for where the data will go; the sender, when it has them, sends its header as always, and copies what
// the receiver does not fetch meanwhile. If that is all, the send is over without the receiver's answer.
//
// The two share a get (rma/share.h): whoever comes late finds nothing left, and an announcement that has been
// overtaken by the message has no effect.
#include <cstring>
#include <utility>

#include "messaging/messenger.h"
#include "platform/failure.h"

namespace velo::messaging {

void Messenger::announce(Peer& from, const matching::Key& key, velo_message_receive* receive) {
    if (receive->capacity <= eager_limit_) return;
    std::lock_guard lock(mutex_);
    if (receive->turn != kWaiting || many_notes_wait()) return;
    const std::optional<std::uint32_t> ticket = engine_.large().announce(from, receive->capacity);
    if (!ticket) return;
    receive->turn = kAnnounced;
    const bool when_idle = receive->announced != 0;
    receive->announced |= *ticket;
    receive->peer = &from;
    AnnounceHeader announcement{{key, 0, Kind::kAnnounce, when_idle},
                                reinterpret_cast<std::uint64_t>(receive->buffer),
                                receive->capacity,
                                *ticket,
                                0};
    ++state_.announced;
    say(from, announcement.header, announcement);
}

bool Messenger::withdraw(velo_message_receive* receive) {
    const auto done = [](void* argument, velo_status, std::uint64_t) {
        auto* withdrawn = static_cast<velo_message_receive*>(argument);
        withdrawn->done(withdrawn, VELO_ERR_REMOTE);
    };
    return engine_.large().withdraw(*receive->peer, take_ticket(receive), receive->capacity, {done, receive});
}

// Under the mutex. The message may be on its way already.
void Messenger::announcement_arrived(Peer& from, const AnnounceHeader& header) {
    if (rma::cell_of(header.ticket) >= fabric::shm::kShareCells)
        throw Failure(VELO_ERR_PROTOCOL, "a peer has announced a receive in a cell that it does not have");
    const Announcement announcement{header.header.key, header.address, header.bytes, header.ticket,
                                    header.header.unused != 0};
    velo_message_send** const sent = awaited_.find(from.index, [&](const velo_message_send& send) {
        if (!send.takes_header || send.placement != nullptr) return false;
        RendezvousHeader rendezvous;
        std::memcpy(&rendezvous, send.header, sizeof rendezvous);
        return rendezvous.header.key == announcement.key && rendezvous.bytes == announcement.bytes;
    });
    if (sent == nullptr) {
        Share& share = share_of(from);
        if (share.announcements == nullptr) share.announcements = std::make_unique<Announcements>();
        return share.announcements->put(announcement);
    }
    RendezvousHeader rendezvous;
    std::memcpy(&rendezvous, (*sent)->header, sizeof rendezvous);
    Placement* placement = begin_placing(from, announcement,
                                         reinterpret_cast<const std::byte*>(rendezvous.address), *sent, true);
    if (placement == nullptr) return;
    *sent = &placement->answer;
    place(from, *placement);
}

// Under the mutex. nullptr: as if nothing had been announced.
Messenger::Placement* Messenger::begin_placing(Peer& to, const Announcement& announcement,
                                               const std::byte* data, velo_message_send* send,
                                               bool when_idle) {
    std::optional<rma::Help> help =
        engine_.large().helping(to, announcement.ticket, data, announcement.address, announcement.bytes);
    if (!help) return nullptr;
    std::optional<rma::Share::Range> first;
    // Before the header leaves, so that the receiver does not begin alone.
    if (!when_idle && !(first = help->share.claim_back())) return nullptr;
    if (free_placements_.empty()) free_placements_.push_back(&placements_.emplace_back());
    Placement& placement = *free_placements_.back();
    free_placements_.pop_back();
    placement.messenger = this;
    placement.send.store(send, std::memory_order_relaxed);
    placement.bytes = announcement.bytes;
    placement.help = help;
    placement.when_idle = when_idle;
    if (first) placement.first = *first;
    placement.answer.takes_header = true;
    placement.answer.placement = &placement;
    placement.answer.done = [](velo_message_send* answer, velo_status) {
        auto* over = static_cast<Placement*>(answer->placement);
        std::lock_guard lock(over->messenger->mutex_);
        over->messenger->free_placements_.push_back(over);
    };
    expect(&placement.answer, 2);
    return &placement;
}

// When idle: may be under the mutex.
void Messenger::place(Peer& to, Placement& placement) {
    placement.help->completion = {copied, &placement, VELO_OK, 0};
    if (placement.when_idle) return engine_.large().help_when_idle(*placement.help);
    engine_.large().shared_gets().help_now(to, *placement.help, placement.first);
    copied(&placement, VELO_OK, placement.help->completion.result);
}

void Messenger::copied(void* argument, velo_status, std::uint64_t bytes) {
    auto& placement = *static_cast<Placement*>(argument);
    if (bytes == placement.bytes) {
        ++placement.messenger->placed_;
        placement.complete(VELO_OK);
    }
    settle(&placement.answer, VELO_OK);
}

void Messenger::answered(velo_message_send* send, velo_status status) {
    if (send->placement != nullptr) [[unlikely]]
        static_cast<Placement*>(send->placement)->complete(status);
    settle(send, status);
}

}  // namespace velo::messaging
