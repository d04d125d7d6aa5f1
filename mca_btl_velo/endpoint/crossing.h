// Whether data that this process gets from a peer cross some that the peer gets from here: what two send to
// each other at the same time is best stored in one way, by steps that leave time for the other's.
#pragma once

#include <cstddef>
#include <cstdint>

namespace velo::endpoint {

class Crossing {
 public:
    // From the peer; `crosses`: it has yet to get some of ours.
    void got(std::size_t bytes, bool crosses) {
        if (!crosses) return pass();
        bytes_ = bytes;
        left_ = kNotLongAgo;
    }
    // By the peer, or by us: either may stop.
    void pass() {
        if (left_ > 0 && --left_ == 0) bytes_ = 0;
    }
    // Got by us when they crossed, not long ago; 0: they do not.
    std::size_t bytes() const { return bytes_; }

 private:
    static constexpr std::uint8_t kNotLongAgo = 128;  // two windows of 64 messages
    std::size_t bytes_ = 0;
    std::uint8_t left_ = 0;
};

}  // namespace velo::endpoint
