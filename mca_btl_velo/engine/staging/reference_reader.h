// Reads messages that came by reference, where they lie in the outbox of their sender (flow/outbox.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/peers/peer.h"
#include "fabric/shm/segment.h"
#include "wire/packet.h"

namespace velo::engine {

class ReferenceReader {
 public:
    // `own`: the segment of this process, which outlives it. threads: others may send meanwhile.
    ReferenceReader(const fabric::shm::Segment& own, bool threads) : own_(own), threads_(threads) {}

    // Whether a chunk of the sender's may be there.
    static bool is_chunk(const fabric::shm::Segment& segment, const wire::Reference& reference);
    // The data, in place. Throws Failure where the sender, which has that name, has no chunk.
    static std::byte* data(const fabric::shm::Segment& segment, const wire::Reference& reference,
                           std::uint64_t sender);
    // Lines that travel while the message is matched.
    void fetch_lines(Peer& peer, const std::byte* data, const wire::Reference& reference) const;
    // Whether a message that has just come is one of a stream, and is handed up in a copy.
    bool counts_as_streamed(Peer& peer, std::size_t bytes) const;
    // Until the next one.
    std::byte* copy_of(const std::byte* data, std::size_t bytes);
    // It has been read: the sender may store there again.
    void release(Peer& peer) const;

 private:
    // Bytes of a message that is handed up in a copy.
    static constexpr std::size_t kLeastCopied = 3072, kMostCopied = 12UL * 1024;

    const fabric::shm::Segment& own_;
    const bool threads_;
    std::vector<std::byte> copied_;  // once there is one
};

}  // namespace velo::engine
