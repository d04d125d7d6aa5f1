// The outbox of a process: memory of its own from which its peers read messages that one packet, a REF,
// refers to. So a message never needs more than one credit, and what bounds memory is what a process sends,
// not how many might send to it.
//
// Chunks of three sizes, each with a header line of its own. A chunk is allocated to the one peer that is to
// read it, and free again when that peer has said so; the owner looks when it needs one. A peer reads in the
// order of allocation, so that a chunk that has been read tells of those before it. Nobody ever waits for a
// chunk: where there is none, the message goes in packets, so that the outbox is no resource that a deadlock
// could need.
//
// Shares: a peer is allocated no more while it holds as much as is free (dynamic thresholds with alpha = 1,
// Choudhury and Hahne 1998), so that one that does not read leaves half of the outbox to the others.
//
// Beside the chunks a message may lie in rotating memory (flow/rotating_memory.h). That counts in no share,
// but a peer holds at most half of it. Without rotating memory, chunks serve.
//
// Pure: where the chunks are, and how a reader says that it is done, is the user's.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "flow/rotating_memory.h"

namespace velo::flow {

// What one peer has been allocated. Belongs to whoever knows the peer.
struct OutboxShare {
    static constexpr std::uint32_t kNone = ~0U;

    std::uint64_t bytes = 0;     // of chunks
    bool missed = false;         // there was no chunk for the message that leaves next. The user's to reset
    std::uint32_t rotating = 0;  // bytes of cuts
    std::uint32_t chunks = 0, oldest = kNone, newest = kNone;  // in the order of allocation, by number
};

// Where the chunks of an outbox are: the same for its owner and its readers.
class OutboxPlan {
 public:
    static constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;
    // Bytes of a chunk, header included.
    static constexpr std::uint32_t kStride[] = {2304, 8512, 33024};
    static constexpr std::size_t kSizes = std::size(kStride);
    // Of them the header. Small ones share its line with the data, which saves a line's journey; in the
    // others data begins at a line.
    static constexpr std::uint32_t kHeaderBytes[kSizes] = {16, 64, 64};
    // Bytes of data that a REF may stand for.
    static constexpr std::uint32_t kMostRoom = kStride[kSizes - 1] - kHeaderBytes[kSizes - 1];

    struct Size {
        std::uint32_t begin = 0;   // offset of the first chunk, bytes
        std::uint32_t stride = 0;  // bytes of a chunk, header included
        std::uint32_t count = 0;
        std::uint32_t header = 0;  // of these
        std::uint32_t room() const { return stride - header; }
    };

    OutboxPlan() = default;
    // Of `bytes` <= kMostBytes, of which less than the smallest chunk may be left over. The sizes hold
    // messages of 2, 8 and 32 KiB with the headers of the upper layer; about 30 and 40 % go to the larger
    // ones.
    explicit OutboxPlan(std::uint64_t bytes) {
        const std::uint64_t most[kSizes] = {bytes, bytes * 3 / 10, bytes * 4 / 10};
        std::uint64_t left = bytes, begin = 0;
        for (std::size_t size = kSizes; size-- > 0;) {
            const std::uint64_t count = std::min(most[size], left) / kStride[size];
            sizes_[size] = {static_cast<std::uint32_t>(begin), kStride[size],
                            static_cast<std::uint32_t>(count), kHeaderBytes[size]};
            begin += count * kStride[size];
            left -= count * kStride[size];
        }
        bytes_ = begin;
    }

    // Rotating memory: `bytes` long, from the offset `begin` on, which is the beginning of a line.
    void set_rotating(std::uint32_t begin, std::uint32_t bytes) {
        rotating_begin_ = begin;
        rotating_bytes_ = bytes;
    }

    const Size& size(std::size_t index) const { return sizes_[index]; }
    // Of all chunks.
    std::uint64_t bytes() const { return bytes_; }
    std::uint32_t rotating_begin() const { return rotating_begin_; }
    std::uint32_t rotating_bytes() const { return rotating_bytes_; }
    std::uint32_t largest_stride() const {
        std::uint32_t largest = 0;
        for (const Size& size : sizes_)
            if (size.count > 0) largest = size.stride;
        return largest;
    }
    std::uint32_t chunks() const { return sizes_[0].count + sizes_[1].count + sizes_[2].count; }

