// For a receiver that takes a limited number of packets of each sender at a time and refuses more: how many
// of a sender's have left its mailbox is counted in its segment.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace velo::fabric::shm {

// A sender's view.
template <template <class> class Atom>
class BasicAcceptance {
 public:
    BasicAcceptance(std::uint32_t limit, const Atom<std::uint32_t>* retrieved)
        : limit_(limit), retrieved_(retrieved) {}

    // How many of `wanted` packets are taken now, and so sent; 0 if fewer than `least`.
    std::uint32_t accept(std::uint32_t least, std::uint32_t wanted) {
        if (sent_ + wanted - known_retrieved_ > limit_) {
            // acquire: the receiver's last look at the slots that it freed happens before the stores of
            // whoever reserves them next; see Writer::reserve.
            known_retrieved_ = retrieved_->load(std::memory_order_acquire);
        }
        const std::uint32_t waiting = sent_ - known_retrieved_;
        if (waiting + least > limit_) return 0;
        const std::uint32_t count = std::min(wanted, limit_ - waiting);
        sent_ += count;
        return count;
    }

    // Receiver: so many more have left the mailbox. release: as Reader::publish.
    static void count(Atom<std::uint32_t>& retrieved, std::uint32_t packets) {
        retrieved.store(retrieved.load(std::memory_order_relaxed) + packets, std::memory_order_release);
    }

 private:
    std::uint32_t limit_;
    std::uint32_t sent_ = 0;  // packets, modulo 2^32, as what has been retrieved: at most limit_ lie between
    std::uint32_t known_retrieved_ = 0;
    const Atom<std::uint32_t>* retrieved_;
};

using Acceptance = BasicAcceptance<std::atomic>;

}  // namespace velo::fabric::shm
