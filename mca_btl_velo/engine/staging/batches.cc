#include "engine/staging/batches.h"

#include <algorithm>
#include <mutex>
#include <string>

#include "platform/failure.h"

namespace velo::engine {
namespace {

[[noreturn, gnu::cold]] void refuse(const wire::Enclosed& message) {
    throw Failure(VELO_ERR_PROTOCOL, "a batch holds a message of " + std::to_string(message.bytes) +
                                         " bytes that no correct peer sends");
}

}  // namespace

void Batches::open(Peer& peer, std::byte* data, std::size_t room) {
    peer.batch_out = wire::BatchWriter(data, room);
    peer.plain.store(false, std::memory_order_relaxed);
    open_.push_back(&peer);
    idle_.want();
}

void Batches::close(Peer& peer) {
    peer.batch_out.close();
    peer.plain.store(peer.may_be_plain, std::memory_order_relaxed);
    std::erase(open_, &peer);
}

void Batches::follow(Peer& peer, std::byte* data, std::size_t room) {
    peer.batch_in = wire::BatchReader(data, room);
    peer.arriving = Incoming::State::kBatch;
    followed_.push_back(&peer);
    std::lock_guard lock(mutex_);
    idle_.want();
}

int Batches::read(Peer& peer, int most) {
    int messages = 0;
    for (; messages < most && host_.left_of_poll() > 0; ++messages) {
        const wire::Enclosed next = peer.batch_in.next();
        if (next.kind == wire::Enclosed::kNothing) break;
        if (!peer.batch_in.is_sound(next)) refuse(next);
        peer.arriving = Incoming::State::kIdle;
        if (next.kind == wire::Enclosed::kEnd) {
            peer.batch_in.drop();
            std::erase(followed_, &peer);
            host_.has_read(peer);
            break;
        }
        if (!host_.take_enclosed(peer, next, peer.batch_in.data())) refuse(next);
        peer.arriving = Incoming::State::kBatch;
        peer.batch_in.pass(next);
    }
    return messages;
}

bool Batches::is_quiet() const {
    return std::all_of(followed_.begin(), followed_.end(), [](const Peer* peer) {
        return peer->batch_in.next().kind == wire::Enclosed::kNothing;
    });
}

// Gives each peer an equal share of the poll. The next poll begins with the next peer, so a peer that refills
// its batches at once leaves room for the others.
int Batches::read_followed() {
    polled_ = followed_;  // one that ends is erased there
    const std::size_t peers = polled_.size(), first = next_++;
    const int share = std::max(1, host_.left_of_poll() / static_cast<int>(peers));
    int messages = 0;
    for (std::size_t i = 0; i < peers; ++i) messages += read(*polled_[(first + i) % peers], share);
    return messages;
}

int Batches::run(bool /*busy*/) {
    int messages = 0;
    if (!followed_.empty()) messages += read_followed();
    std::lock_guard lock(mutex_);
    for (std::size_t i = open_.size(); i-- > 0;)
        if (pace_.is_latency_bound(*open_[i])) close(*open_[i]);
    return messages;
}

void Batches::ended(Peer& peer) {
    if (!peer.batch_out.is_open()) return;
    peer.batch_out.drop();
    std::erase(open_, &peer);
}

// What it has appended is read first. Of one that has ended nothing more comes.
bool Batches::may_depart(const Peer& peer) {
    return !peer.batch_in.is_open() || peer.batch_in.next().kind == wire::Enclosed::kNothing;
}

void Batches::departed(Peer& peer) {
    peer.batch_in.drop();
    std::erase(followed_, &peer);
}

}  // namespace velo::engine