    // Offset of the data of the chunk at `place`. Small chunks come last; rotating memory begins behind
    // them.
    std::uint32_t data_of(std::uint32_t place) const {
        return place + kHeaderBytes[place < sizes_[0].begin || place >= bytes_ ? 1 : 0];
    }
    // Whether a chunk may be at offset `place` that holds `bytes` of data: what a reader checks before it
    // looks.
    bool holds(std::uint32_t place, std::uint32_t bytes) const {
        return holds<0>(place, bytes) || holds<1>(place, bytes) || holds<2>(place, bytes) ||
               holds_rotating(place, bytes);
    }
    // Of a cut; and behind it, since a reader's processor fetches ahead, what nobody stores into.
    static constexpr std::uint32_t kCutHeaderBytes = kHeaderBytes[1], kGap = 512;

 private:
    static_assert(kSizes == 3);
    template <std::size_t kSize>  // so that the compiler knows by what it divides
    bool holds(std::uint32_t place, std::uint32_t bytes) const {
        const std::uint64_t behind = std::uint64_t{place} - sizes_[kSize].begin;  // large: before the first
        return behind < std::uint64_t{sizes_[kSize].count} * kStride[kSize] &&
               static_cast<std::uint32_t>(behind) % kStride[kSize] == 0 &&
               bytes <= kStride[kSize] - kHeaderBytes[kSize];
    }

    bool holds_rotating(std::uint32_t place, std::uint32_t bytes) const {
        const std::uint64_t behind = std::uint64_t{place} - rotating_begin_;  // large: before the first
        return place % RotatingMemory::kLine == 0 && behind < rotating_bytes_ &&
               kCutHeaderBytes + std::uint64_t{bytes} <= rotating_bytes_ - behind;
    }

    std::array<Size, kSizes> sizes_{};  // ascending
    std::uint64_t bytes_ = 0;
    std::uint32_t rotating_begin_ = 0, rotating_bytes_ = 0;
};

class Outbox {
 public:
    // Counts for the report; high_water in bytes of chunks, those included that have been read unnoticed;
    // full in messages.
    struct Counters {
        std::uint64_t high_water = 0, full = 0;
    };
    // `room` bytes of data may be stored behind the header at `place`. None: room is 0.
    struct Chunk {
        std::uint32_t place = 0, room = 0, number = 0;
    };
    Outbox() = default;
    // rotating: outlives it, and others may cut from it; none: nothing is.
    explicit Outbox(const OutboxPlan& plan, RotatingMemory* rotating = nullptr)
        : plan_(plan),
          rotating_(rotating),
          free_(plan.bytes()),
          holders_(plan.chunks() + (rotating == nullptr ? 0 : RotatingMemory::kCuts)),
          next_(holders_.size()) {
        std::uint32_t first = 0;
        for (std::size_t size = 0; size < OutboxPlan::kSizes; ++size) {
            first_[size] = first;
            const std::uint32_t count = plan.size(size).count;
            first += count;
            available_[size].resize((count + kBits - 1) / kBits, ~std::uint64_t{0});
            if (count % kBits != 0) available_[size].back() = (std::uint64_t{1} << count % kBits) - 1;
        }
    }

    const OutboxPlan& plan() const { return plan_; }
    const Counters& counters() const { return counters_; }
    std::uint64_t allocated() const { return plan_.bytes() - free_; }

    // A chunk for `bytes` of a message to the peer of `share`: the smallest that holds them all, else the
    // largest there is, for a part. `is_read(place)`: its reader is done with it.
    template <class IsRead>
    Chunk take(OutboxShare& share, std::uint64_t bytes, IsRead&& is_read) {
        if (const Chunk chunk = take_at_hand(share, bytes, is_read); chunk.room != 0) return chunk;
        sweep(is_read);
        if (share.bytes < free_) {
            const std::size_t fit = fitting(bytes);
            for (std::size_t size = fit; size < OutboxPlan::kSizes; ++size)
                if (const Chunk chunk = find(size, share); chunk.room != 0) return chunk;
            for (std::size_t size = fit; size-- > 0;)
                if (const Chunk chunk = find(size, share); chunk.room != 0) return chunk;
        }
        counters_.full += plan_.bytes() > 0 && !std::exchange(share.missed, true);
        return {};
    }
    // The same if one of that size is free, or the peer has read it, without a look at other peers.
    template <class IsRead>
    Chunk take_at_hand(OutboxShare& share, std::uint64_t bytes, IsRead&& is_read) {
        const std::size_t fit = fitting(bytes);
        look(share, fit, is_read);
        if (share.bytes < free_)
            if (const Chunk chunk = find(fit, share); chunk.room != 0) return chunk;
        free_read(share, is_read);
        return share.bytes < free_ ? find(fit, share) : Chunk{};
    }
    // A cut of rotating memory for `bytes`, if there is room. Looks only at what this peer has read.
    template <class IsRead>
    Chunk take_rotating(OutboxShare& share, std::uint32_t bytes, IsRead&& is_read) {
        constexpr std::uint32_t kManyCuts = 8;
        while (share.chunks >= kManyCuts && free_half(share, is_read)) {
        }
        if (Chunk chunk = cut(share, bytes); chunk.room != 0) return chunk;
        free_read(share, is_read);
        return cut(share, bytes);
    }
    // What has been read comes back, from all peers.
    template <class IsRead>
    void sweep(IsRead&& is_read) {
        each_allocated([&](std::uint32_t number) {
            if (holders_[number]->oldest == number) free_read(*holders_[number], is_read);
        });
    }
    // It may be used again without being taken: it is still allocated to that peer, who has read it.
    bool is_allocated(const Chunk& chunk, const OutboxShare& to) const {
        return chunk.room > 0 && holders_[chunk.number] == &to;
    }
    // Nobody has been told of it, or looks at it any more.
    void give_back(const Chunk& chunk) { give_back(chunk.number); }
    // The peer has read all, or reads nothing any more as it has ended.
    void free_all(OutboxShare& share) {
        while (share.chunks > 0) free_oldest(share);
    }

