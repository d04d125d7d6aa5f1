#include "messaging/placing.h"

#include <cstring>
#include <mutex>

#include "messaging/receive_state.h"
#include "platform/failure.h"

namespace velo::messaging {
namespace {

RendezvousHeader header_of(const velo_message_send& send) {
    RendezvousHeader rendezvous;
    std::memcpy(&rendezvous, send.header, sizeof rendezvous);
    return rendezvous;
}

}  // namespace

bool Placing::announce(Peer& from, const matching::Key& key, velo_message_receive* receive) {
    if (receive->turn != kWaiting || channel_.is_crowded()) return false;
    const std::optional<std::uint32_t> ticket = large_.announce(from, receive->capacity);
    if (!ticket) return false;
    receive->turn = kAnnounced;
    const bool when_idle = receive->announced != 0;
    receive->announced |= *ticket;
    receive->peer = &from;
    channel_.say(from, AnnounceHeader{{key, 0, Kind::kAnnounce, when_idle},
                                      reinterpret_cast<std::uint64_t>(receive->buffer),
                                      receive->capacity,
                                      *ticket,
                                      0});
    return true;
}

// The message may be on its way already.
void Placing::announcement_arrived(Peer& from, const AnnounceHeader& header) {
    if (rma::cell_of(header.ticket) >= fabric::shm::kShareCells)
        throw Failure(VELO_ERR_PROTOCOL, "a peer has announced a receive in a cell that it does not have");
    const Announcement announcement{header.header.key, header.address, header.bytes, header.ticket,
                                    header.header.unused != 0};
    velo_message_send** const sent = awaited_.find(from.index, [&](const velo_message_send& send) {
        if (!send.takes_header || send.placement != nullptr) return false;
        const RendezvousHeader rendezvous = header_of(send);
        return rendezvous.header.key == announcement.key && rendezvous.bytes == announcement.bytes;
    });
    if (sent == nullptr) return announcements_[from.index].put(announcement);
    const auto* data = reinterpret_cast<const std::byte*>(header_of(**sent).address);
    velo_message_send* const answer = begin(from, announcement, data, *sent, true);
    if (answer == *sent) return;
    *sent = answer;
    place(from, answer);
}

velo_message_send* Placing::begin(Peer& to, const matching::Key& key, const std::byte* data,
                                  std::size_t bytes, velo_message_send* send) {
    if (announcements_.empty()) [[likely]]
        return send;
    const auto announcements = announcements_.find(to.index);
    if (announcements == announcements_.end()) return send;
    const std::optional<Announcement> announced = announcements->second.take(key, bytes);
    return announced ? begin(to, *announced, data, send, announced->when_idle) : send;
}

velo_message_send* Placing::begin(Peer& to, const Announcement& announcement, const std::byte* data,
                                  velo_message_send* send, bool when_idle) {
    std::optional<rma::Help> help =
        large_.helping(to, announcement.ticket, data, announcement.address, announcement.bytes);
    if (!help) return send;
    std::optional<rma::Share::Range> first;
    // Before the header leaves, so that the receiver does not begin alone.
    if (!when_idle && !(first = help->share.claim_back())) return send;
    if (free_.empty()) free_.push_back(&placements_.emplace_back());
    Placement& placement = *free_.back();
    free_.pop_back();
    placement.owner = this;
    placement.send.store(send, std::memory_order_relaxed);
    placement.bytes = announcement.bytes;
    placement.help = help;
    placement.when_idle = when_idle;
    if (first) placement.first = *first;
    expect_answer(&placement.answer);
    placement.answer.placement = &placement;
    placement.answer.done = [](velo_message_send* answer, velo_status) {
        auto* over = static_cast<Placement*>(answer->placement);
        std::lock_guard lock(over->owner->mutex_);
        over->owner->free_.push_back(over);
    };
    return &placement.answer;
}

void Placing::place(Peer& to, velo_message_send* answer) {
    auto& placement = *static_cast<Placement*>(answer->placement);
    placement.help->completion = {copied, &placement, VELO_OK, 0};
    if (placement.when_idle) return large_.help_when_idle(*placement.help);
    large_.shared_gets().help_now(to, *placement.help, placement.first);
    copied(&placement, VELO_OK, placement.help->completion.result);
}

void Placing::copied(void* argument, velo_status, std::uint64_t bytes) {
    auto& placement = *static_cast<Placement*>(argument);
    if (bytes == placement.bytes) {
        ++placement.owner->placed_;
        placement.complete(VELO_OK);
    }
    settle(&placement.answer, VELO_OK);
}

void Placing::answered(velo_message_send* send, velo_status status) {
    if (send->placement != nullptr) [[unlikely]]
        static_cast<Placement*>(send->placement)->complete(status);
    settle(send, status);
}

}  // namespace velo::messaging
