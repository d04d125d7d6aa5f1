// Whether data that this process gets from a peer cross some that the peer gets from here.
#pragma once

#include <cstdint>

namespace velo::endpoint {

class Crossing {
 public:
    // From the peer; `crosses`: it has yet to get some of ours.
    void got(bool crosses) {
        if (!crosses) return pass();
        left_ = kNotLongAgo;
    }
    // By the peer, or by us: either may stop.
    void pass() { left_ -= left_ > 0; }
    // They did, not long ago.
    bool crosses() const { return left_ > 0; }

 private:
    static constexpr std::uint8_t kNotLongAgo = 128;  // two windows of 64 messages
    std::uint8_t left_ = 0;
};

}  // namespace velo::endpoint
