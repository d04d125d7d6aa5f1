#include "messaging/engine_channel.h"

#include <cstddef>
#include <mutex>

#include "messaging/peeks.h"
#include "messaging/send_events.h"
#include "platform/failure.h"

namespace velo::messaging {
namespace {

velo_message_send* owner_of(velo_send* send) {
    return reinterpret_cast<velo_message_send*>(reinterpret_cast<std::byte*>(send) -
                                                offsetof(velo_message_send, send));
}

fabric::MessageView view_of(const Header* message, std::size_t bytes) {
    return {{reinterpret_cast<const std::byte*>(message), nullptr}, {bytes, 0}};
}

}  // namespace

void EngineChannel::say(Peer& to, Header* message, std::size_t bytes) {
    Shares::Share& share = shares_.of(to);
    if (!share.reached) reach(to, share);
    message->returned = Shares::take_owed(share);
    if (engine_.send_now(to, engine::kSinkTag, view_of(message, bytes)) == VELO_OK) return;
    velo_send* const note = notes_->keep(message, bytes, engine::kSinkTag);
    if (engine_.send_start(to, note) != VELO_QUEUED) Notes::drop(note);
}

bool EngineChannel::is_crowded() const {
    return notes_->waiting() >= Peeks::kMost;
}

void EngineChannel::say_done(Peer& to, std::uint64_t id, velo_status status) {
    std::lock_guard lock(mutex_);
    say(to, DoneHeader{{{0, 0, static_cast<std::int32_t>(status)}, 0, Kind::kDone, 0}, id});
}

void EngineChannel::notify(Peer& to, const Notice& notice) {
    std::lock_guard lock(mutex_);
    say(to, NoticeHeader{{{}, 0, Kind::kNotice, 0}, notice});
}

void EngineChannel::return_cells(Peer& to) {
    Header header{{}, 0, Kind::kCredits, 0};
    std::lock_guard lock(mutex_);
    Shares::Share& share = shares_.of(to);
    header.returned = Shares::take_owed(share);
    if (header.returned == 0) return;
    if (engine_.send_now(to, engine::kSinkTag, view_of(&header, sizeof header)) != VELO_OK)
        share.owed += header.returned;
}

velo_status EngineChannel::queue(Peer& to, std::size_t header_bytes, const std::byte* data, std::size_t bytes,
                                 velo_message_send* send) {
    send->send.part[0] = send->header;
    send->send.bytes[0] = header_bytes;
    send->send.part[1] = data;
    send->send.bytes[1] = bytes;
    send->send.tag = engine::kSinkTag;
    send->send.done = [](velo_send* sent, velo_status status) { settle(owner_of(sent), status); };
    const velo_status status = engine_.send_start(to, &send->send);
    if (status != VELO_OK) return status;
    return is_last(send) ? send->status : VELO_QUEUED;
}

void EngineChannel::send_header(Peer& to, velo_message_send* send) {
    if (const velo_status status = queue(to, sizeof(RendezvousHeader), nullptr, 0, send);
        status != VELO_QUEUED)
        throw Failure(status, "a message that was held back cannot be sent");
}

}  // namespace velo::messaging
