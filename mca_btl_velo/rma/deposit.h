// A staged get. The owner copies its data into a ring (flow/deposit_rings.h), piece by piece, after it has
// announced them; the peer copies a piece while the next is stored. Three words of the ring:
// - `stored`: bytes in so far;
// - `taken`: bytes out so far, so there is room again;
// - `number`: which of several announced deposits the ring serves now.
// Nobody waits: what is late the peer gets from the owner's memory.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace velo::rma {

template <template <class> class Atom>
class BasicDeposit {
 public:
    // A piece ends where a page ends: the peer's processor fetches ahead of what it reads, and not past that.
    // Or it is long, for an owner to whose stores that does no harm, and whom each costs something.
    static constexpr std::size_t kPage = 4096, kLong = 8192;
    enum class Pieces : std::uint8_t { kPages, kLong };

    // ring: its bytes, not 0 where something is stored or taken; it begins `from_page` bytes behind the
    // beginning of a page.
    BasicDeposit(Atom<std::uint32_t>* number, Atom<std::uint32_t>* stored, Atom<std::uint32_t>* taken,
                 std::size_t ring, std::size_t from_page)
        : number_(number), stored_(stored), taken_(taken), ring_(ring), from_page_(from_page) {}

    // Owner: opens the ring, empty, for the deposit of this number. The former one has been read or never
    // will be.
    void open(std::uint32_t number) {
        stored_->store(0, std::memory_order_relaxed);
        taken_->store(0, std::memory_order_relaxed);
        number_->store(number, std::memory_order_release);
    }
    // Peer: the ring serves the deposit of that number now.
    bool is_open(std::uint32_t number) const { return number_->load(std::memory_order_acquire) == number; }
    // Owner: of `bytes` of data the next pieces, from `at` on, as far as there is room. Returns where that
    // ends. store(place, at, count): puts so many bytes at that place of the ring.
    template <class Store>
    std::size_t fill(std::size_t at, std::size_t bytes, Pieces pieces, Store&& store) {
        std::size_t end = taken(at) + ring_;
        while (at < bytes) {
            const std::size_t step = piece(at, bytes, pieces);
            if (at + step > end && at + step > (end = taken(at) + ring_)) break;
            store(at % ring_, at, step);
            at += step;
            stored_->store(static_cast<std::uint32_t>(at), std::memory_order_release);
        }
        return at;
    }
    // Owner: how much the peer has taken of `at` bytes, not more than that, whatever it has written.
    std::size_t taken(std::size_t at) const {
        return std::min<std::size_t>(taken_->load(std::memory_order_acquire), at);
    }

    // Peer: takes what is there of `bytes` from `at` on. Returns where that ends. take(place, at, count).
    // Whatever the owner has written, it stays within the ring and `bytes`.
    template <class Take>
    std::size_t take(std::size_t at, std::size_t bytes, Take&& take) {
        const std::size_t there = std::min<std::size_t>(stored_->load(std::memory_order_acquire), bytes);
        while (at < there) {
            const std::size_t step = piece(at, there, Pieces::kPages);
            take(at % ring_, at, step);
            at += step;
            taken_->store(static_cast<std::uint32_t>(at), std::memory_order_release);
        }
        return at;
    }

 private:
    std::size_t piece(std::size_t at, std::size_t bytes, Pieces pieces) const {
        const std::size_t place = at % ring_;
        const std::size_t most = pieces == Pieces::kLong ? kLong : kPage - (from_page_ + place) % kPage;
        return std::min({most, ring_ - place, bytes - at});
    }

    Atom<std::uint32_t>*number_, *stored_, *taken_;
    std::size_t ring_, from_page_;
};

using Deposit = BasicDeposit<std::atomic>;

}  // namespace velo::rma
