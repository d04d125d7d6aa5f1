// The outbox of a process: memory of its own from which its peers read messages that one packet, a REF,
// refers to. So a message never needs more than one credit, and what bounds memory is what a process sends,
// not how many might send to it.
//
// Chunks of three sizes, each with a header line of its own. A chunk is lent to the one peer that is to read
// it, and free again when that peer has said so; the owner looks when it needs one. Nobody ever waits for a
// chunk: where there is none, the message goes in packets, so that the outbox is no resource that a deadlock
// could need.
//
// Shares: a peer is lent no more while it holds as much as is free (dynamic thresholds with alpha = 1,
// Choudhury and Hahne 1998), so that one that does not read leaves half of the outbox to the others.
//
// Pure: where the chunks are, and how a reader says that it is done, is the user's.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace velo::flow {

// What one peer has been lent, in bytes of chunks. Belongs to whoever knows the peer.
struct OutboxShare {
    std::uint64_t bytes = 0;
    bool missed = false;  // there was no chunk for the message that leaves next. The user's to reset
};

// Where the chunks of an outbox are: the same for its owner and its readers.
class OutboxPlan {
 public:
    static constexpr std::uint32_t kHeaderBytes = 64;
    static constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;
    // Bytes of a chunk, header included.
    static constexpr std::uint32_t kStride[] = {2304, 8512, 33024};
    static constexpr std::size_t kSizes = std::size(kStride);
    // Bytes of data that a REF may stand for.
    static constexpr std::uint32_t kMostRoom = kStride[kSizes - 1] - kHeaderBytes;

