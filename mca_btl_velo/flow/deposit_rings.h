// Where a process stages what its peers get (rma/deposit.h): rings of its shared memory, each of one deposit
// at a time, cut from rotating memory (flow/rotating_memory.h), as long as their data where there is room. A
// peer is told the number of a ring, 1 and more, of a byte.
//
// Pure: the memory is the user's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "flow/rotating_memory.h"

namespace velo::flow {

// Whose rings these are, its owner and its peers know alike.
class DepositPlan {
 public:
    static constexpr std::uint32_t kRings = 64;
    // What the bytes of a ring are a multiple of.
    static constexpr std::uint32_t kGrain = 4096;

    DepositPlan() = default;
    // bytes: that rings are cut from; 0: there are none.
    explicit DepositPlan(std::uint32_t bytes) : bytes_(bytes) {}

    bool none() const { return bytes_ == 0; }
    std::uint32_t bytes() const { return bytes_; }
    // A ring at that offset: what a peer checks before it looks.
    bool holds(std::uint32_t place, std::uint32_t ring) const {
        return ring > 0 && place <= bytes_ && ring <= bytes_ - place;
    }

    // kRings: of none.
    static constexpr std::uint32_t ring_of(std::uint32_t number) {
        return number >= 1 && number <= kRings ? number - 1 : kRings;
    }
    static constexpr std::uint32_t number_of(std::uint32_t ring) { return ring + 1; }

 private:
    std::uint32_t bytes_ = 0;
};

// The owner's: which are free.
class DepositRings {
 public:
    // At `place`, an offset, `bytes` long.
    struct Ring {
        std::uint32_t index = DepositPlan::kRings, place = 0, bytes = 0;
        bool none() const { return bytes == 0; }
    };

    // rotating: outlives it, and others may cut from it.
    DepositRings(const DepositPlan& plan, RotatingMemory& rotating) : plan_(plan), rotating_(&rotating) {}

    const DepositPlan& plan() const { return plan_; }

    // One without room yet; kRings: all are allocated.
    std::uint32_t reserve() {
        if (plan_.none()) return DepositPlan::kRings;
        for (std::uint32_t step = 0; step < DepositPlan::kRings; ++step) {
            const std::uint32_t index = (next_ + step) % DepositPlan::kRings;
            if (is_allocated(index)) continue;
            next_ = (index + 1) % DepositPlan::kRings;
            allocated_ |= bit(index);
            rings_[index] = {index};
            return index;
        }
        return DepositPlan::kRings;
    }
    // Room for so many bytes, or as many as there are. streams: they are stored past the caches. False: there
    // is none.
    bool cut(std::uint32_t index, std::size_t bytes, bool streams = false) {
        constexpr std::size_t kGrain = DepositPlan::kGrain;
        const std::size_t whole = (bytes + kGrain - 1) / kGrain * kGrain;
        const RotatingMemory::Cut cut = streams ? rotating_->take_streamed(whole) : rotating_->take(whole);
        if (cut.none()) return false;
        cuts_[index] = cut.index;
        rings_[index] = {index, cut.place, cut.bytes};
        return true;
    }
    void give_back(std::uint32_t index) {
        allocated_ &= ~bit(index);
        if (!rings_[index].none()) rotating_->give_back(cuts_[index]);
    }
    const Ring& ring(std::uint32_t index) const { return rings_[index]; }
    bool is_allocated(std::uint32_t index) const { return (allocated_ & bit(index)) != 0; }

 private:
    static std::uint64_t bit(std::uint32_t index) { return std::uint64_t{1} << index; }
    DepositPlan plan_;
    RotatingMemory* rotating_ = nullptr;
    std::array<Ring, DepositPlan::kRings> rings_{};
    std::array<std::uint32_t, DepositPlan::kRings> cuts_{};
    std::uint64_t allocated_ = 0;
    std::uint32_t next_ = 0;  // behind the last one
};

}  // namespace velo::flow
