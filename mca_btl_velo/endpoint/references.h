// Which messages go by reference (flow/outbox.h), and how they are stored: what would take more packets than
// credits allow, and of what they allow whatever way the messages of a size have shown to be the fastest.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "endpoint/filling.h"
#include "endpoint/peer.h"
#include "platform/contest.h"
#include "platform/ticks.h"
#include "types/engine.h"

namespace velo::endpoint {

class References {
 public:
    // The ways of what credits allow to go in packets: by reference, stored in a chunk as usual at the peer's
    // distance, or in packets, or in a chunk as at the other distance, or in turn, as usual, or in a chunk by
    // string.
    enum : std::uint8_t { kUsual, kInPackets, kOtherwise, kInTurn, kByString, kWays };

    // `outbox`: there is one. Bytes that go until a way has settled: one round of the memory in turn, and of
    // the mailbox.
    References(const velo_config& config, bool outbox, std::size_t in_turn, std::size_t mailbox)
        : bytes_(config.reference_bytes), shift_(shift_of(config)), possible_(shift_ > 0 && outbox) {
        contest_.settles(kInTurn, in_turn);
        contest_.settles(kInPackets, std::min(mailbox, kMostSettled));
    }

    bool possible() const { return possible_; }
    // Otherwise parameters say the way.
    bool measured() const { return bytes_ == 0; }
    // Bytes of a message that goes by reference whatever the credits, or may.
    std::uint32_t least() const {
        return measured() ? std::uint32_t{kLeastReferred} : static_cast<std::uint32_t>(bytes_);
    }
    // By reference goes what takes more packets than those allowed >> this: never, where all of them may go
    // in packets; where they would take more than half; always.
    unsigned shift() const { return shift_; }
    bool by_half() const { return shift_ == kHalf; }

    // Packets of several messages or one, with so many allowed.
    std::uint32_t most_in_packets(const Peer& peer, std::uint32_t allowed) const {
        return std::max(allowed >> shift_, peer.domain.always_in_packets);
    }
    // Of a message that would take so many packets, and so many may leave now.
    bool prefers(const Peer& peer, std::size_t bytes, std::uint64_t packets, std::uint32_t allowed) const {
        return allowed > 0 && (packets > most_in_packets(peer, allowed) || takes(peer, bytes));
    }
    // Of a message that credits allow to go in packets.
    bool takes(const Peer& peer, std::size_t bytes) const {
        return bytes >= peer.refer_from && (!measured() || contest_.way(bytes) != kInPackets);
    }
    // Windows would fill the chunks: what comes behind many of which the peer is not known to have read any
    // goes in turn instead.
    unsigned way_of(const Peer& peer, std::size_t bytes) const {
        if (!is_tried(peer, bytes)) return kUsual;
        const unsigned way = contest_.way(bytes);
        return way == kUsual && peer.lent.chunks >= kManyAtHand && bytes >= kLeastOfMany ? unsigned{kInTurn}
                                                                                         : way;
    }
    static Storing storing_of(const Peer& peer, unsigned way) {
        return storing_for(peer.distance.far() != (way == kOtherwise), way == kByString);
    }
    // A message has left. True: those of its size take another way from now on.
    bool went(const Peer& peer, std::size_t bytes) {
        return is_tried(peer, bytes) && contest_.went(bytes, platform::ticks);
    }

    // That of the messages of a size, as it is logged.
    const char* text(std::size_t bytes) const noexcept {
        constexpr const char* kTexts[kWays] = {
            "go by reference at hand", "go in packets",
            "go by reference at hand, stored as for peers at the other distance", "go by reference in turn",
            "go by reference at hand, stored by the string instruction"};
        return kTexts[contest_.way(bytes)];
    }
    // Contest::digits; 0: there is no choice.
    std::uint64_t digits() const { return possible_ && measured() ? contest_.digits() : 0; }

 private:
    static constexpr unsigned kNever = 0, kHalf = 1, kAlways = 31;
    static unsigned shift_of(const velo_config& config) {
        const std::string_view choice = config.by_reference;
        return choice == "never" ? kNever : choice == "always" ? kAlways : kHalf;
    }
    bool is_tried(const Peer& peer, std::size_t bytes) const {
        return bytes >= peer.refer_from && measured();
    }

    static constexpr std::uint32_t kManyAtHand = 8;
    static constexpr std::size_t kLeastOfMany = 4096;  // bytes
    static constexpr std::size_t kLeastReferred = 512;
    static constexpr std::size_t kLeastInTurn = 2048, kBlockBytes = 1UL * 1024 * 1024;
    // Of the mailbox, whose lines stay in the reader's cache unless others go between.
    static constexpr std::size_t kMostSettled = 512UL * 1024;
    std::uint64_t bytes_;  // reference_bytes
    unsigned shift_;
    bool possible_;
    platform::Contest<kLeastReferred, 5, 64, kWays, platform::kLeastByString, kBlockBytes, kLeastInTurn>
        contest_;
};

}  // namespace velo::endpoint
