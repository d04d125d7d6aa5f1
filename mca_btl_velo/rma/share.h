// A transfer that two processes carry out together (dual copy): the initiator of a get reads from the front,
// its peer writes from the back, each claims the next units with a compare-and-swap. A peer that comes late,
// or never, costs nothing; one that comes after the end finds another generation and does nothing. An
// announced get is open before its data are there: the peer, who knows when they are, goes first.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "fabric/shm/share_cell.h"

namespace velo::rma {

using fabric::shm::ShareCell;

// What a peer is told of a shared transfer: generation 24 bits | cell 8.
constexpr std::uint32_t ticket_of(unsigned cell, std::uint32_t generation) {
    return generation << 8 | cell;
}
constexpr unsigned cell_of(std::uint32_t ticket) {
    return ticket & 0xff;
}
constexpr std::uint32_t generation_of(std::uint32_t ticket) {
    return ticket >> 8;
}

// One side's view of a shared transfer.
template <template <class> class Atom>
class BasicShare {
 public:
    struct Range {
        std::uint64_t offset, bytes;
    };

    static constexpr std::uint32_t kGenerations = 1U << 24;
    // 4 KiB, the kernel's page; more only where the counts would not fit.
    static constexpr std::uint64_t unit_for(std::uint64_t bytes) {
        std::uint64_t unit = 4096;
        while (bytes / unit >= kUnitLimit) unit *= 2;
        return unit;
    }

    enum class First : std::uint8_t { kInitiator, kPeer };
    BasicShare(fabric::shm::BasicShareCell<Atom>* cell, std::uint32_t generation, std::uint64_t bytes,
               First first = First::kInitiator)
        : cell_(cell),
          generation_(generation % kGenerations),
          bytes_(bytes),
          unit_(unit_for(bytes)),
          units_((bytes + unit_ - 1) / unit_),
          initiators_part_(std::min(units_, units_ / 2 + kHeadStartUnits)) {
        if (first == First::kPeer) initiators_part_ = units_ - initiators_part_;
    }

    // Initiator: opens the cell. The message that tells the peer orders it before the peer's claims. Claims
    // order nothing, they only must not overlap: relaxed, throughout.
    void open() {
        cell_->helped.store(0, std::memory_order_relaxed);
        cell_->failed.store(0, std::memory_order_relaxed);
        cell_->claims.store(pack(0, 0), std::memory_order_relaxed);
    }
    // Initiator: true if the peer has claimed nothing. It cannot any more.
    bool claim_all() {
        std::uint64_t nothing = pack(0, 0);
        return cell_->claims.compare_exchange_strong(nothing, pack(units_, 0), std::memory_order_relaxed,
                                                     std::memory_order_relaxed);
    }
    std::optional<Range> claim_front() { return claim(true); }
    std::optional<Range> claim_back() { return claim(false); }

    // Initiator, after its last claim: bytes that the peer has claimed, not more than all, whatever it has
    // written there. No further claim can succeed.
    std::uint64_t peers_bytes() const {
        std::uint64_t back = std::min(back_of(cell_->claims.load(std::memory_order_relaxed)), units_);
        return back == 0 ? 0 : bytes_ - (units_ - back) * unit_;
    }
    // acquire: pairs with the peer's finish, so that its bytes are there.
    std::uint64_t helped() const { return cell_->helped.load(std::memory_order_acquire); }
    bool failed() const { return cell_->failed.load(std::memory_order_acquire) != 0; }

    // Peer: a claimed range is in place, or cannot be.
    void finish(const Range& range) { cell_->helped.fetch_add(range.bytes, std::memory_order_release); }
    void give_up() { cell_->failed.store(1, std::memory_order_release); }

 private:
    static constexpr std::uint64_t kUnitLimit = (1U << 20) - 1;
    // Each side has a part of its own, the same in each transfer of that size, so that the lines of either
    // part stay in the cache of the processor that moves them. It is larger for the one who goes first, by
    // what he copies before the other has seen the message. A part is claimed in pieces that are worth a
    // system call.
    static constexpr std::uint64_t kPieceUnits = 64, kHeadStartUnits = 2;
    // Whoever has done his part takes a share of what the other has not claimed, within these bounds.
    static constexpr std::uint64_t kShare = 4, kLeastUnits = 2, kMostUnits = 32;

    std::uint64_t pack(std::uint64_t front, std::uint64_t back) const {
        return std::uint64_t{generation_} << 40 | front << 20 | back;
    }
    static std::uint64_t front_of(std::uint64_t word) { return word >> 20 & kUnitLimit; }
    static std::uint64_t back_of(std::uint64_t word) { return word & kUnitLimit; }

    std::optional<Range> claim(bool at_front) {
        std::uint64_t word = cell_->claims.load(std::memory_order_relaxed);
        for (;;) {
            std::uint64_t front = front_of(word), back = back_of(word);
            if (word >> 40 != generation_ || front + back >= units_) return std::nullopt;
            std::uint64_t left = units_ - front - back;
            std::uint64_t mine = at_front ? front : back;
            std::uint64_t part = at_front ? initiators_part_ : units_ - initiators_part_;
            std::uint64_t take = mine < part
                                     ? std::min({left, part - mine, kPieceUnits})
                                     : std::min(left, std::clamp(left / kShare, kLeastUnits, kMostUnits));
            std::uint64_t next = at_front ? pack(front + take, back) : pack(front, back + take);
            if (!cell_->claims.compare_exchange_weak(word, next, std::memory_order_relaxed,
                                                     std::memory_order_relaxed))
                continue;
            std::uint64_t from = at_front ? front : units_ - back - take;
            std::uint64_t to = std::min(bytes_, (from + take) * unit_);
            return Range{from * unit_, to - from * unit_};
        }
    }

    fabric::shm::BasicShareCell<Atom>* cell_;
    std::uint32_t generation_;
    std::uint64_t bytes_, unit_, units_, initiators_part_;
};

using Share = BasicShare<std::atomic>;

}  // namespace velo::rma
