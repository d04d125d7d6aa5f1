// The sender's side: what credits allow goes out at once, the rest waits in the queue of its peer.
#include <algorithm>
#include <mutex>

#include "endpoint/engine.h"
#include "platform/failure.h"

namespace velo::endpoint {
namespace {

fabric::MessageView view_of(const velo_send& send) {
    return {{static_cast<const std::byte*>(send.part[0]), static_cast<const std::byte*>(send.part[1])},
            {send.bytes[0], send.bytes[1]}};
}

// Whether the last packet of a message of `total` bytes has room for a piggybacked count.
bool last_packet_has_room(std::size_t total) {
    std::size_t last = total - (wire::packets_for(total) - 1) * wire::kPayloadBytes;
    return last <= wire::kPiggybackOffset;
}

}  // namespace

// Stores as many packets of the message as credits allow. True if all of it is on its way.
bool Engine::push(Peer& peer, velo_send& send) {
    std::size_t total = send.bytes[0] + send.bytes[1];
    std::uint64_t remaining = wire::packets_for(total) - send.sent / wire::kPayloadBytes;
    while (remaining > 0) {
        auto packets =
            static_cast<std::uint32_t>(std::min<std::uint64_t>(remaining, policy_->credits(peer.index)));
        if (packets == 0) return false;
        fabric::Run run{view_of(send),      send.sent, packets, send.tag, send.flags, 0,
                        policy_->limited(), false};
        if (packets == remaining && last_packet_has_room(total))
            run.piggyback = policy_->piggyback(peer.index, *this);
        std::uint32_t carried = peer.link->carry(run);
        if (carried == 0) return false;
        policy_->take(peer.index, carried);
        statistics_.data_packets += carried;
        remaining -= carried;
        send.sent = std::min<std::size_t>(total, send.sent + carried * wire::kPayloadBytes);
    }
    return true;
}

velo_status Engine::send_now(Peer& peer, const velo_send& message) {
    std::lock_guard lock(mutex_);
    std::size_t total = message.bytes[0] + message.bytes[1];
    std::uint64_t packets = wire::packets_for(total);
    if (!peer.queue.empty() || packets > policy_->credits(peer.index)) return VELO_WOULD_BLOCK;

    fabric::Run run{view_of(message),   0,   static_cast<std::uint32_t>(packets), message.tag, 0, 0,
                    policy_->limited(), true};
    if (last_packet_has_room(total)) run.piggyback = policy_->piggyback(peer.index, *this);
    if (peer.link->carry(run) == 0) return VELO_WOULD_BLOCK;
    policy_->take(peer.index, run.packets);
    statistics_.data_packets += packets;
    ++statistics_.messages_sent;
    assert_invariants();
    return VELO_OK;
}

velo_status Engine::send_start(Peer& peer, velo_send* send) {
    std::lock_guard lock(mutex_);
    send->sent = 0;
    send->flags = 0;
    ++statistics_.messages_sent;
    bool sent = peer.queue.empty() && push(peer, *send);
    assert_invariants();
    if (sent) return VELO_OK;
    ++statistics_.messages_delayed;
    enqueue(peer, send);
    return VELO_QUEUED;
}

void Engine::enqueue(Peer& peer, velo_send* send) {
    peer.queue.push(send);
    if (!policy_->limited() && !peer.stalled) {
        // No credit will come to wake this peer: look again on each progress.
        peer.stalled = true;
        stalled_.push_back(&peer);
        housekeeping_.store(true, std::memory_order_relaxed);
    }
}

// Credits have come: control packets first, then the queue (design/flow-control.md, flush).
void Engine::flush(Peer& peer) {
    if (policy_->control_waiting(peer.index) && policy_->credits(peer.index) > 0) {
        policy_->send_waiting_control(peer.index, *this);
    }
    while (!peer.queue.empty()) {
        velo_send* send = peer.queue.front();
        std::size_t before = send->sent;
        bool complete = push(peer, *send);
        peer.queue.sent(send->sent - before);
        if (!complete) break;
        peer.queue.pop();
        if (send->flags & wire::kInternal) {
            send->done(send, VELO_OK);
        } else {
            send->status = VELO_OK;
            completed_.push(send);
            housekeeping_.store(true, std::memory_order_relaxed);
        }
    }
}

void Engine::emit(flow::PeerIndex to, wire::PacketKind kind, std::uint32_t value) {
    reachable_peer(to).link->carry_control(kind, value);
}

void Engine::post(flow::PeerIndex to, velo_send* message) {
    Peer& peer = reachable_peer(to);
    message->sent = 0;
    if (peer.queue.empty() && push(peer, *message)) return message->done(message, VELO_OK);
    enqueue(peer, message);
}

velo_status Engine::transfer(Peer& peer, rma::Direction direction, void* local, std::uint64_t remote,
                             std::size_t bytes, const rma::Completion& completion) {
    std::unique_lock lock(mutex_);
    const singlecopy::Mechanism* mechanism = rma_.mechanism_for(peer.index);
    if (mechanism == nullptr) {
        rma_.start(direction, peer.index, local, remote, bytes, completion);
        return VELO_QUEUED;
    }
    statistics_.rma_single_copy_bytes += bytes;
    const singlecopy::RemoteProcess& process = rma_.process(peer.index);
    lock.unlock();
    int error = direction == rma::Direction::kGet ? mechanism->read(process, local, remote, bytes)
                                                  : mechanism->write(process, local, remote, bytes);
    if (error != 0) return VELO_ERR_REMOTE;
    completion.done(completion.argument, VELO_OK, 0);
    return VELO_OK;
}

velo_status Engine::atomic(Peer& peer, velo_atomic operation, unsigned width, std::uint64_t remote,
                           std::uint64_t operand, std::uint64_t compare, const rma::Completion& completion) {
    std::lock_guard lock(mutex_);
    return rma_.start_atomic(peer.index, operation, width, remote, operand, compare, completion);
}

}  // namespace velo::endpoint
