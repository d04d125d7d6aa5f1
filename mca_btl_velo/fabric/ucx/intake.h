// The mailbox for senders on other nodes, and what stores their parcels into it: in the order in which each
// was sent, whatever the network does, and only as far as there is room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fabric/ucx/parcel.h"
#include "mailbox/reader.h"
#include "mailbox/writer.h"

namespace velo::fabric::ucx {

class Intake {
 public:
    // `limited`: the senders have credits, and none may send more than there is room for. `first`: the
    // sequence number of each sender's first parcel.
    Intake(std::uint32_t capacity, std::uint32_t senders, bool limited, std::uint32_t first = 0);

    mailbox::Reader<> reader() { return {&ring_->pointers, slots_.get(), capacity_}; }
    std::uint32_t capacity() const { return capacity_; }

    // A parcel of `sender` whose key was right. Returns what is wrong with it, nullptr if nothing: a
    // protocol error of that sender.
    const char* arrive(std::uint32_t sender, const Parcel& parcel, std::span<const std::byte> payload);
    // The slots that the parcel would take, if it needs not be stored: it is the next of its sender, and all
    // before it has been retrieved. The caller takes it then. 0: it has to arrive.
    std::uint32_t pass(std::uint32_t sender, const Parcel& parcel);
    // Stores what had to wait for room. True if nothing waits any more: without credits, nothing may be taken
    // from the network before.
    bool settle();
    // Parcels of that sender that have come in order.
    std::uint32_t come(std::uint32_t sender) const { return senders_[sender].expected; }
    // Whether so many parcels of that sender have come, and nothing of them waits for room.
    bool has_stored(std::uint32_t sender, std::uint32_t parcels) const;

 private:
    struct Held {
        std::uint32_t sender;
        Parcel parcel;
        std::vector<std::byte> payload;
        std::size_t stored;  // bytes
    };
    struct Sender {
        std::uint32_t expected;
        std::map<std::uint32_t, Held> early;  // by sequence
    };

    const char* take(std::uint32_t sender, const Parcel& parcel, std::span<const std::byte> payload);
    bool store(std::uint32_t sender, const Parcel& parcel, std::span<const std::byte> payload,
               std::size_t* stored);
    bool store_run(std::uint32_t sender, const Parcel& parcel, std::span<const std::byte> payload,
                   std::size_t offset, std::size_t bytes);
    bool store_control(std::uint32_t sender, const Parcel& parcel);

    struct Ring {
        mailbox::Pointers<> pointers{};
    };
    std::uint32_t capacity_;
    bool limited_;
    std::unique_ptr<Ring> ring_;
    std::unique_ptr<mailbox::Slot<>[]> slots_;
    mailbox::Writer<> writer_;
    std::vector<Sender> senders_;
    std::deque<Held> waiting_;  // for room, oldest first
};

}  // namespace velo::fabric::ucx
