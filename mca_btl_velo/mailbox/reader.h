// The receiver's view of its own mailbox: look at the oldest run, use it in place, free its slots.
#pragma once

#include "mailbox/layout.h"
#include "platform/cache.h"

namespace velo::mailbox {

template <template <class> class Atom = std::atomic>
class Reader {
 public:
    Reader(Pointers<Atom>* pointers, Slot<Atom>* slots, std::uint32_t capacity)
        : pointers_(pointers), first_(slots), end_(slots + capacity), at_(slots), capacity_(capacity) {}

    // What lies in the oldest slot. Slots are stored out of order by different senders; the receiver takes
    // them in the order of reservation. acquire pairs with Writer::publish.
    std::uint64_t word() const { return at_->header.load(std::memory_order_acquire); }
    // It is the header of a run that has arrived: any, a plain one, or a REF that is plain but for credits.
    bool is_header(std::uint64_t word) const {
        return wire::Header::lap_of(word) == wire::Header::lap_of(plain_) && word != 0;
    }
    bool is_plain(std::uint64_t word) const { return (word & wire::Header::kPlainMask) == plain_; }
    bool is_plain_reference(std::uint64_t word) const {
        return (word & wire::Header::kPlainReferenceMask) == (plain_ | wire::Header::kPlainReference);
    }
    // The header of the oldest run, 0 if it has not arrived.
    std::uint64_t poll() const {
        const std::uint64_t found = word();
        return is_header(found) ? found : 0;
    }

    // Payload of the run that was found; valid until a slot's credit is returned or publish is called. It
    // goes on at `start` after `contiguous` bytes.
    std::byte* payload() { return at_->payload; }
    std::size_t contiguous() const { return wire::run_capacity(static_cast<std::uint32_t>(end_ - at_)); }
    std::byte* start() { return reinterpret_cast<std::byte*>(first_); }
    bool in_one_piece(std::uint32_t packets) const { return end_ - at_ >= std::ptrdiff_t{packets}; }

    // The credits in the run that was found, whose header says that there are some.
    std::uint32_t piggyback(const wire::Header& header) {
        std::uint16_t credits;
        std::memcpy(&credits, in_run(payload(), contiguous(), start(), header.piggyback_offset()),
                    sizeof credits);
        return credits;
    }

    // Fetches the lines of the run of `packets` that was found, and the header behind it, which may be under
    // way already: they travel together, while the first one is being used. Over the end of the ring it
    // fetches what nobody needs.
    void fetch(std::uint32_t packets) {
        two_slots_ = packets == 2;
        platform::prefetch(at_ + packets);
        const Slot<Atom>* const end = at_ + (packets < kMostFetched ? packets : kMostFetched);
        for (const Slot<Atom>* line = at_ + 1; line < end; ++line) platform::prefetch(line);
    }
    // Nothing has arrived. Where the last message took two slots so will the next, and its second line
    // travels while the first is waited for. Not for longer ones: lines would be taken back that the sender
    // is filling.
    void fetch_awaited() const {
        if (two_slots_) platform::prefetch(at_ + 1);
    }

    // A run of `packets`, of no more than the ring has, is done with. Its slots may be overwritten once their
    // credits have been returned (static, dynamic) or the read pointer published (none).
    [[gnu::always_inline]] void advance(std::uint32_t packets) {
        position_ += packets;
        if (end_ - at_ <= std::ptrdiff_t{packets}) [[unlikely]]
            return go_round(packets);
        forget(at_ + 1, at_ + packets);
        at_ += packets;
    }

    // release: our last look at the slots before happens before a sender's next store into them.
    void publish() { pointers_->read.store(published_ = position_, std::memory_order_release); }
    std::uint64_t unpublished() const { return position_ - published_; }

    std::uint64_t position() const { return position_; }
    std::uint32_t capacity() const { return capacity_; }
    // Slots that are reserved or filled now. Reads the senders' line: not for the hot path.
    std::uint64_t occupancy() const { return pointers_->write.load(std::memory_order_relaxed) - position_; }

 private:
    // As many as pay; the processor fetches the lines of longer runs by itself.
    static constexpr std::uint32_t kMostFetched = 8;
    static constexpr std::uint64_t kLap = std::uint64_t{1} << 48;

    // Where the next round may look for a header there is payload now. It must not pass for one.
    [[gnu::always_inline]] void forget(Slot<Atom>* from, const Slot<Atom>* end) {
        for (const std::uint64_t next = plain_ + kLap; from < end; ++from) {
            if (wire::Header::lap_of(from->header.load(std::memory_order_relaxed) ^ next) == 0) [[unlikely]]
                from->header.store(0, std::memory_order_relaxed);
        }
    }
    [[gnu::noinline]] void go_round(std::uint32_t packets) {
        forget(at_ + 1, end_);
        const auto behind = static_cast<std::ptrdiff_t>(packets) - (end_ - at_);
        plain_ += kLap;
        at_ = first_ + behind;
        forget(first_, at_);
    }

    Pointers<Atom>* pointers_;
    Slot<Atom>*first_, *end_;
    Slot<Atom>* at_;                                // the oldest
    std::uint64_t plain_ = wire::Header::plain(1);  // of this lap
    std::uint64_t position_ = 0, published_ = 0;
    std::uint32_t capacity_;
    bool two_slots_ = false;  // that the last run took
};

}  // namespace velo::mailbox
