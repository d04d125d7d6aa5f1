// When messages wait for credits, a free slot or the network: how often, how long, and a warning when it
// takes too long. Called where a message is queued and where a queue moves, never for a message that can go.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

namespace velo::engine {

// The stalls of one peer: a stall lasts from the first message that has to wait until none waits.
struct Stall {
    std::uint64_t since_ns = 0;  // 0: none now
    std::uint64_t total_ns = 0;  // of those that are over
    std::uint64_t count = 0;
    std::uint64_t moved_ns = 0;       // when something was last seen to have left the queue
    std::uint64_t warn_after_ns = 0;  // without a move, the next warning
    std::uint32_t place = 0;          // in Stalls::open_
    bool warned = false;              // of this stall
    bool moved = false;               // something has left the queue since the last check

    std::uint64_t ns_until(std::uint64_t now_ns) const {
        std::uint64_t since = since_ns;  // may be read while another thread ends the stall
        return total_ns + (since != 0 && now_ns > since ? now_ns - since : 0);
    }
};

template <typename Owner>
class Stalls {
 public:
    // `warning_ns`: how long nothing may move before there is a warning; 0: for ever.
    explicit Stalls(std::uint64_t warning_ns) : warning_ns_(warning_ns) {}

    // There was a warning about this stall.
    bool warned(const Owner& peer) const { return peer.stall.warned; }
    // Any thread may ask; the rest is under the lock of the engine.
    bool any() const { return open_count_.load(std::memory_order_relaxed) != 0; }
    std::uint64_t count() const { return count_; }

    void begin(Owner& peer, std::uint64_t now_ns) {
        Stall& stall = peer.stall;
        stall.since_ns = stall.moved_ns = now_ns;
        stall.warn_after_ns = warning_ns_;
        stall.moved = stall.warned = false;
        stall.place = static_cast<std::uint32_t>(open_.size());
        open_.push_back(&peer);
        count_open();
        ++stall.count;
        ++count_;
    }

    void end(Owner& peer, std::uint64_t now_ns) {
        Stall& stall = peer.stall;
        stall.total_ns += now_ns - stall.since_ns;
        stall.since_ns = 0;
        open_.back()->stall.place = stall.place;
        open_[stall.place] = open_.back();
        open_.pop_back();
        count_open();
    }

    // Calls warn(peer, ns) for each peer to which nothing has moved for the warning time, for twice, four
    // times, ... of it. Returns the number of these calls.
    template <typename Warn>
    int check(std::uint64_t now_ns, Warn warn) {
        if (warning_ns_ == 0) return 0;
        int calls = 0;
        for (Owner* peer : open_) {
            Stall& stall = peer->stall;
            if (stall.moved) {
                stall.moved = false;
                stall.moved_ns = now_ns;
                stall.warn_after_ns = warning_ns_;
            } else if (std::uint64_t quiet = now_ns - stall.moved_ns; quiet >= stall.warn_after_ns) {
                while (quiet >= stall.warn_after_ns) stall.warn_after_ns *= 2;
                stall.warned = true;
                warn(*peer, quiet);
                ++calls;
            }
        }
        return calls;
    }

 private:
    void count_open() {
        open_count_.store(static_cast<std::uint32_t>(open_.size()), std::memory_order_relaxed);
    }

    std::uint64_t warning_ns_;
    std::uint64_t count_ = 0;
    std::vector<Owner*> open_;
    std::atomic<std::uint32_t> open_count_{0};
};

}  // namespace velo::engine
