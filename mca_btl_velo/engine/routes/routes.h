// How a message to a process on this node goes: what the table of routes says for that process, and what has
// to go by reference (flow/outbox.h) whatever it says, since it would take more packets than credits allow.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "engine/peers/peer.h"
#include "engine/peers/sizing.h"
#include "engine/routes/sent_buffers.h"
#include "engine/routes/table.h"
#include "flow/batching.h"
#include "platform/ticks.h"
#include "types/engine.h"
#include "wire/packet.h"

namespace velo::engine {

class Routes {
 public:
    // `outbox`: there is one. Throws Failure.
    Routes(const velo_config& config, bool outbox)
        : config_(config),
          shift_(shift_of(config)),
          possible_(shift_ > 0 && outbox),
          table_(choose(config, &source_)) {}

    const routes::Table& table() const { return table_; }
    // Where the table comes from, for the log.
    const std::string& source() const { return source_; }

    // A message of more than a packet is about to leave for the peer, which is on this node: now and then the
    // distance of its core is measured, and what goes by reference follows from that.
    void measure_distance(Peer& peer) noexcept {
        if (peer.proximity.count_message()) [[unlikely]]
            look_at_distance(peer);
    }

    // Eager messages.

    // A message goes by reference if it takes more packets than (allowed packets >> shift). 0: never; 1:
    // above half of them; 31: always.
    unsigned shift() const { return shift_; }
    bool has_batches() const { return possible_; }
    // Sets what follows from the peer's distance.
    void apply_to(Peer& peer) const {
        peer.reference_from = reference_from(peer);
        peer.copy_by = table_.row(peer.proximity.far()).copying;
    }
    // Bytes from which on a message to that peer goes by reference whatever the credits.
    std::uint32_t reference_from(const Peer& peer) const {
        if (!possible_) return ~0U;
        if (shift_ == kAlways) return wire::kPayloadBytes + 1;
        return static_cast<std::uint32_t>(
            std::min<std::size_t>(table_.row(peer.proximity.far()).reference_from, ~0U));
    }
    // Packets of several messages or one, with so many allowed.
    std::uint32_t most_in_packets(const Peer& peer, std::uint32_t allowed) const {
        return std::max(allowed >> shift_, peer.domain.always_in_packets);
    }
    // Of a message that would take so many packets, and so many may leave now.
    bool prefers_reference(const Peer& peer, std::size_t bytes, std::uint64_t packets,
                           std::uint32_t allowed) const {
        return allowed > 0 && (packets > most_in_packets(peer, allowed) || goes_by_reference(peer, bytes));
    }
    // Of a message that credits allow to go in packets.
    static bool goes_by_reference(const Peer& peer, std::size_t bytes) {
        return bytes >= peer.reference_from;
    }
    // Whether the next message lies in rotating memory: behind messages that the peer has not read, as the
    // lines of a chunk that is used again at once would have to come back from the peer first. `provided`:
    // there is such memory already; a process whose messages are read one by one does without. A batch is
    // many.
    static bool rotates(const Peer& peer, std::size_t bytes, bool provided) {
        const bool some = provided || bytes >= flow::kBatchChunkBytes;
        return bytes >= kLeastRotating && peer.sent_references.unread() >= (some ? kSomeUnread : kManyUnread);
    }

    // Messages by rendezvous.

    // Asked once for a message, by its sender.
    bool stages(Peer& peer, const void* data, std::size_t bytes) {
        const bool cold = !sent_buffers_.again(data, bytes);
        const bool stages = large(peer).stages(bytes, cold);
        peer.traffic.pass();
        return stages;
    }
    // Where it is not staged, by its receiver.
    bool both_copy(const Peer& peer, std::size_t bytes) const { return large(peer).both_copy(bytes); }

 private:
    // Which table holds in this process, and, for the log, where it comes from. Throws Failure.
    static routes::Table choose(const velo_config& config, std::string* source);
    const routes::LargeLimits& large(const Peer& peer) const {
        return table_.row(peer.proximity.far()).large(peer.traffic.is_bidirectional());
    }
    [[gnu::noinline]] void look_at_distance(Peer& peer) noexcept;
    static constexpr unsigned kNever = 0, kHalf = 1, kAlways = 31;
    static unsigned shift_of(const velo_config& config) {
        const std::string_view choice = config.by_reference;
        return choice == "never" ? kNever : choice == "always" ? kAlways : kHalf;
    }

    static constexpr std::size_t kLeastRotating = 2048;  // bytes
    static constexpr std::uint32_t kSomeUnread = 2, kManyUnread = 8;
    const velo_config& config_;
    std::uint64_t opened_ns_ = platform::now_ns(), opened_ticks_ = platform::ticks();
    unsigned shift_;
    bool possible_;
    std::string source_;  // before table_, which it is of
    routes::Table table_;
    routes::SentBuffers sent_buffers_;
};

}  // namespace velo::engine
