// Which messages go by reference (flow/outbox.h): what would take more packets than credits allow, and of
// what they allow the lengths that the table of routes says.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "endpoint/filling.h"
#include "endpoint/peer.h"
#include "types/engine.h"
#include "wire/packet.h"

namespace velo::endpoint {

class References {
 public:
    // `outbox`: there is one.
    References(const velo_config& config, bool outbox)
        : shift_(shift_of(config)), possible_(shift_ > 0 && outbox) {}

    bool possible() const { return possible_; }
    // By reference goes what takes more packets than those allowed >> this: never, where all of them may go
    // in packets; where they would take more than half; always.
    unsigned shift() const { return shift_; }
    // Bytes from which on a message goes by reference whatever the credits, where the table says so many.
    std::uint32_t from(std::size_t table) const {
        if (!possible_) return ~0U;
        if (shift_ == kAlways) return wire::kPayloadBytes + 1;
        return static_cast<std::uint32_t>(std::min<std::size_t>(table, ~0U));
    }

    // Packets of several messages or one, with so many allowed.
    std::uint32_t most_in_packets(const Peer& peer, std::uint32_t allowed) const {
        return std::max(allowed >> shift_, peer.domain.always_in_packets);
    }
    // Of a message that would take so many packets, and so many may leave now.
    bool prefers(const Peer& peer, std::size_t bytes, std::uint64_t packets, std::uint32_t allowed) const {
        return allowed > 0 && (packets > most_in_packets(peer, allowed) || takes(peer, bytes));
    }
    // Of a message that credits allow to go in packets.
    static bool takes(const Peer& peer, std::size_t bytes) { return bytes >= peer.refer_from; }
    // Behind messages that the peer has not read yet the next one lies in memory that goes round: the lines
    // of a chunk that is used again at once would have to come back from the peer first. `provided`: there is
    // such memory already; a process whose messages are read one by one does without.
    static bool rotates(const Peer& peer, std::size_t bytes, bool provided) {
        return bytes >= kLeastInTurn && peer.lent.chunks >= (provided ? kSomeUnread : kManyUnread);
    }

 private:
    static constexpr unsigned kNever = 0, kHalf = 1, kAlways = 31;
    static unsigned shift_of(const velo_config& config) {
        const std::string_view choice = config.by_reference;
        return choice == "never" ? kNever : choice == "always" ? kAlways : kHalf;
    }

    static constexpr std::size_t kLeastInTurn = 2048;  // bytes
    static constexpr std::uint32_t kSomeUnread = 2, kManyUnread = 8;
    unsigned shift_;
    bool possible_;
};

}  // namespace velo::endpoint