    // The first violated invariant of design/by-reference.md, or the empty string. For checked builds and
    // tests.
    const char* violation() const {
        std::uint64_t sum = 0;
        std::size_t count = 0, listed = 0;
        const char* found = "";
        each_allocated([&](std::uint32_t number) {
            const OutboxShare* const share = holders_[number];
            sum += stride_of(number);
            ++count;
            if (share->oldest != number) return;
            std::uint64_t its = 0;
            std::uint32_t at = number;
            for (; at != OutboxShare::kNone && holders_[at] == share && listed < holders_.size();
                 at = next_[at], ++listed)
                its += stride_of(at);
            if (at != OutboxShare::kNone || its != share->bytes)
                found = "R2: the share of a peer is not what it has been allocated";
            if (its >= plan_.bytes() / 2 + plan_.largest_stride())
                found = "R4: a peer has been allocated more than half of the outbox and a chunk";
        });
        if (listed != count) return "R2: the share of a peer is not what it has been allocated";
        if (sum != allocated()) return "R2: the chunks that are allocated do not add up";
        return found;
    }

    // For the exploration of states: a copy whose shares are copies as well, and what decides the future.
    void rebase(const OutboxShare* from, OutboxShare* to) {
        each_allocated([&](std::uint32_t number) { holders_[number] = to + (holders_[number] - from); });
    }
    void encode(std::string& text, const OutboxShare* shares) const {
        for (std::uint32_t number = 0; number < holders_.size(); ++number) {
            const OutboxShare* const of = holders_[number];
            text.push_back(static_cast<char>(of == nullptr ? 0 : of - shares + 1));
            if (of != nullptr) text.push_back(static_cast<char>(next_[number] + 1));
        }
    }

 private:
    static constexpr std::uint32_t kBits = 64;
    // A look brings a line back that the peer has stored into, and what is used again is in the caches: peers
    // that hold as many bytes as so many chunks of the size that is taken are looked at, for half of their
    // chunks at once.
    static constexpr std::uint64_t kMany[OutboxPlan::kSizes] = {8, 4, 1};

