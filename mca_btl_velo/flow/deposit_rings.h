// Where a process stores deposits (rma/deposit.h): in rings of its shared memory, each of one deposit at a
// time.
//
// Three are at hand, and used again as soon as they have been read: they stay in the caches of both sides,
// which is best where a line that the other core holds is taken back at little cost. The others are cut in
// turn (flow/in_turn.h), as long as their data, as soon as there is room.
//
// A peer is told a number, of a byte, that stands for a ring and, of those at hand, one of its turns: it may
// know of several deposits that have it one after the other. Each kind has numbers of its own, the first so
// many for its rings in order, the next for the same ones, and so on.
//
// Pure: the memory is the user's.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "flow/in_turn.h"

namespace velo::flow {

// Whose rings these are, its owner and its peers know alike.
class DepositPlan {
 public:
    enum Kind : std::uint8_t { kAtHand, kInTurn, kKinds };
    struct Numbers {
        std::uint32_t first, end;  // the last one is before `end`
        std::uint32_t first_ring, rings;
        std::uint32_t again() const { return first + rings; }  // the first of the second turns
    };
    static constexpr Numbers kNumbers[kKinds] = {{1, 127, 0, 3}, {127, 191, 3, 64}};
    static constexpr std::uint32_t kRings = 3 + 64;
    // Of those at hand; what the others are a multiple of.
    static constexpr std::uint32_t kRing = 32768, kGrain = 4096;
    static constexpr std::uint32_t kBytesAtHand = 3 * kRing;

    DepositPlan() = default;
    // in_turn: bytes that rings are cut from; 0: there are no rings at all.
    explicit DepositPlan(std::uint32_t in_turn) : in_turn_(in_turn) {}

    bool none() const { return in_turn_ == 0; }
    std::uint32_t bytes() const { return none() ? 0 : kBytesAtHand + in_turn_; }
    std::uint32_t begin_of(Kind kind) const { return kind == kAtHand ? 0 : kBytesAtHand; }
    std::uint32_t bytes_of(Kind kind) const { return kind == kAtHand ? bytes() - in_turn_ : in_turn_; }
    // A ring at that offset: what a peer checks before it looks.
    bool holds(std::uint32_t place, std::uint32_t ring) const {
        return ring > 0 && place <= bytes() && ring <= bytes() - place;
    }

    static constexpr Kind kind_of(std::uint32_t number) {
        return number < kNumbers[kInTurn].first ? kAtHand : kInTurn;
    }
    // kRings: of none.
    static constexpr std::uint32_t ring_of(std::uint32_t number) {
        const Numbers& its = kNumbers[kind_of(number)];
        if (number < its.first || number >= its.end) return kRings;
        return its.first_ring + (number - its.first) % its.rings;
    }
    static constexpr std::uint32_t first_number_of(std::uint32_t ring) {
        const Numbers& its = kNumbers[ring < kNumbers[kInTurn].first_ring ? kAtHand : kInTurn];
        return its.first + ring - its.first_ring;
    }

 private:
    std::uint32_t in_turn_ = 0;
};

// The owner's: which are free.
class DepositRings {
 public:
    // At `place`, an offset, `bytes` long.
    struct Ring {
        std::uint32_t index = DepositPlan::kRings, place = 0, bytes = 0;
        bool none() const { return bytes == 0; }
    };
    // Of those at hand that are free the first, or the one behind the last: stores past the caches are slower
    // to lines that have just been read.
    enum class Pick : std::uint8_t { kFirst, kNext };

    // in_turn: outlives it, and others may cut from it.
    DepositRings(const DepositPlan& plan, InTurn& in_turn) : plan_(plan), in_turn_(&in_turn) {
        for (std::uint32_t index = 0; index < kAtHand.rings; ++index)
            rings_[index] = {index, index * DepositPlan::kRing, DepositPlan::kRing};
    }

    const DepositPlan& plan() const { return plan_; }

    Ring take_at_hand(Pick pick) {
        if (plan_.none()) return {};
        const std::uint32_t rings = kAtHand.rings, from = pick == Pick::kNext ? next_at_hand_ : 0;
        for (std::uint32_t step = 0; step < rings; ++step) {
            const std::uint32_t index = (from + step) % rings;
            if (is_lent(index)) continue;
            if (pick == Pick::kNext) next_at_hand_ = (index + 1) % rings;
            lend(index);
            return rings_[index];
        }
        return {};
    }
    // One in turn, without room yet; kRings: all are lent.
    std::uint32_t reserve_in_turn() {
        if (plan_.none()) return DepositPlan::kRings;
        for (std::uint32_t step = 0; step < kInTurn.rings; ++step) {
            const std::uint32_t index = kInTurn.first_ring + (next_in_turn_ + step) % kInTurn.rings;
            if (is_lent(index)) continue;
            next_in_turn_ = (index - kInTurn.first_ring + 1) % kInTurn.rings;
            lend(index);
            rings_[index] = {index};
            return index;
        }
        return DepositPlan::kRings;
    }
    // Room for so many bytes, or as many as there are. False: there is none.
    bool cut(std::uint32_t index, std::size_t bytes) {
        constexpr std::size_t kGrain = DepositPlan::kGrain;
        const InTurn::Cut cut = in_turn_->take((bytes + kGrain - 1) / kGrain * kGrain);
        if (cut.none()) return false;
        cuts_[index - kInTurn.first_ring] = cut.index;
        rings_[index] = {index, plan_.begin_of(DepositPlan::kInTurn) + cut.place, cut.bytes};
        return true;
    }
    void give_back(std::uint32_t index) {
        lent_[index / kBits] &= ~bit(index);
        if (index >= kInTurn.first_ring && !rings_[index].none())
            in_turn_->give_back(cuts_[index - kInTurn.first_ring]);
    }
    const Ring& ring(std::uint32_t index) const { return rings_[index]; }
    bool is_lent(std::uint32_t index) const { return (lent_[index / kBits] & bit(index)) != 0; }

 private:
    static constexpr std::uint32_t kBits = 64;
    static constexpr const DepositPlan::Numbers& kAtHand = DepositPlan::kNumbers[DepositPlan::kAtHand];
    static constexpr const DepositPlan::Numbers& kInTurn = DepositPlan::kNumbers[DepositPlan::kInTurn];
    static std::uint64_t bit(std::uint32_t index) { return std::uint64_t{1} << index % kBits; }
    void lend(std::uint32_t index) { lent_[index / kBits] |= bit(index); }
    DepositPlan plan_;
    InTurn* in_turn_ = nullptr;
    std::array<Ring, DepositPlan::kRings> rings_{};
    std::array<std::uint64_t, (DepositPlan::kRings + kBits - 1) / kBits> lent_{};
    std::array<std::uint32_t, kInTurn.rings> cuts_{};    // of those in turn
    std::uint32_t next_at_hand_ = 0, next_in_turn_ = 0;  // behind the last of its kind
};

}  // namespace velo::flow
