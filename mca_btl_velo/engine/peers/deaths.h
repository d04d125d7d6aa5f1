// Peers that were killed, until the log has told of them. Where one calls MPI_Abort, its launcher ends the
// others within milliseconds: they say nothing. Where one is killed, it lets them live for a second, and
// whoever still waits for the dead one then says whom and why.
#pragma once

#include <cstdint>
#include <vector>

namespace velo::engine {

template <typename Peer>
class Deaths {
 public:
    static constexpr std::uint64_t kPatienceNs = 300'000'000;

    void note(Peer& peer, std::uint64_t now_ns) { untold_.push_back({&peer, now_ns + kPatienceNs}); }
    // Each once, when it is time; else null.
    Peer* due(std::uint64_t now_ns) {
        if (untold_.empty() || now_ns < untold_.front().due_ns) return nullptr;
        Peer* const peer = untold_.front().peer;
        untold_.erase(untold_.begin());
        return peer;
    }

 private:
    struct Untold {
        Peer* peer;
        std::uint64_t due_ns;
    };
    std::vector<Untold> untold_;  // the first one is due first
};

}  // namespace velo::engine
