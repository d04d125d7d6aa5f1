// Stands in for UCX in the unit tests: workers of one process, whose active messages arrive when the receiver
// makes progress, all that are there, in the order of sending. A test has workers of its own, through which
// it sends any bytes at all, and finds what was sent to them.
//
// Headers and data come in memory of exactly their size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

namespace velo::test {

struct FakeUcx {
    struct Message {
        unsigned id;
        std::vector<std::byte> header, data;
        bool announced = false;  // by rendezvous: the data is fetched when the receiver asks for it
    };
    // A worker by the bytes of its address, which is what processes tell each other.
    static std::vector<std::byte> open_worker();
    static void close_worker(std::span<const std::byte> address);
    static void send(std::span<const std::byte> to, Message message);
    // While this is so, small messages stay in UCX's hands: it looks at their data when the network is free.
    static inline bool is_busy = false;
    static void free_network();
    // While this is so, no connection can be made.
    static inline bool is_unreachable = false;
    // All connections to a worker end with an error, as when its process dies.
    static void break_connections(std::span<const std::byte> to);
    // What has been sent to a worker of the test.
    static std::deque<Message> take_all(std::span<const std::byte> at);
};

}  // namespace velo::test
