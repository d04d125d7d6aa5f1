// Gets that are begun one behind the other outside of progress, as by receives for which messages wait: the
// first one copies at once, for its sender may wait for it; those behind it wait for progress. So a process
// that posts many receives comes to its sends before it copies, and its peers copy at the same time as it.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>

#include "engine/idle/idle.h"
#include "engine/large/get.h"
#include "engine/peers/peer.h"
#include "platform/gate.h"

namespace velo::engine {

class PostponedHost {
 public:
    // Carries a get out, without the mutex: a status as of velo_get.
    virtual velo_status get_now(Peer& peer, std::uint32_t deposit, const Get& get) = 0;

 protected:
    ~PostponedHost() = default;
};

class Postponed final : public Work {
 public:
    // `gate`: entered while the process polls.
    Postponed(PostponedHost& host, platform::OptionalMutex& mutex, Idle& idle, const platform::Gate& gate)
        : host_(host), mutex_(mutex), idle_(idle), gate_(gate) {}

    // Under the mutex. True: the get is carried out when the process polls, and its peer stays until then.
    bool take(Peer& peer, std::uint32_t deposit, const Get& get) {
        if (gate_.is_entered()) return false;
        idle_.want();
        if (!has_begun_) {
            has_begun_ = true;
            return false;
        }
        ++peer.copying;
        gets_.push_back({&peer, deposit, get});
        return true;
    }

    bool any() const override { return has_begun_ || !gets_.empty(); }
    // One at a time: what arrives meanwhile is seen between two.
    int run(bool) override {
        Waiting next;
        {
            std::lock_guard lock(mutex_);
            has_begun_ = false;
            if (gets_.empty()) return 0;
            next = gets_.front();
            gets_.pop_front();
        }
        const velo_status status = host_.get_now(*next.peer, next.deposit, next.get);
        {
            std::lock_guard lock(mutex_);
            --next.peer->copying;
        }
        if (status != VELO_OK && status != VELO_QUEUED)
            next.get.completion.done(next.get.completion.argument, status, 0);
        return 1;
    }

 private:
    struct Waiting {
        Peer* peer;
        std::uint32_t deposit;
        Get get;
    };

    PostponedHost& host_;
    platform::OptionalMutex& mutex_;
    Idle& idle_;
    const platform::Gate& gate_;
    std::deque<Waiting> gets_;
    bool has_begun_ = false;  // one since the process has polled
};

}  // namespace velo::engine