    bool is_cut(std::uint32_t number) const { return number >= plan_.chunks(); }
    Chunk cut(OutboxShare& share, std::uint32_t bytes) {
        const std::uint32_t with = OutboxPlan::kCutHeaderBytes + bytes + OutboxPlan::kGap;
        if (share.rotating + with > rotating_->lap() / 2) return {};
        const RotatingMemory::Cut cut = rotating_->take_short(with);
        if (cut.none()) return {};
        const std::uint32_t number = plan_.chunks() + cut.index;
        share.rotating += cut.bytes;
        allocate(number, share);
        return {plan_.rotating_begin() + cut.place,
                cut.bytes - OutboxPlan::kCutHeaderBytes - OutboxPlan::kGap, number};
    }
    void allocate(std::uint32_t number, OutboxShare& share) {
        holders_[number] = &share;
        next_[number] = OutboxShare::kNone;
        (share.chunks == 0 ? share.oldest : next_[share.newest]) = number;
        share.newest = number;
        ++share.chunks;
    }
    std::size_t size_index(std::uint32_t number) const {
        return std::size_t{number >= first_[1]} + std::size_t{number >= first_[2]};
    }
    // Of those that count in a share.
    std::uint32_t stride_of(std::uint32_t number) const {
        return is_cut(number) ? 0 : plan_.size(size_index(number)).stride;
    }
    std::uint32_t place_of(std::uint32_t number) const {
        if (is_cut(number)) return plan_.rotating_begin() + rotating_->cut(number - plan_.chunks()).place;
        const std::size_t size = size_index(number);
        return plan_.size(size).begin + (number - first_[size]) * plan_.size(size).stride;
    }
    void free(std::uint32_t number) {
        OutboxShare* const of = std::exchange(holders_[number], nullptr);
        --of->chunks;
        if (is_cut(number)) {
            const std::uint32_t cut = number - plan_.chunks();
            of->rotating -= rotating_->cut(cut).bytes;
            return rotating_->give_back(cut);
        }
        const std::size_t size = size_index(number);
        const std::uint32_t stride = plan_.size(size).stride, index = number - first_[size];
        of->bytes -= stride;
        free_ += stride;
        available_[size][index / kBits] |= std::uint64_t{1} << index % kBits;
    }
    void give_back(std::uint32_t number) {
        OutboxShare& share = *holders_[number];
        if (share.oldest == number) return free_oldest(share);
        std::uint32_t before = share.oldest;
        while (next_[before] != number) before = next_[before];
        next_[before] = next_[number];
        if (share.newest == number) share.newest = before;
        free(number);
    }
    void free_oldest(OutboxShare& share) {
        const std::uint32_t number = share.oldest;
        share.oldest = next_[number];
        if (share.oldest == OutboxShare::kNone) share.newest = OutboxShare::kNone;
        free(number);
    }
    template <class Action>
    void each_allocated(Action&& action) const {
        const OutboxShare* const* const holders = holders_.data();
        const auto count = static_cast<std::uint32_t>(holders_.size());
        for (std::uint32_t number = 0; number < count; ++number)
            if (holders[number] != nullptr) action(number);
    }
    static std::size_t fitting(std::uint64_t bytes) {
        std::size_t size = 0;
        while (size + 1 < OutboxPlan::kSizes &&
               OutboxPlan::kStride[size] - OutboxPlan::kHeaderBytes[size] < bytes)
            ++size;
        return size;
    }
    template <class IsRead>
    void look(OutboxShare& share, std::size_t size, IsRead& is_read) {
        const std::uint64_t many = kMany[size] * OutboxPlan::kStride[size];
        while (share.bytes >= many && free_half(share, is_read)) {
        }
    }
    // Of those of the share the older half, if the peer has read them.
    template <class IsRead>
    bool free_half(OutboxShare& share, IsRead& is_read) {
        const std::uint32_t step = (share.chunks + 1) / 2;
        std::uint32_t last = share.oldest;
        for (std::uint32_t i = 1; i < step; ++i) last = next_[last];
        if (!is_read(place_of(last))) return false;
        for (std::uint32_t i = 0; i < step; ++i) free_oldest(share);
        return true;
    }
    template <class IsRead>
    void free_read(OutboxShare& share, IsRead& is_read) {
        while (share.chunks > 0 && is_read(place_of(share.oldest))) free_oldest(share);
    }
    Chunk find(std::size_t size, OutboxShare& share) {
        for (std::size_t word = 0; word < available_[size].size(); ++word) {
            std::uint64_t& available = available_[size][word];
            if (available == 0) continue;
            const auto in_word = static_cast<std::uint32_t>(std::countr_zero(available));
            const std::uint32_t index = static_cast<std::uint32_t>(word * kBits) + in_word;
            available &= available - 1;
            const OutboxPlan::Size& these = plan_.size(size);
            const std::uint32_t number = first_[size] + index;
            allocate(number, share);
            share.bytes += these.stride;
            free_ -= these.stride;
            counters_.high_water = std::max(counters_.high_water, allocated());
            return {these.begin + index * these.stride, these.room(), number};
        }
        return {};
    }

    OutboxPlan plan_;
    RotatingMemory* rotating_ = nullptr;
    std::uint64_t free_ = 0;
    std::vector<OutboxShare*> holders_;  // of each chunk, by number: ascending sizes, cuts; null: free
    std::vector<std::uint32_t> next_;    // that its holder was allocated; kNone: it is the newest
    std::array<std::uint32_t, OutboxPlan::kSizes> first_{};                 // number of the first of a size
    std::array<std::vector<std::uint64_t>, OutboxPlan::kSizes> available_;  // a bit for each chunk
    Counters counters_;
};

}  // namespace velo::flow
