// A sender's view of one receiver's mailbox: reserve slots, then store packets into them.
#pragma once

#include <algorithm>

#include "mailbox/layout.h"

namespace velo::mailbox {

template <template <class> class Atom = std::atomic>
class Writer {
 public:
    Writer() = default;  // of no mailbox
    Writer(Pointers<Atom>* pointers, Slot<Atom>* slots, std::uint32_t capacity)
        : pointers_(pointers), slots_(slots), divider_(capacity) {}

    bool is_open() const { return slots_ != nullptr; }
    std::uint32_t capacity() const { return divider_.capacity(); }

    // The caller holds a credit (or the credit region's guarantee) for each of `count` slots.
    // acq_rel chains all reservations: a credit that some sender got for a freed slot happens before every
    // later reservation, so whoever reserves the next lap of that slot may write it although the credit was
    // not its own.
    [[gnu::always_inline]] Cursor reserve(std::uint32_t count) {
        const std::uint64_t position = pointers_->write.fetch_add(count, std::memory_order_acq_rel);
        behind_ = position + count;
        return divider_.locate(position);
    }

    // Without credits: reserves up to `wanted` free slots; returns how many, 0 if fewer than `least` are
    // free.
    std::uint32_t try_reserve(std::uint32_t least, std::uint32_t wanted, Cursor* first) {
        std::uint64_t write = pointers_->write.load(std::memory_order_relaxed);
        for (;;) {
            std::uint64_t used = write - known_read_;
            if (used + wanted > capacity()) {
                // acquire: the receiver's last look at the slots that it freed happens before our stores into
                // them.
                known_read_ = pointers_->read.load(std::memory_order_acquire);
                // The pointers were not read at one instant: `write` may be older than `read`.
                used = write > known_read_ ? write - known_read_ : 0;
                if (used + least > capacity()) return 0;
            }
            auto count = static_cast<std::uint32_t>(std::min<std::uint64_t>(wanted, capacity() - used));
            // relaxed: every sender looks at the read pointer itself.
            if (pointers_->write.compare_exchange_weak(write, write + count, std::memory_order_relaxed,
                                                       std::memory_order_relaxed)) {
                behind_ = write + count;
                *first = divider_.locate(write);
                return count;
            }
        }
    }

    // Behind what was reserved last: the next, if nobody comes between.
    Cursor behind() const { return divider_.locate(behind_); }

    // Payload of a run that starts at this slot. It goes on at `start` after `contiguous` bytes.
    std::byte* payload(Cursor at) { return slots_[at.index].payload; }
    std::size_t contiguous(Cursor at) const { return wire::run_capacity(capacity() - at.index); }
    std::byte* start() { return reinterpret_cast<std::byte*>(slots_); }

    std::byte* slot(Cursor at) { return reinterpret_cast<std::byte*>(slots_ + at.index); }

    // Adds the credits, 1..65535, to the run of this header, whose length is final.
    void add_piggyback(Cursor at, wire::Header& header, std::uint32_t credits) {
        header.flags |= wire::kPiggyback;
        const auto value = static_cast<std::uint16_t>(credits);
        std::memcpy(in_run(payload(at), contiguous(at), start(), header.piggyback_offset()), &value,
                    sizeof value);
    }

    // Makes the run visible; the payload is complete. release pairs with Reader::word.
    [[gnu::always_inline]] void publish(Cursor at, wire::Header header) {
        header.lap = at.lap;
        slots_[at.index].header.store(header.pack(), std::memory_order_release);
    }

 private:
    Pointers<Atom>* pointers_ = nullptr;
    Slot<Atom>* slots_ = nullptr;
    Divider divider_{1};
    std::uint64_t behind_ = 0;
    std::uint64_t known_read_ = 0;
};

}  // namespace velo::mailbox
