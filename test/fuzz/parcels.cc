// Commands: a parcel of a sender, or the receiver empties its mailbox.
#include <memory>
#include <vector>

#include "fabric/ucx/intake.h"
#include "input.h"
#include "require.h"

namespace velo::fuzz {
namespace {

using fabric::ucx::Intake;
using fabric::ucx::Parcel;

constexpr std::uint32_t kSenders = 3;

// As the engine does: nothing but whole runs of known kinds from known senders is there.
void drain(mailbox::Reader<>& reader) {
    [[maybe_unused]] static volatile std::byte sink;
    while (std::uint64_t word = reader.poll()) {
        const wire::Header header = wire::Header::unpack(word);
        require(header.plausible(kSenders), "the intake has stored an impossible packet");
        require(header.packets() <= reader.capacity(),
                "the intake has stored a run that is longer than the ring");
        require((header.flags & wire::kReference) == 0 || header.packets() == 1,
                "the intake has stored a reference that is a run");
        const std::size_t head = std::min<std::size_t>(header.length, reader.contiguous());
        for (std::size_t i = 0; i < head; ++i) sink = reader.payload()[i];
        for (std::size_t i = head; i < header.length; ++i) sink = reader.start()[i - head];
        if (header.flags & wire::kPiggyback) reader.piggyback(header);
        reader.advance(header.packets());
    }
    require(reader.occupancy() == 0, "packets are in the mailbox that its reader does not find");
    reader.publish();
}

}  // namespace

void parcels(Bytes bytes) {
    Input input(bytes);
    const std::uint32_t capacity = 1 + input.take<std::uint8_t>() % 64;
    const bool limited = input.take<std::uint8_t>() & 1;
    Intake intake(capacity, kSenders, limited);
    mailbox::Reader<> reader = intake.reader();
    while (!input.empty()) {
        const auto command = input.take<std::uint8_t>();
        if (command % 4 == 3) {
            do drain(reader);
            while (!intake.settle());
            continue;
        }
        auto parcel = input.take<Parcel>();
        // Mostly in order and with the right length: what is beyond that is worth the looking.
        if (command & 8) parcel.sequence %= 8;
        const std::size_t wanted = command & 16 ? parcel.bytes % 2048 : input.take<std::uint8_t>();
        std::vector<std::byte> payload(wanted);
        const Bytes given = input.take_bytes(std::min<std::size_t>(wanted, 8));
        for (std::size_t i = 0; i < given.size(); ++i) payload[i] = std::byte{given[i]};
        if (command & 64) parcel.flags |= wire::kReference;
        if (command & 32) parcel.bytes = static_cast<std::uint32_t>(payload.size());
        if (intake.arrive(command % 4, parcel, payload) != nullptr) break;
    }
    do drain(reader);
    while (!intake.settle());
}

}  // namespace velo::fuzz
