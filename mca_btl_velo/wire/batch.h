// A batch: messages that lie one after the other in one chunk of their sender's outbox, behind a header each.
// Its sender appends while its receiver reads, so a batch takes one credit, whatever it carries. A header of
// kNothing says that nothing has been appended yet, kEnd that nothing more will be.
//
// Invariants:
// - The sender stores kNothing where the next header will be before it publishes a message. So what lay in
//   the chunk before never passes for a header.
// - The receiver reads each header once, and checks it against the chunk before it uses it.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "platform/cache.h"
#include "wire/packet.h"

namespace velo::wire {

// The header of a message in a batch, or what stands in its place.
struct Enclosed {
    enum Kind : std::uint16_t { kNothing = 0, kMessage = 1, kEnd = 2 };

    std::uint32_t bytes = 0;
    std::uint8_t tag = 0;
    std::uint8_t flags = 0;  // kInternal or 0
    std::uint16_t kind = kNothing;
};
static_assert(sizeof(Enclosed) == sizeof(std::uint64_t));

// Bytes of a batch that a message of `bytes` takes: whole lines, since the receiver's look at the next header
// takes that line away from the sender. Behind a longer message nothing lies for some lines, which the
// receiver's processor fetches ahead while it reads the message.
constexpr std::size_t kFetchedAheadFrom = 256;
constexpr std::size_t enclosed_bytes(std::size_t bytes) {
    constexpr std::size_t kFetchedAhead = 512;
    const std::size_t lines = (sizeof(Enclosed) + bytes + kPacketBytes - 1) / kPacketBytes;
    return lines * kPacketBytes + (bytes < kFetchedAheadFrom ? 0 : kFetchedAhead);
}
// Bytes of the chunk of a batch that holds one message of `bytes`, wherever the chunk begins.
constexpr std::size_t batch_bytes(std::size_t bytes) {
    return kPacketBytes + enclosed_bytes(bytes) + sizeof(Enclosed);
}

// Where the next header is in a chunk of `room` bytes at `data`. The first is at the begin of a line.
class BatchPlace {
 public:
    BatchPlace() = default;  // none is open
    BatchPlace(std::byte* data, std::size_t room)
        : at_(data + -reinterpret_cast<std::uintptr_t>(data) % kPacketBytes), end_(data + room) {}

    bool is_open() const { return at_ != nullptr; }
    // Nobody looks at it any more.
    void drop() { at_ = nullptr; }
    // The chunk holds a message of so many bytes here, and the header behind it.
    bool holds(std::size_t bytes) const {
        return enclosed_bytes(bytes) + sizeof(Enclosed) <= static_cast<std::size_t>(end_ - at_);
    }
    // Of the message here.
    std::byte* data() const { return at_ + sizeof(Enclosed); }

 protected:
    std::atomic_ref<std::uint64_t> header(std::size_t offset = 0) const {
        return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(at_ + offset));
    }
    void advance(std::size_t bytes) { at_ += enclosed_bytes(bytes); }
    void prefetch_for_write(std::size_t offset) const {
        if (offset < static_cast<std::size_t>(end_ - at_)) platform::prefetch_for_write(at_ + offset);
    }

 private:
    std::byte *at_ = nullptr, *end_ = nullptr;
};

// The sender's side.
class BatchWriter : public BatchPlace {
 public:
    BatchWriter() = default;
    // room >= batch_bytes(0). Before the receiver knows of the chunk.
    BatchWriter(std::byte* data, std::size_t room) : BatchPlace(data, room) {
        header().store(0, std::memory_order_relaxed);
    }
    // A message that it holds, whose bytes are at data().
    void append(std::size_t bytes, std::uint8_t tag, std::uint8_t flags) {
        header(enclosed_bytes(bytes)).store(0, std::memory_order_relaxed);
        publish({static_cast<std::uint32_t>(bytes), tag, flags, Enclosed::kMessage});
        advance(bytes);
        fetch_ahead(bytes);
    }
    void close() {
        publish({0, 0, 0, Enclosed::kEnd});
        drop();
    }

 private:
    // The lines of a message some messages from here, if it is as long as this one, so that those of several
    // are on their way from the reader's cache at once. The receiver looks at the next header only. Longer
    // messages pay for their lines' journey with their copy.
    void fetch_ahead(std::size_t bytes) const {
        constexpr std::size_t kMost = 2048;
        if (bytes > kMost) return;
        const std::size_t there = (bytes < kFetchedAheadFrom ? 4 : 2) * enclosed_bytes(bytes);
        for (std::size_t line = 0; line < sizeof(Enclosed) + bytes; line += kPacketBytes)
            prefetch_for_write(there + line);
    }
    // release: the message comes before its header.
    void publish(Enclosed what) const {
        header().store(std::bit_cast<std::uint64_t>(what), std::memory_order_release);
    }
};

// The receiver's side.
class BatchReader : public BatchPlace {
 public:
    using BatchPlace::BatchPlace;

    // acquire: pairs with publish.
    Enclosed next() const { return std::bit_cast<Enclosed>(header().load(std::memory_order_acquire)); }
    // A correct sender may have stored it.
    bool is_sound(const Enclosed& what) const {
        return what.kind == Enclosed::kEnd || (what.kind == Enclosed::kMessage && holds(what.bytes));
    }
    // Past a sound message.
    void pass(const Enclosed& message) { advance(message.bytes); }
};

}  // namespace velo::wire
