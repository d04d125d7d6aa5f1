#include "engine/staging/staging.h"

#include <exception>

#include "engine/routes/routes.h"
#include "types/log_line.h"

namespace velo::engine {
namespace {

void look(flow::OutboxShare& share) {
    static_cast<SentReferences&>(share).look();
}

}  // namespace

Staging::Staging(fabric::shm::Segment& mailbox, const velo_config& config, fabric::shm::Statistics& counts)
    : mailbox_(mailbox),
      config_(config),
      counts_(counts),
      rotating_(mailbox.outbox_plan().rotating_bytes(), least_rotating_bytes(), mailbox.has_slow_pages()),
      outbox_(mailbox.outbox_plan(), &rotating_) {}

bool Staging::is_mapped_by(Peer& peer) const {
    if (!peer.is_local() || peer.ending) return false;
    if (!peer.maps_us) peer.maps_us = mailbox_.senders().reads(peer.index);
    return peer.maps_us;
}

flow::Outbox::Chunk Staging::allocate(Peer& peer, std::size_t bytes, Search search) {
    SentReferences& sent = peer.sent_references;
    sent.note_told();
    flow::Outbox::Chunk chunk;
    if (Routes::rotates(peer, bytes, rotating_memory_ == Memory::kThere)) chunk = cut(peer, bytes);
    if (chunk.room == 0)
        chunk = search == Search::kAllChunks ? outbox_.take(sent, bytes, look)
                                             : outbox_.take_at_hand(sent, bytes, look);
    counts_.outbox_high_water = outbox_.counters().high_water;
    counts_.outbox_full = outbox_.counters().full;
    return chunk;
}

flow::Outbox::Chunk Staging::cut(Peer& peer, std::size_t bytes) {
    if (!has_rotating()) return {};
    const flow::Outbox::Chunk chunk =
        outbox_.take_rotating(peer.sent_references, static_cast<std::uint32_t>(bytes), look);
    if (chunk.room > 0) mailbox_.fault_in_chunk(chunk.place, chunk.room);
    return chunk;
}

void Staging::sweep() {
    outbox_.sweep(look);
}

bool Staging::has_rotating() {
    if (rotating_memory_ != Memory::kNotYet) return rotating_memory_ == Memory::kThere;
    rotating_memory_ = Memory::kRefused;
    if (mailbox_.deposit_plan().none()) return false;
    try {
        mailbox_.provide_rings();
        rotating_memory_ = Memory::kThere;
        return true;
    } catch (const std::exception& failure) {
        log_line(config_, 5, "no memory for staging long messages: %s", failure.what());
        return false;
    }
}

}  // namespace velo::engine
