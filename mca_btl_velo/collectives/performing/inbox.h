// What a performer hears of peers, from any thread, until it attends to it with its turn.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <mutex>
#include <utility>
#include <vector>

#include "collectives/performing/failures.h"
#include "messaging/messenger.h"

namespace velo::performing {

class Inbox final : public messaging::MessengerEvents {
 public:
    bool has_some() const { return heard_.load(std::memory_order_acquire); }
    // True if somebody has departed. Returns what has been told to `endings`.
    bool take(std::vector<Ending>& endings) {
        std::lock_guard lock(mutex_);
        const bool some_departed = !departing_.empty();
        departed_.insert(departed_.end(), departing_.begin(), departing_.end());
        departing_.clear();
        endings.swap(endings_);
        heard_.store(false, std::memory_order_relaxed);
        return some_departed;
    }
    // With the turn: as far as it has been taken.
    bool has_departed(const velo_peer* peer) const {
        return std::ranges::find(departed_, peer) != departed_.end();
    }

    void departed(velo_peer& peer) override {
        hear([&] { departing_.push_back(&peer); });
    }
    void noticed(const messaging::Notice& notice) override {
        hear([&] { endings_.push_back(std::bit_cast<Ending>(notice)); });
    }

 private:
    template <typename Note>
    void hear(Note note) {
        std::lock_guard lock(mutex_);
        note();
        heard_.store(true, std::memory_order_release);
    }

    std::atomic<bool> heard_{false};
    std::mutex mutex_;
    std::vector<velo_peer*> departing_;  // under the mutex
    std::vector<Ending> endings_;        // under the mutex
    std::vector<velo_peer*> departed_;
};

}  // namespace velo::performing
