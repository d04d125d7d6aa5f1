// The messages that wait for credits towards one peer, oldest first. Intrusive: a velo_send is its own node.
#pragma once

#include <cstddef>

#include "types/engine.h"

namespace velo::engine {

class SendQueue {
 public:
    bool empty() const { return head_ == nullptr; }
    velo_send* front() const { return head_; }
    bool holds_several() const { return head_ != tail_ && head_ != nullptr; }
    // Bytes of the queued messages that have not been sent.
    std::size_t bytes() const noexcept { return bytes_; }

    void push(velo_send* send) {
        send->next = nullptr;
        (head_ == nullptr ? head_ : tail_->next) = send;
        tail_ = send;
        bytes_ += send->bytes[0] + send->bytes[1] - send->sent;
    }
    void pop() { head_ = head_->next; }
    void sent(std::size_t bytes) { bytes_ -= bytes; }

 private:
    velo_send* head_ = nullptr;
    velo_send* tail_ = nullptr;
    std::size_t bytes_ = 0;
};

}  // namespace velo::engine
