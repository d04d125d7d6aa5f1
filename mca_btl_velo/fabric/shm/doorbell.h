// Calls the owner of a segment without a slot of its mailbox: a bit for each sender, and a counter that says
// whether to look. May overtake packets of the same sender.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>

namespace velo::fabric::shm {

template <template <class> class Atom>
class BasicDoorbell {
 public:
    static constexpr std::uint32_t kSendersPerWord = 64;
    static constexpr std::uint32_t words_for(std::uint32_t senders) {
        return (senders + kSendersPerWord - 1) / kSendersPerWord;
    }

    BasicDoorbell(Atom<std::uint32_t>* rings, Atom<std::uint64_t>* bits, std::uint32_t senders)
        : rings_(rings), bits_(bits), senders_(senders) {}

    // Sender. release, twice: the owner may find the bit before it is counted, and whoever sees the count
    // sees the bit.
    void ring(std::uint32_t sender) {
        bits_[sender / kSendersPerWord].fetch_or(std::uint64_t{1} << sender % kSendersPerWord,
                                                 std::memory_order_release);
        rings_->fetch_add(1, std::memory_order_release);
    }

    // Owner: the sender has ended, and what it has rung is not to be answered.
    void silence(std::uint32_t sender) {
        bits_[sender / kSendersPerWord].fetch_and(~(std::uint64_t{1} << sender % kSendersPerWord),
                                                  std::memory_order_relaxed);
    }

    bool rung() const { return rings_->load(std::memory_order_relaxed) != answered_; }
    // Owner: calls `action` for each sender that has rung since. Returns how many.
    template <typename Action>
    int answer(Action action) {
        const std::uint32_t rings = rings_->load(std::memory_order_acquire);
        if (rings == answered_) return 0;
        answered_ = rings;
        int callers = 0;
        for (std::uint32_t word = 0; word < words_for(senders_); ++word) {
            if (bits_[word].load(std::memory_order_relaxed) == 0) continue;
            // acquire: a bit may be there before its ring is counted.
            std::uint64_t bits = bits_[word].exchange(0, std::memory_order_acquire);
            for (; bits != 0; bits &= bits - 1) {
                const std::uint32_t sender =
                    word * kSendersPerWord + static_cast<std::uint32_t>(std::countr_zero(bits));
                if (sender >= senders_) break;
                action(sender);
                ++callers;
            }
        }
        return callers;
    }

 private:
    Atom<std::uint32_t>* rings_;
    Atom<std::uint64_t>* bits_;
    std::uint32_t senders_;
    std::uint32_t answered_ = 0;
};

using Doorbell = BasicDoorbell<std::atomic>;

}  // namespace velo::fabric::shm
