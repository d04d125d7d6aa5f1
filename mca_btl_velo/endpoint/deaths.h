// Peers that were killed, until the log has told of the first one. Mostly a launcher ends the whole job then,
// or an operation fails, and says so; whoever is still there after a while, and only waits, is told.
#pragma once

#include <cstdint>

namespace velo::endpoint {

template <typename Peer>
class Deaths {
 public:
    static constexpr std::uint64_t kPatienceNs = 2'000'000'000;

    void note(Peer& peer, std::uint64_t now_ns) {
        if (first_ != nullptr) return;
        first_ = &peer;
        due_ns_ = now_ns + kPatienceNs;
    }
    // Once, when it is time; else null.
    Peer* due(std::uint64_t now_ns) {
        if (due_ns_ == 0 || now_ns < due_ns_) return nullptr;
        due_ns_ = 0;
        return first_;
    }

 private:
    Peer* first_ = nullptr;
    std::uint64_t due_ns_ = 0;  // 0: none has died, or all is told
};

}  // namespace velo::endpoint
