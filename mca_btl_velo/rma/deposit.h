// The data of a get that their owner stores in a chunk of its outbox as soon as it has told the peer of the
// message, in pieces: a word beside the chunk says how much of it is there, and the peer copies that while
// the next piece is stored. Nobody waits: what is not there in time the peer gets from the owner's memory.
// The owner keeps the chunk until the peer has said that its get is over.
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
    static constexpr std::size_t kPiece = 4096;

    explicit BasicDeposit(Atom<std::uint32_t>* there) : there_(there) {}

    // Owner: nothing is there. Published with the message that tells the peer.
    void open() { there_->store(0, std::memory_order_relaxed); }
    // store(offset, count): puts so many bytes there.
    template <class Store>
    void fill(std::size_t from_page, std::size_t bytes, Store&& store) {
        for (std::size_t at = 0; at < bytes;) {
            const std::size_t step = std::min(kPiece - (from_page + at) % kPiece, bytes - at);
            store(at, step);
            at += step;
            there_->store(static_cast<std::uint32_t>(at), std::memory_order_release);
        }
    }
    // Peer: bytes that are there, not more than `bytes`, whatever the owner has written.
    std::size_t there(std::size_t bytes) const {
        return std::min<std::size_t>(there_->load(std::memory_order_acquire), bytes);
    }

 private:
    Atom<std::uint32_t>* there_;
};

using Deposit = BasicDeposit<std::atomic>;

}  // namespace velo::rma
