// The outbox of a process: memory of its own from which its peers read messages that one packet, a REF,
// refers to. So a message never needs more than one credit, and what bounds memory is what a process sends,
// not how many might send to it.
//
// Chunks of three sizes. A chunk is allocated to the one peer that is to read it. A peer reads in the order
// of allocation, and counts: by the count the owner knows which chunks are free again. Nobody ever waits for
// a chunk: where there is none, the message goes in packets, so that the outbox is no resource that a
// deadlock could need.
//
// Shares: a peer is allocated no more while it holds as much as is free (dynamic thresholds with alpha = 1,
// Choudhury and Hahne 1998), so that one that does not read leaves half of the outbox to the others.
//
// Beside the chunks a message may lie in rotating memory (flow/rotating_memory.h). That counts in no share,
// but a peer holds at most half of it. Without rotating memory, chunks serve.
//
// Pure: where the chunks are, and how the owner learns a reader's count, is the user's.
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

    // Chunks that it has been told of, and of these those that it has read, as far as is known. The user's to
    // count; read <= sent.
    std::uint64_t unread() const { return sent - read; }

    std::uint64_t sent = 0, read = 0;
    std::uint64_t look_at = 0;   // of `sent`: before, another look at the peer's count would not pay
    std::uint64_t bytes = 0;     // of chunks
    bool missed = false;         // there was no chunk for the message that leaves next. The user's to reset
    std::uint32_t rotating = 0;  // bytes of cuts
    std::uint32_t chunks = 0, oldest = kNone, newest = kNone;  // in the order of allocation, by number
};

// Where the chunks of an outbox are: the same for its owner and its readers.
class OutboxPlan {
 public:
    static constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;
    // Bytes of a chunk: whole lines.
    static constexpr std::uint32_t kRoom[] = {2304, 8448, 32960};
    static constexpr std::size_t kSizes = std::size(kRoom);
    // Bytes of data that a REF may stand for.
    static constexpr std::uint32_t kMostRoom = kRoom[kSizes - 1];

    struct Size {
        std::uint32_t begin = 0;  // offset of the first chunk, bytes
        std::uint32_t room = 0;   // bytes of a chunk
        std::uint32_t count = 0;
    };