    struct Size {
        std::uint32_t begin = 0;   // offset of the first chunk, bytes
        std::uint32_t stride = 0;  // bytes of a chunk, header included
        std::uint32_t count = 0;
        std::uint32_t room() const { return stride - kHeaderBytes; }
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
                            static_cast<std::uint32_t>(count)};
            begin += count * kStride[size];
            left -= count * kStride[size];
        }
        bytes_ = begin;
    }

    const Size& size(std::size_t index) const { return sizes_[index]; }
    std::uint64_t bytes() const { return bytes_; }
    std::uint32_t largest_stride() const {
        std::uint32_t largest = 0;
        for (const Size& size : sizes_)
            if (size.count > 0) largest = size.stride;
        return largest;
    }
    std::uint32_t chunks() const { return sizes_[0].count + sizes_[1].count + sizes_[2].count; }

    // Whether a chunk is at offset `place` that holds `bytes` of data: what a reader checks before it looks.
    bool holds(std::uint64_t place, std::uint64_t bytes) const {
        for (const Size& size : sizes_) {
            if (place < size.begin || place - size.begin >= std::uint64_t{size.count} * size.stride) continue;
            return (place - size.begin) % size.stride == 0 && bytes <= size.room();
        }
        return false;
    }

 private:
    std::array<Size, kSizes> sizes_{};  // ascending
    std::uint64_t bytes_ = 0;
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
        std::uint32_t place = 0, room = 0;
    };

    Outbox() = default;
    explicit Outbox(const OutboxPlan& plan) : plan_(plan), free_(plan.bytes()), holders_(plan.chunks()) {
        std::uint32_t first = 0;
        for (std::size_t size = 0; size < OutboxPlan::kSizes; ++size) {
            first_[size] = first;
            first += plan.size(size).count;
        }
    }

    const OutboxPlan& plan() const { return plan_; }
    const Counters& counters() const { return counters_; }
    std::uint64_t lent() const { return plan_.bytes() - free_; }

    // A chunk for `bytes` of a message to the peer of `share`: the smallest that holds them all, else the
    // largest there is, for a part. `is_read(place)`: its reader is done with it.
    template <class IsRead>
    Chunk take(OutboxShare& share, std::uint64_t bytes, IsRead&& is_read) {
        if (plan_.bytes() == 0) return {};
        if (share.bytes >= free_) [[unlikely]]
            sweep(is_read);
        if (share.bytes < free_) {
            std::size_t fit = 0;
            while (fit + 1 < OutboxPlan::kSizes && plan_.size(fit).room() < bytes) ++fit;
            for (std::size_t size = fit; size < OutboxPlan::kSizes; ++size)
                if (const Chunk chunk = find(size, share, is_read); chunk.room != 0) return chunk;
            for (std::size_t size = fit; size-- > 0;)
                if (const Chunk chunk = find(size, share, is_read); chunk.room != 0) return chunk;
        }
        counters_.full += !std::exchange(share.missed, true);
        return {};
    }
    // Nobody has been told of it.
    void give_back(const Chunk& chunk) {
        for (std::size_t size = 0; size < OutboxPlan::kSizes; ++size) {
            const OutboxPlan::Size& these = plan_.size(size);
            if (chunk.place - these.begin >= std::uint64_t{these.count} * these.stride) continue;
            free(size, (chunk.place - these.begin) / these.stride);
            return;
        }
    }
    // The peer has ended, and reads nothing any more.
    void forget(const OutboxShare& share) {
        each_lent([&](std::size_t size, std::uint32_t index) {
            if (*holder(size, index) == &share) free(size, index);
        });
    }

    // The first violated invariant of design/by-reference.md, or the empty string. For checked builds and
    // tests.
    const char* violation() const {
        std::uint64_t sum = 0;
        const char* found = "";
        each_lent([&](std::size_t size, std::uint32_t index) {
            const OutboxShare* const share = *holder(size, index);
            sum += plan_.size(size).stride;
            std::uint64_t its = 0;
            each_lent([&](std::size_t other, std::uint32_t at) {
                if (*holder(other, at) == share) its += plan_.size(other).stride;
            });
            if (its != share->bytes) found = "R2: the share of a peer is not what it has been lent";
            if (its >= plan_.bytes() / 2 + plan_.largest_stride())
                found = "R4: a peer has been lent more than half of the outbox and a chunk";
        });
        if (sum != lent()) return "R2: the chunks that are lent do not add up";
        return found;
    }

    // For the exploration of states: a copy whose shares are copies as well, and what decides the future.
    void rebase(const OutboxShare* from, OutboxShare* to) {
        each_lent([&](std::size_t size, std::uint32_t index) {
            OutboxShare*& of = *holder(size, index);
            of = to + (of - from);
        });
    }
    void encode(std::string& text, const OutboxShare* shares) const {
        for (const OutboxShare* of : holders_)
            text.push_back(static_cast<char>(of == nullptr ? 0 : of - shares + 1));
    }

 private:
    OutboxShare** holder(std::size_t size, std::uint32_t index) { return &holders_[first_[size] + index]; }
    OutboxShare* const* holder(std::size_t size, std::uint32_t index) const {
        return &holders_[first_[size] + index];
    }
    std::uint32_t place_of(std::size_t size, std::uint32_t index) const {
        return plan_.size(size).begin + index * plan_.size(size).stride;
    }
    void free(std::size_t size, std::uint32_t index) {
        OutboxShare*& of = *holder(size, index);
        of->bytes -= plan_.size(size).stride;
        free_ += plan_.size(size).stride;
        of = nullptr;
    }
    template <class Action>
    void each_lent(Action&& action) const {
        for (std::size_t size = 0; size < OutboxPlan::kSizes; ++size)
            for (std::uint32_t index = 0; index < plan_.size(size).count; ++index)
                if (*holder(size, index) != nullptr) action(size, index);
    }
    template <class IsRead>
    void sweep(IsRead& is_read) {
        each_lent([&](std::size_t size, std::uint32_t index) {
            if (is_read(place_of(size, index))) free(size, index);
        });
    }
    // The first one that is free: few chunks that are used again and again stay in the caches of both.
    template <class IsRead>
    Chunk find(std::size_t size, OutboxShare& share, IsRead& is_read) {
        const OutboxPlan::Size& these = plan_.size(size);
        for (std::uint32_t index = 0; index < these.count; ++index) {
            const std::uint32_t place = place_of(size, index);
            OutboxShare*& of = *holder(size, index);
            if (of != nullptr) {
                if (!is_read(place)) continue;
                free(size, index);
            }
            of = &share;
            share.bytes += these.stride;
            free_ -= these.stride;
            counters_.high_water = std::max(counters_.high_water, lent());
            return {place, these.room()};
        }
        return {};
    }

    OutboxPlan plan_;
    std::uint64_t free_ = 0;
    std::vector<OutboxShare*> holders_;  // of each chunk, by size; null: free
    std::array<std::uint32_t, OutboxPlan::kSizes> first_{};
    Counters counters_;
};

}  // namespace velo::flow
