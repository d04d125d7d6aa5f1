// The order in which a process makes its first contacts, learned from the last time, so that the next windows
// can be opened before they are needed. Programs repeat themselves: who follows whom is kept for up to
// kMostKept peers, whatever the size of the job, and how many are announced ahead grows with each guess that
// was right and is halved by each that was not.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace velo::flow {

class ContactOrder {
 public:
    static constexpr std::uint32_t kNobody = UINT32_MAX;
    static constexpr std::uint32_t kUnopened = UINT32_MAX;
    static constexpr std::uint32_t kMostAhead = 16;
    static constexpr std::uint32_t kMostKept = 1024;

    // A peer whose turn is expected, with its credits when it was last idle; kUnopened: not known yet.
    struct Expected {
        std::uint32_t peer;
        std::uint32_t credit;
    };

    ContactOrder(std::uint32_t peers, std::uint32_t ahead)
        : ahead_(std::min(ahead, kMostAhead)),
          kept_(ahead_ > 0 ? std::bit_ceil(std::clamp(peers, 1U, kMostKept)) : 0) {}

    bool enabled() const { return ahead_ > 0; }
    // At most 8 KiB.
    std::size_t bytes() const { return kept_.size() * sizeof(Pair); }

    // A message for `peer` had no window, or one that is not open yet.
    void met(std::uint32_t peer) {
        const std::uint32_t position = find(peer);
        if (position < count_) return confirm(position);
        const bool foretold = next_of(last_) == peer;
        depth_ = foretold ? std::min(depth_ + 1, ahead_) : depth_ / 2;
        count_ = 0;
        if (last_ != kNobody) kept_[place(last_)] = {last_, peer};
        last_ = peer;
    }
    // Whose turn comes after those that are expected already; kNobody: no more are wanted, or none is known.
    std::uint32_t upcoming() const {
        if (count_ >= depth_) return kNobody;
        const std::uint32_t from = count_ > 0 ? expected_[count_ - 1].peer : last_;
        const std::uint32_t peer = next_of(from);
        return peer == kNobody || peer == last_ || find(peer) < count_ ? kNobody : peer;
    }
    void expect(std::uint32_t peer, std::uint32_t credit) { expected_[count_++] = {peer, credit}; }
    void opened(std::uint32_t peer, std::uint32_t credit) {
        const std::uint32_t position = find(peer);
        if (position < count_) expected_[position].credit = credit;
    }

    std::uint32_t count() const { return count_; }
    const Expected& expected(std::uint32_t position) const { return expected_[position]; }
    // The peer at this position has had its turn, and those before it have been passed over.
    void confirm(std::uint32_t position) {
        depth_ = std::min(depth_ + 1, ahead_);
        last_ = expected_[position].peer;
        std::copy(expected_ + position + 1, expected_ + count_, expected_);
        count_ -= position + 1;
    }
    // Its window was closed before it was used.
    void wasted(std::uint32_t position) {
        depth_ /= 2;
        count_ = position;
    }
    // It will never be met again.
    void forget(std::uint32_t peer) {
        if (!enabled()) return;
        count_ = 0;
        if (last_ == peer) last_ = kNobody;
        for (Pair& pair : kept_)
            if (pair.peer == peer || pair.next == peer) pair = {};
    }

    // The part of the state that decides what happens next.
    template <class Put>
    void encode(Put put) const {
        put(last_);
        put(depth_);
        for (std::uint32_t i = 0; i < count_; ++i) put(expected_[i].peer), put(expected_[i].credit);
        for (const Pair& pair : kept_) put(pair.peer), put(pair.next);
    }

 private:
    // Whose turn came after that of `peer` the last time.
    struct Pair {
        std::uint32_t peer = kNobody;
        std::uint32_t next = kNobody;
    };
    std::size_t place(std::uint32_t peer) const { return peer & (kept_.size() - 1); }
    std::uint32_t next_of(std::uint32_t peer) const {
        if (peer == kNobody) return kNobody;
        const Pair& pair = kept_[place(peer)];
        return pair.peer == peer ? pair.next : kNobody;
    }
    std::uint32_t find(std::uint32_t peer) const {
        std::uint32_t position = 0;
        while (position < count_ && expected_[position].peer != peer) ++position;
        return position;
    }

    std::uint32_t ahead_;
    std::uint32_t depth_ = 0;
    std::uint32_t last_ = kNobody;  // who was met last
    std::uint32_t count_ = 0;
    Expected expected_[kMostAhead] = {};
    std::vector<Pair> kept_;  // a power of two of them
};

}  // namespace velo::flow
