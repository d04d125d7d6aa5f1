// UCX's TCP connections, and whether the other end of each still answers.
//
// Its kernel answers while its process computes: it acknowledges what it takes, and that its window is shut.
// TCP_USER_TIMEOUT would end a connection whose window is shut for so long; TCP's keep-alive covers an idle
// connection only; and what is unacknowledged Linux repeats for a quarter of an hour.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace velo::fabric::ucx {

using WorkerAddress = std::span<const std::byte>;

// How long an answer has been awaited in vain. Pure.
class Silence {
 public:
    using Time = std::chrono::milliseconds;

    // `awaited`: at this look something is unacknowledged. `heard`: so long ago the last acknowledgement
    // came. `gap`: since the last look.
    void look(bool awaited, Time heard, Time gap) {
        lasted_ = awaited && heard >= gap ? lasted_ + std::min(gap, kMost) : Time{};
    }
    Time lasted() const { return lasted_; }

 private:
    // A longer gap counts as this: what is unacknowledged after it may have been sent just now.
    static constexpr Time kMost{1000};

    Time lasted_{};
};

class Connections {
 public:
    explicit Connections(Silence::Time patience) : patience_(patience) {}

    // Adds those of this process that UCX has made or accepted: the other end, or our own, has an IP address
    // and a port that occur in the worker address of a peer, or in ours. `any_peer` tells whether the test
    // that it is given holds for a known peer's address.
    void find(WorkerAddress own,
              const std::function<bool(const std::function<bool(WorkerAddress)>&)>& any_peer);

    // Shuts down those that have been silent for longer than the patience: UCX then reports an error. True if
    // there was one.
    bool end_silent(Silence::Time now);

 private:
    struct Connection {
        int fd;
        std::uint64_t cookie;  // the socket's, as long as it is open: a descriptor may become another's
        Silence silence;
    };

    Silence::Time patience_, last_look_{};
    std::vector<Connection> all_;
};

}  // namespace velo::fabric::ucx
