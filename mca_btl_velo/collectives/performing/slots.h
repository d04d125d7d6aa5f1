// The messages of runs that are under way. Completions are told from anywhere, and only noted.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>

#include "collectives/goal/operation.h"
#include "types/engine.h"
#include "types/messages.h"

namespace velo::performing {

struct LiveRun;
class Slots;

struct Slot {
    union {
        velo_message_receive receive;  // first: callbacks find the slot by it
        velo_message_send send;
    };
    Slots* owner;
    LiveRun* run;  // none: what comes has been had by multicast, or what is sent is a copy
    goal::Vertex vertex;
    velo_status status;  // when it has been told
    velo_peer* peer;
    Slot *previous, *next;  // of a receive: those of its run. `next`: also those that are free
    Slot* told;             // that were told before
    bool receives;
    bool shared;                          // of a receive: it may come by multicast, too
    bool led;                             // of a receive: it comes from who leads, or by him
    const goal::Piece* piece;             // of a receive in pieces: where it goes on
    std::uint64_t position;               // in that piece
    std::unique_ptr<std::byte[]> packed;  // of a send in pieces, or that the run does not wait for
};

class Slots {
 public:
    // With the turn.
    Slot& take(LiveRun& run, goal::Vertex v, velo_peer* peer) {
        Slot* slot = free_;
        if (slot != nullptr) {
            free_ = slot->next;
        } else {
            slot = &all_.emplace_back();
            slot->owner = this;
        }
        slot->run = &run;
        slot->vertex = v;
        slot->peer = peer;
        slot->receives = slot->shared = slot->led = false;
        return *slot;
    }
    void give_back(Slot& slot) {
        slot.packed.reset();
        slot.next = free_;
        free_ = &slot;
    }

    bool has_told() const { return told_.load(std::memory_order_relaxed) != nullptr; }
    // Those that have been told of, linked by `told` in that order.
    Slot* take_told() {
        if (!has_told()) return nullptr;
        Slot* slot = told_.exchange(nullptr, std::memory_order_acquire);
        Slot* first = nullptr;
        while (slot != nullptr) {
            Slot* const before = std::exchange(slot->told, first);
            first = slot;
            slot = before;
        }
        return first;
    }
    // From anywhere. What was written to the run's memory before is seen by whoever takes it.
    static void tell(Slot& slot, velo_status status) {
        slot.status = status;
        std::atomic<Slot*>& told = slot.owner->told_;
        slot.told = told.load(std::memory_order_relaxed);
        while (!told.compare_exchange_weak(slot.told, &slot, std::memory_order_release,
                                           std::memory_order_relaxed)) {
        }
    }

 private:
    std::deque<Slot> all_;
    Slot* free_ = nullptr;
    std::atomic<Slot*> told_{nullptr};  // the youngest first
};

}  // namespace velo::performing
