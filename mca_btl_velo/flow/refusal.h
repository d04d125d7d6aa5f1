// A mailbox that refuses packets beyond a number for each sender, who sends them again after a time. Goes
// with a policy that is not limited().
#pragma once

#include "flow/emitter.h"

namespace velo::flow {

class Refusal {
 public:
    // Packets of one sender that this process's mailbox takes at a time; the fabric refuses further ones.
    virtual std::uint32_t refusal_limit() const = 0;
    // The fabric has refused DATA for `to` at the time `now_ns`, of any monotonic clock.
    virtual void refused(PeerIndex to, std::uint64_t now_ns) = 0;
    // The time before which nothing may be offered to `to` again: what has been refused stays at the head of
    // the queue of the pair, and all that is sent meanwhile queues behind it.
    virtual std::uint64_t retry_at_ns(PeerIndex to) const = 0;

 protected:
    ~Refusal() = default;
};

}  // namespace velo::flow
