// The receiver's view of its own mailbox: look at the oldest run, use it in place, free its slots.
#pragma once

#include "mailbox/layout.h"

namespace velo::mailbox {

template <template <class> class Atom = std::atomic>
class Reader {
 public:
    Reader(Pointers<Atom>* pointers, Slot<Atom>* slots, std::uint32_t capacity)
        : pointers_(pointers), slots_(slots), capacity_(capacity) {}

    // The header of the oldest run, 0 if it has not arrived. Slots are stored out of order by different
    // senders; the receiver takes them in the order of reservation. acquire pairs with Writer::publish.
    std::uint64_t poll() const {
        std::uint64_t word = slots_[cursor_.index].header.load(std::memory_order_acquire);
        return wire::Header::lap_of(word) == cursor_.lap ? word : 0;
    }

    // Payload of the run that poll found; valid until a slot's credit is returned or publish is called. It
    // goes on at `start` after `contiguous` bytes.
    std::byte* payload() { return slots_[cursor_.index].payload; }
    std::size_t contiguous() const { return wire::run_capacity(capacity_ - cursor_.index); }
    std::byte* start() { return reinterpret_cast<std::byte*>(slots_); }

    // The credits in the run that poll found, whose header says that there are some.
    std::uint32_t piggyback(const wire::Header& header) {
        std::uint16_t credits;
        std::memcpy(&credits, in_run(payload(), contiguous(), start(), header.piggyback_offset()),
                    sizeof credits);
        return credits;
    }

    // Fetches the header behind the run of `packets` that poll found, which may be under way already: its
    // line travels while this run is being used.
    void fetch_next(std::uint32_t packets) const {
        std::uint32_t next = cursor_.index + packets;
        __builtin_prefetch(&slots_[next < capacity_ ? next : next - capacity_]);
    }

    // A run of `packets` is done with. Its slots may be overwritten once their credits have been returned
    // (static, dynamic) or the read pointer published (none).
    void advance(std::uint32_t packets) {
        ++position_;
        cursor_.advance(capacity_);
        for (; packets > 1; --packets) {
            // Where the next round may look for a header there is payload now. It must not pass for one.
            Atom<std::uint64_t>& word = slots_[cursor_.index].header;
            auto next_lap = static_cast<std::uint16_t>(cursor_.lap + 1);
            if (wire::Header::lap_of(word.load(std::memory_order_relaxed)) == next_lap) [[unlikely]]
                word.store(0, std::memory_order_relaxed);
            ++position_;
            cursor_.advance(capacity_);
        }
    }

    // release: our last look at the slots before happens before a sender's next store into them.
    void publish() { pointers_->read.store(position_, std::memory_order_release); }

    std::uint64_t position() const { return position_; }
    std::uint32_t capacity() const { return capacity_; }
    // Slots that are reserved or filled now. Reads the senders' line: not for the hot path.
    std::uint64_t occupancy() const { return pointers_->write.load(std::memory_order_relaxed) - position_; }

 private:
    Pointers<Atom>* pointers_;
    Slot<Atom>* slots_;
    std::uint32_t capacity_;
    std::uint64_t position_ = 0;
    Cursor cursor_{0, 1};
};

}  // namespace velo::mailbox
