// Puts the runs of one sender together again. A message of one run is delivered from the mailbox itself
// and hardly ever comes here; a longer one is gathered in a buffer of the pool, or, for RMA data, at its
// destination.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "platform/copy.h"
#include "rma/message.h"
#include "rma/rma.h"

namespace velo::engine {

// Buffers of one size, kept for reuse. At most one is in use for each sender that is in the middle of a
// message.
class BufferPool {
 public:
    explicit BufferPool(std::size_t bytes) : bytes_(bytes) {}

    std::size_t buffer_bytes() const { return bytes_; }
    // Of the buffers that are not in use.
    std::size_t bytes() const { return bytes_ * free_.size(); }
    std::unique_ptr<std::byte[]> take() {
        if (free_.empty()) return std::make_unique_for_overwrite<std::byte[]>(bytes_);
        auto buffer = std::move(free_.back());
        free_.pop_back();
        return buffer;
    }
    void give_back(std::unique_ptr<std::byte[]> buffer) { free_.push_back(std::move(buffer)); }

 private:
    std::size_t bytes_;
    std::vector<std::unique_ptr<std::byte[]>> free_;
};

// The payload of a run in the mailbox: in two pieces if the run goes over the end of the ring.
struct Payload {
    std::byte* data;
    std::size_t bytes;
    const std::byte* more;
    std::size_t more_bytes;
};

struct Incoming {
    // What of the sender's is being put together, or followed; kept with the peer's hot members.
    enum class State : std::uint8_t { kIdle, kMessage, kRma, kBatch };

    std::uint8_t tag = 0;
    std::byte* to = nullptr;  // where the next bytes go
    std::uint64_t room = 0;   // how many may come
    std::unique_ptr<std::byte[]> buffer;
    rma::MessageHeader rma{};

    // False if the sender sends more than there is room for: a protocol error.
    bool append(const std::byte* data, std::size_t bytes) {
        if (bytes > room) return false;
        platform::copy(to, data, bytes);
        to += bytes;
        room -= bytes;
        return true;
    }
    bool append(const Payload& payload) {
        return append(payload.data, payload.bytes) &&
               (payload.more_bytes == 0 || append(payload.more, payload.more_bytes));
    }
};

}  // namespace velo::engine