    OutboxPlan() = default;
    // Of `bytes` <= kMostBytes, of which less than the smallest chunk may be left over. The sizes hold
    // messages of 2, 8 and 32 KiB with the headers of the upper layer; about 30 and 40 % go to the larger
    // ones.
    explicit OutboxPlan(std::uint64_t bytes) {
        const std::uint64_t most[kSizes] = {bytes, bytes * 3 / 10, bytes * 4 / 10};
        std::uint64_t left = bytes, begin = 0;
        for (std::size_t size = kSizes; size-- > 0;) {
            const std::uint64_t count = std::min(most[size], left) / kRoom[size];
            sizes_[size] = {static_cast<std::uint32_t>(begin), kRoom[size],
                            static_cast<std::uint32_t>(count)};
            begin += count * kRoom[size];
            left -= count * kRoom[size];
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
    std::uint32_t largest_room() const {
        std::uint32_t largest = 0;
        for (const Size& size : sizes_)
            if (size.count > 0) largest = size.room;
        return largest;
    }
    std::uint32_t chunks() const { return sizes_[0].count + sizes_[1].count + sizes_[2].count; }

    // Whether a chunk may be at offset `place` that holds `bytes` of data: what a reader checks before it
    // looks.
    bool holds(std::uint32_t place, std::uint32_t bytes) const {
        return holds<0>(place, bytes) || holds<1>(place, bytes) || holds<2>(place, bytes) ||
               holds_rotating(place, bytes);
    }
    // Bytes behind a cut that nobody stores into, since a reader's processor fetches ahead.
    static constexpr std::uint32_t kGap = 512;

 private:
    static_assert(kSizes == 3);
    template <std::size_t kSize>  // so that the compiler knows by what it divides
    bool holds(std::uint32_t place, std::uint32_t bytes) const {
        const std::uint64_t behind = std::uint64_t{place} - sizes_[kSize].begin;  // large: before the first
        return behind < std::uint64_t{sizes_[kSize].count} * kRoom[kSize] &&
               static_cast<std::uint32_t>(behind) % kRoom[kSize] == 0 && bytes <= kRoom[kSize];
    }

    bool holds_rotating(std::uint32_t place, std::uint32_t bytes) const {
        const std::uint64_t behind = std::uint64_t{place} - rotating_begin_;  // large: before the first
        return place % RotatingMemory::kLine == 0 && behind < rotating_bytes_ &&
               bytes <= rotating_bytes_ - behind;
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
    // `room` bytes of data may be stored at `place`. None: room is 0.
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
    // largest there is, for a part. `look(share)` looks at its peer's count and sets share.read, which takes
    // a cache line's journey.
    template <class Look>
    Chunk take(OutboxShare& share, std::uint64_t bytes, Look&& look) {
        if (const Chunk chunk = take_at_hand(share, bytes, look); chunk.room != 0) return chunk;
        sweep(look);
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
    template <class Look>
    Chunk take_at_hand(OutboxShare& share, std::uint64_t bytes, Look&& look) {
        const std::size_t fit = fitting(bytes);
        free_read(share);
        if (share.bytes >= kMany[fit] * OutboxPlan::kRoom[fit]) look_now_and_then(share, look);
        if (share.bytes < free_)
            if (const Chunk chunk = find(fit, share); chunk.room != 0) return chunk;
        free_read(share, look);
        return share.bytes < free_ ? find(fit, share) : Chunk{};
    }
    // A cut of rotating memory for `bytes`, if there is room. Looks only at what this peer has read.
    template <class Look>
    Chunk take_rotating(OutboxShare& share, std::uint32_t bytes, Look&& look) {
        constexpr std::uint32_t kManyCuts = 8;
        free_read(share);
        if (share.chunks >= kManyCuts) look_now_and_then(share, look);
        if (Chunk chunk = cut(share, bytes); chunk.room != 0) return chunk;
        free_read(share, look);
        return cut(share, bytes);
    }
    // What has been read comes back, from all peers.
    template <class Look>
    void sweep(Look&& look) {
        each_allocated([&](std::uint32_t number) {
            if (holders_[number]->oldest == number) free_read(*holders_[number], look);
        });
    }
    // Its peer has read all, and it is the only one: it may be used again without being taken.
    bool is_free_again(const Chunk& chunk, const OutboxShare& share) const {
        return share.chunks == 1 && share.unread() == 0 && share.newest == chunk.number;
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
            sum += room_of(number);
            ++count;
            if (share->oldest != number) return;
            std::uint64_t its = 0;
            std::uint32_t at = number;
            for (; at != OutboxShare::kNone && holders_[at] == share && listed < holders_.size();
                 at = next_[at], ++listed)
                its += room_of(at);
            if (at != OutboxShare::kNone || its != share->bytes)
                found = "R2: the share of a peer is not what it has been allocated";
            if (its >= plan_.bytes() / 2 + plan_.largest_room())
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
    // A look brings a line back that the peer has stored into, and what is used again is in the caches: a
    // peer's count is looked at when it holds as many bytes as so many chunks of the size that is taken, and
    // then when half as many chunks more have been sent as it holds.
    static constexpr std::uint64_t kMany[OutboxPlan::kSizes] = {8, 4, 1};

    bool is_cut(std::uint32_t number) const { return number >= plan_.chunks(); }
    Chunk cut(OutboxShare& share, std::uint32_t bytes) {
        const std::uint32_t with = bytes + OutboxPlan::kGap;
        if (share.rotating + with > rotating_->lap() / 2) return {};
        const RotatingMemory::Cut cut = rotating_->take_short(with);
        if (cut.none()) return {};
        const std::uint32_t number = plan_.chunks() + cut.index;
        share.rotating += cut.bytes;
        allocate(number, share);
        return {plan_.rotating_begin() + cut.place, cut.bytes - OutboxPlan::kGap, number};
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
    std::uint32_t room_of(std::uint32_t number) const {
        return is_cut(number) ? 0 : plan_.size(size_index(number)).room;
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
        const std::uint32_t room = plan_.size(size).room, index = number - first_[size];
        of->bytes -= room;
        free_ += room;
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
        while (size + 1 < OutboxPlan::kSizes && OutboxPlan::kRoom[size] < bytes) ++size;
        return size;
    }
    // Those of which it is known.
    void free_read(OutboxShare& share) {
        while (share.chunks > share.unread()) free_oldest(share);
    }
    template <class Look>
    void free_read(OutboxShare& share, Look& look) {
        if (share.chunks == 0) return;
        look(share);
        free_read(share);
        share.look_at = share.sent + share.chunks / 2;
    }
    template <class Look>
    void look_now_and_then(OutboxShare& share, Look& look) {
        if (share.sent >= share.look_at) free_read(share, look);
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
            share.bytes += these.room;
            free_ -= these.room;
            counters_.high_water = std::max(counters_.high_water, allocated());
            return {these.begin + index * these.room, these.room, number};
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
