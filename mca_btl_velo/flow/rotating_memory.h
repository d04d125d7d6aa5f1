// Rotating memory. Pieces are cut from it, each behind the last, and a line is used again only when all of it
// has been gone through. It is larger than a core's own cache: no core holds the lines by then, and a store
// waits for nobody (design/large-messages.md).
//
// What is short goes round in a part of it, as messages that come one at a time are faster the less of it
// they touch. What is stored past the caches asks nobody anyway: it goes round in a part that grows whenever
// something is in the way. So does all else where the first access to a page takes long; there that part also
// grows after many rounds, as what is stored often enough pays for the pages.
//
// Pure: where the memory is, and when a piece has been read, is the user's.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace velo::flow {

class RotatingMemory {
 public:
    // Cuts at a time; what their places and bytes are a multiple of.
    static constexpr std::uint32_t kCuts = 256, kLine = 64;
    static constexpr std::uint64_t kMostBytes = std::uint64_t{64} << 20;
    // The part that grows, at first.
    static constexpr std::uint32_t kFirstReach = 256U << 10;
    // Rounds in it after which it is doubled. Two first accesses to a page take 13 us where they take long,
    // and a page that comes back from no cache saves .15 us in each round: docs/measured/routes.md.
    static constexpr std::uint32_t kRounds = 128;

    // From `place` on, an offset, `bytes`, of whole lines.
    struct Cut {
        std::uint32_t index = kCuts, place = 0, bytes = 0;
        bool none() const { return bytes == 0; }
    };

    RotatingMemory() = default;
    // Of `bytes` <= kMostBytes, less than a line of which may be left over.
    // lap: the part for what is short, at most all of it. slow_pages: the first access to a page takes long.
    explicit RotatingMemory(std::uint64_t bytes, std::uint64_t lap = kMostBytes, bool slow_pages = false)
        : bytes_(static_cast<std::uint32_t>(bytes / kLine * kLine)),
          lap_(static_cast<std::uint32_t>(std::min(bytes, lap) / kLine * kLine)),
          reach_(std::min(bytes_, kFirstReach)),
          slow_pages_(slow_pages) {}

    std::uint32_t bytes() const { return bytes_; }
    std::uint32_t lap() const { return lap_; }
    bool is_allocated(std::uint32_t index) const { return (allocated_[index / kBits] & bit(index)) != 0; }
    const Cut& cut(std::uint32_t index) const { return cuts_[index]; }

    // For so many bytes, not 0, or all that there are; none where something is in the way. take_streamed: it
    // will be stored past the caches.
    Cut take(std::size_t bytes) {
        if (!slow_pages_) return take_within(bytes_, bytes);
        if (rounds_ >= kRounds) grow();
        return take_growing(bytes_, bytes);
    }
    Cut take_short(std::size_t bytes) {
        return slow_pages_ ? take_growing(lap_, bytes) : take_within(lap_, bytes);
    }
    Cut take_streamed(std::size_t bytes) { return take_growing(bytes_, bytes); }
    void give_back(std::uint32_t index) {
        allocated_[index / kBits] &= ~bit(index);
        if (is_allocated(next_index_)) next_index_ = index;  // there was none
    }

 private:
    Cut take_within(std::uint32_t end, std::size_t bytes) {
        const auto length =
            static_cast<std::uint32_t>(std::min<std::size_t>((bytes + kLine - 1) / kLine * kLine, end));
        const std::uint32_t index = next_index_;
        if (is_allocated(index) || length == 0) return {};
        std::uint32_t at = next_place_;
        bool fits = at + length <= std::min(free_until_, end);
        // Behind the last one; from the beginning; behind the one that is in the way, which may stay for
        // long.
        for (int tries = 0; !fits && tries < 3; ++tries) {
            if (at + length > end) {
                at = 0;
                ++rounds_;
            }
            const Cut* const first = first_behind(at);
            fits = first == nullptr || first->place >= at + length;
            if (fits)
                free_until_ = first == nullptr ? bytes_ : first->place;
            else
                at = first->place + first->bytes;
        }
        if (!fits) {  // the next look goes on from there
            next_place_ = free_until_ = at;
            return {};
        }
        allocated_[index / kBits] |= bit(index);
        next_index_ = next_free(index);
        next_place_ = at + length;
        return cuts_[index] = {index, at, length};
    }

    void grow() {
        next_place_ = free_until_ = reach_;  // where there is room
        reach_ = std::min(2 * reach_, bytes_);
        rounds_ = 0;
    }
    Cut take_growing(std::uint32_t end, std::size_t bytes) {
        while (reach_ < std::min<std::size_t>(2 * bytes, end)) grow();
        for (;; grow())
            if (const Cut cut = take_within(std::min(reach_, end), bytes); !cut.none() || reach_ >= end)
                return cut;
    }

    static constexpr std::uint32_t kBits = 64, kWords = kCuts / kBits;
    static std::uint64_t bit(std::uint32_t index) { return std::uint64_t{1} << index % kBits; }
    // Behind `index`; that one if there is none.
    std::uint32_t next_free(std::uint32_t index) const {
        for (std::uint32_t step = 1; step < kCuts; ++step)
            if (const std::uint32_t next = (index + step) % kCuts; !is_allocated(next)) return next;
        return index;
    }
    // The first cut that is allocated and ends behind `at`.
    const Cut* first_behind(std::uint32_t at) const {
        const Cut* first = nullptr;
        for (std::uint32_t word = 0; word < kWords; ++word)
            for (std::uint64_t allocated = allocated_[word]; allocated != 0; allocated &= allocated - 1) {
                const Cut& cut =
                    cuts_[word * kBits + static_cast<std::uint32_t>(std::countr_zero(allocated))];
                if (cut.place + cut.bytes > at && (first == nullptr || cut.place < first->place))
                    first = &cut;
            }
        return first;
    }

    std::uint32_t bytes_ = 0, lap_ = 0, reach_ = 0;
    std::uint32_t rounds_ = 0;  // since it grew
    bool slow_pages_ = false;
    std::array<Cut, kCuts> cuts_{};
    std::array<std::uint64_t, kWords> allocated_{};
    std::uint32_t next_index_ = 0;                   // not allocated unless all are
    std::uint32_t next_place_ = 0, free_until_ = 0;  // behind the last one; nothing is allocated in between
};

}  // namespace velo::flow
