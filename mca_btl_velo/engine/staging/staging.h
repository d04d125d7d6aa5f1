// Memory of this process that its peers on this node read messages and staged data from: the chunks of its
// outbox (flow/outbox.h) and what is cut from rotating memory (flow/rotating_memory.h). Under the engine's
// mutex.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/peers/peer.h"
#include "fabric/shm/segment.h"
#include "flow/outbox.h"
#include "flow/rotating_memory.h"
#include "types/engine.h"

namespace velo::engine {

class Staging {
 public:
    enum class Search : std::uint8_t { kOwnChunks, kAllChunks };

    // `mailbox`: the segment of this process. All of it outlives this.
    Staging(fabric::shm::Segment& mailbox, const velo_config& config, fabric::shm::Statistics& counts);

    // The peer maps this memory, which has to outlive the process for it, and it has not ended.
    bool is_mapped_by(Peer& peer) const;

    // A chunk for `bytes` of a message to the peer; or for a part of them; without room if there is none.
    // kOwnChunks: one that holds them all, and of chunks in flight only the peer's are looked at.
    flow::Outbox::Chunk allocate(Peer& peer, std::size_t bytes, Search search);
    // Nobody has been told of it.
    void give_back(const flow::Outbox::Chunk& chunk) { outbox_.give_back(chunk); }
    // The peer has read all, or reads nothing any more.
    void free_all(Peer& peer) { outbox_.free_all(peer.sent_references); }
    // The chunk that the peer was sent last is the only one, and has been read: it may be stored into again.
    bool is_last_chunk_free(const Peer& peer) const {
        return outbox_.is_free_again(peer.sent_references.last_chunk, peer.sent_references);
    }
    std::byte* at(const flow::Outbox::Chunk& chunk) const { return mailbox_.chunk(chunk.place); }

    // Whether there is rotating memory. The first call provides it.
    bool has_rotating();
    flow::RotatingMemory& rotating() { return rotating_; }
    // Chunks that have been read are free again.
    void sweep();

    // The first violated invariant, or the empty string. For checked builds and tests.
    const char* violation() const { return outbox_.violation(); }

 private:
    flow::Outbox::Chunk cut(Peer& peer, std::size_t bytes);

    fabric::shm::Segment& mailbox_;
    const velo_config& config_;
    fabric::shm::Statistics& counts_;
    flow::RotatingMemory rotating_;
    flow::Outbox outbox_;
    enum class Memory : std::uint8_t { kNotYet, kThere, kRefused } rotating_memory_ = Memory::kNotYet;
};

}  // namespace velo::engine
