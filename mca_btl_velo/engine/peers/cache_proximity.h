// Whether the core of a peer shares a cache with this one, by how long a look at a line takes that the peer
// has written last.
//
// Between cores that share a cache such a look takes 25 to 60 ns on some processors, 60 to 120 on others,
// between cores that do not 110 and more, the reading of the clock included (design/by-reference.md): what
// lies between changes nothing. Much can make a look long, nothing makes one short: the shortest of a few
// counts. The system may move a process at any time, so that the looks go on; a change is believed when it
// shows twice.
//
// Pure: the line, the clock and what follows from the answer are the user's.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace velo::engine {

class CacheProximity {
 public:
    // Nanoseconds of a look: from the first on a peer that was near is far, below the second one that was far
    // is near.
    static constexpr std::uint64_t kFarNs = 105, kNearNs = 90;
    // Looks that one judgement takes, messages between two looks (which cost both sides a line), judgements
    // in a row that a change takes.
    static constexpr std::uint32_t kLooks = 4, kMessagesPerLook = 128, kAgreeing = 2;

    bool far() const { return far_; }
    // A message is sent. True: a look is due, as at each until the first judgement.
    bool count_message() {
        if (messages_ > 0) {
            --messages_;
            return false;
        }
        messages_ = known_ ? kMessagesPerLook - 1 : 0;
        return true;
    }
    // The same, unless a look is due. False: it is, and the message has not been counted.
    bool try_count_message() noexcept {
        if (messages_ == 0) return false;
        --messages_;
        return true;
    }
    // The look found this in the line. Nothing is learned from a line that is as it was. True: what far()
    // says has changed.
    bool record(std::uint64_t written, std::uint64_t ns) {
        if (written == written_) return false;
        written_ = written;
        shortest_ = std::min(shortest_, ns);
        if (++looks_ < kLooks) return false;
        const bool far = shortest_ >= (far_ ? kNearNs : kFarNs);
        shortest_ = std::numeric_limits<std::uint64_t>::max();
        looks_ = 0;
        agreeing_ = far == far_ ? 0 : agreeing_ + 1;
        if (agreeing_ < (known_ ? kAgreeing : 1)) {
            known_ = true;
            return false;
        }
        known_ = true;
        agreeing_ = 0;
        far_ = far;
        return true;
    }

 private:
    std::uint64_t shortest_ = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t written_ = 0;
    std::uint8_t messages_ = 0, looks_ = 0, agreeing_ = 0;
    bool known_ = false, far_ = false;
};

}  // namespace velo::engine
