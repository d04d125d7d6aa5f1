// Whether this process and a peer get data from each other at the same time.
#pragma once

#include <cstdint>

namespace velo::engine {

class BidirectionalTraffic {
 public:
    // This process has got data from the peer; `both_ways`: the peer has yet to get some of ours.
    void got(bool both_ways) {
        if (!both_ways) return pass();
        left_ = kNotLongAgo;
    }
    // Data have gone one way: either process may have stopped.
    void pass() { left_ -= left_ > 0; }
    // They did, not long ago.
    bool is_bidirectional() const { return left_ > 0; }

 private:
    static constexpr std::uint8_t kNotLongAgo = 128;  // two windows of 64 messages
    std::uint8_t left_ = 0;
};

}  // namespace velo::engine
