// The receiver's side: packets leave the mailbox in arrival order, their contents go up, their credits go
// back.
//
// A packet is delivered before its slot is accounted for: the upper layer reads it in place, and the slot may
// be overwritten as soon as its credit is on the way. For the flow control rules this is the schedule in
// which everything that the callback sends was sent just before the packet was retrieved.
#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

#include "endpoint/engine.h"
#include "platform/failure.h"

namespace velo::endpoint {
namespace {

// Packets handled by one call of progress at most, so that the upper layer gets to act on what has come.
constexpr int kBatch = 256;
// Slots are given back to the writers of policy "none" in steps of this many.
constexpr int kFreeStep = 16;

template <typename T>
T read_payload(const std::byte* payload) {
    T value;
    std::memcpy(&value, payload, sizeof value);
    return value;
}

}  // namespace

int Engine::progress() {
    if (failed_ || !gate_.try_enter()) return 0;
    int handled = 0;
    try {
        while (handled < kBatch && !failed_) {
            std::uint64_t word = reader_.poll();
            if (word == 0) break;
            int packets = handle(word);
            if (handled % kFreeStep + packets >= kFreeStep) free_slots();
            handled += packets;
        }
        if (handled > 0) reader_.publish();
        if (housekeeping_.load(std::memory_order_relaxed)) housekeep();
    } catch (const Failure& failure) {
        fail(failure.status(), failure.what());
    }
    gate_.leave();
    return handled;
}

void Engine::free_slots() {
    std::uint64_t occupied = reader_.occupancy() + kFreeStep;
    statistics_.mailbox_high_water =
        std::max(statistics_.mailbox_high_water, std::min<std::uint64_t>(occupied, reader_.capacity()));
    reader_.publish();
}

int Engine::handle(std::uint64_t word) {
    wire::Header header = wire::Header::unpack(word);
    if (!header.plausible(policy_->config().total_peers())) {
        fail(VELO_ERR_PROTOCOL, "an impossible packet is in the mailbox: " + wire::to_string(header));
        return 0;
    }
    Peer& peer = peer_at(header.source);
    if (header.kind == wire::PacketKind::kData) return retrieve_data(peer, header);

    auto value = read_payload<std::uint32_t>(reader_.payload());
    reader_.advance();
    std::lock_guard lock(mutex_);
    switch (header.kind) {
        case wire::PacketKind::kCredit:
            policy_->credit_received(peer.index, value);
            break;
        case wire::PacketKind::kRequest:
            policy_->request_retrieved(peer.index, *this);
            break;
        case wire::PacketKind::kResponse:
            policy_->response_retrieved(peer.index, value, *this);
            break;
        case wire::PacketKind::kData:
            break;
    }
    flush(peer);
    assert_invariants();
    return 1;
}

int Engine::retrieve_data(Peer& peer, const wire::Header& header) {
    std::byte* payload = reader_.payload();
    std::uint32_t credits = 0;
    if (header.flags & wire::kPiggyback)
        credits = read_payload<std::uint16_t>(payload + wire::kPiggybackOffset);
    if (!deliver(peer, header, payload)) {
        fail(VELO_ERR_PROTOCOL, "a packet does not belong to a message: " + wire::to_string(header));
        return 0;
    }
    reader_.advance();
    int packets = 1;
    if (policy_->limited()) {
        std::lock_guard lock(mutex_);
        policy_->data_retrieved(peer.index, *this);
        if (credits > 0) {
            policy_->credit_received(peer.index, credits);
            flush(peer);
        }
        assert_invariants();
    }
    if (peer.incoming.state != Incoming::State::kIdle) packets += gather(peer);
    return packets;
}

// The middle packets of a message come in a row and have equal headers: takes as many as are there and for
// whose slots nothing is due, without looking at each of them again. Returns their number.
int Engine::gather(Peer& peer) {
    Incoming& incoming = peer.incoming;
    bool rma = incoming.state == Incoming::State::kRma;
    const wire::Header middle{wire::PacketKind::kData,
                              rma ? std::uint8_t{wire::kInternal} : std::uint8_t{0},
                              incoming.tag,
                              wire::kPayloadBytes,
                              0,
                              peer.index};
    const std::uint64_t expected = middle.pack();
    std::uint64_t most = std::min<std::uint64_t>(incoming.room / wire::kPayloadBytes, kBatch);
    std::unique_lock lock(mutex_);
    most = std::min<std::uint64_t>(most, policy_->quiet_packets(peer.index));
    std::uint32_t packets = 0;
    while (packets < most && wire::Header::without_lap(reader_.poll()) == expected) {
        incoming.append_full(reader_.payload());
        reader_.advance();
        ++packets;
    }
    policy_->data_retrieved_quietly(peer.index, packets);
    return static_cast<int>(packets);
}

// False if the packet does not fit what came before it.
bool Engine::deliver(Peer& peer, const wire::Header& header, std::byte* payload) {
    constexpr std::uint8_t kOnePacket = wire::kFirst | wire::kLast;
    Incoming& incoming = peer.incoming;
    bool first = header.flags & wire::kFirst;
    if (first != (incoming.state == Incoming::State::kIdle)) return false;
    if ((header.flags & (kOnePacket | wire::kInternal)) == kOnePacket) {
        config_.message(config_.context, header.tag, payload, header.length);
        return true;
    }
    if (first ? !begin_message(peer, header, payload) : !incoming.append(payload, header.length))
        return false;
    if (!(header.flags & wire::kLast)) return true;

    bool rma = incoming.state == Incoming::State::kRma;
    incoming.state = Incoming::State::kIdle;
    if (rma) return incoming.room == 0 && deliver_rma(peer, incoming.rma);
    config_.message(config_.context, incoming.tag, incoming.buffer.get(),
                    buffers_.buffer_bytes() - incoming.room);
    buffers_.give_back(std::move(incoming.buffer));
    return true;
}

bool Engine::begin_message(Peer& peer, const wire::Header& header, std::byte* payload) {
    Incoming& incoming = peer.incoming;
    if (!(header.flags & wire::kInternal)) {
        incoming.state = Incoming::State::kMessage;
        incoming.tag = header.tag;
        incoming.buffer = buffers_.take();
        incoming.to = incoming.buffer.get();
        incoming.room = buffers_.buffer_bytes();
        return incoming.append(payload, header.length);
    }
    if (header.length < sizeof incoming.rma) return false;
    std::memcpy(&incoming.rma, payload, sizeof incoming.rma);
    rma::Placement placement;
    {
        std::lock_guard lock(mutex_);
        if (!rma_.begin(peer.index, incoming.rma, &placement)) return false;
    }
    incoming.state = Incoming::State::kRma;
    incoming.tag = header.tag;
    incoming.to = placement.data;
    incoming.room = placement.bytes;
    return incoming.append(payload + sizeof incoming.rma, header.length - sizeof incoming.rma);
}

bool Engine::deliver_rma(Peer& peer, const rma::MessageHeader& header) {
    rma::Completion completion;
    {
        std::lock_guard lock(mutex_);
        completion = rma_.finish(peer.index, header);
    }
    if (completion.done != nullptr)
        completion.done(completion.argument, completion.status, completion.result);
    return true;
}

void Engine::housekeep() {
    {
        std::lock_guard lock(mutex_);
        flush_stalled();
        withdraw_name();
        bool more = !stalled_.empty() || !awaited_.empty();
        housekeeping_.store(more, std::memory_order_relaxed);
    }
    run_completions();
}

void Engine::flush_stalled() {
    std::erase_if(stalled_, [this](Peer* peer) {
        flush(*peer);
        peer->stalled = !peer->queue.empty();
        return !peer->stalled;
    });
}

// Takes the mailbox's name away once every peer that needed it has attached.
void Engine::withdraw_name() {
    if (awaited_.empty()) return;
    std::erase_if(awaited_, [this](flow::PeerIndex index) { return mailbox_.introduced(index) != nullptr; });
    if (awaited_.empty()) mailbox_.file().unpublish();
}

void Engine::run_completions() {
    SendQueue due;
    {
        std::lock_guard lock(mutex_);
        due = std::exchange(completed_, SendQueue());
    }
    while (!due.empty()) {
        velo_send* send = due.front();
        due.pop();
        send->done(send, send->status);
    }
}

}  // namespace velo::endpoint
