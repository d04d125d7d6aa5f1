#include "fabric/ucx/ucx_link.h"

#include <algorithm>

namespace velo::fabric::ucx {
namespace {

// Data of one active message at most; see kSegmentBytes.
constexpr std::size_t kParcelBytes = std::size_t{147} * 1024;
// Without credits, what UCX may hold for one peer before the fabric counts as full.
constexpr std::size_t kOutstandingBytes = std::size_t{256} * 1024;

}  // namespace

bool UcxLink::full() const {
    return remote_.outstanding >= kOutstandingBytes;
}

std::uint32_t UcxLink::accepted(std::uint32_t packets) const {
    if (full()) return 0;
    const std::uint64_t limit = network_.refusal_limit();
    if (limit == UINT32_MAX) return std::min(packets, capacity_);
    const std::uint64_t waiting = remote_.sent_packets - remote_.known_retrieved;
    return static_cast<std::uint32_t>(
        std::min<std::uint64_t>(packets, waiting < limit ? limit - waiting : 0));
}

Carried UcxLink::carry(const Burst& burst) {
    std::uint32_t packets = burst.packets;
    if (!burst.granted) {
        packets = accepted(packets);
        if (packets == 0 || (burst.whole && packets < burst.packets)) return {0, 0};
    }
    const std::size_t rest = burst.message.total() - burst.offset;
    const std::uint32_t run = std::min(burst.framing.run_packets(rest), packets);
    Carried carried{0, 0};
    if (rest <= wire::run_capacity(run))
        carry_parcel(burst, run, rest, &carried);
    else
        carry_parcels(burst, run, packets, rest, &carried);
    remote_.sent_packets += carried.packets;
    return carried;
}

// Of more than one run, in as few messages of the network as may be.
void UcxLink::carry_parcels(const Burst& burst, std::uint32_t run, std::uint32_t packets, std::size_t rest,
                            Carried* carried) {
    const std::uint32_t parcel_packets = std::max<std::uint32_t>(
        run, static_cast<std::uint32_t>(kParcelBytes / wire::run_capacity(run)) * run);
    while (carried->packets < packets && carried->bytes < rest) {
        const std::uint32_t most = std::min(parcel_packets, packets - carried->packets);
        const std::size_t room =
            most / run * wire::run_capacity(run) + (most % run == 0 ? 0 : wire::run_capacity(most % run));
        carry_parcel(burst, run, std::min(room, rest - carried->bytes), carried);
    }
}

// So many bytes behind those that are carried already.
void UcxLink::carry_parcel(const Burst& burst, std::uint32_t run, std::size_t bytes, Carried* carried) {
    const std::size_t offset = burst.offset + carried->bytes;
    Parcel parcel{};
    parcel.kind = static_cast<std::uint8_t>(carried->packets == 0 ? burst.kind : wire::PacketKind::kData);
    parcel.flags = burst.flags;
    if (offset == 0) parcel.flags |= wire::kFirst;
    if (offset + bytes == burst.message.total()) {
        parcel.flags |= wire::kLast;
        parcel.value = burst.piggyback;
    }
    parcel.tag = burst.tag;
    parcel.run_packets = static_cast<std::uint8_t>(run);
    parcel.bytes = static_cast<std::uint32_t>(bytes);
    network_.send(remote_, parcel, burst.message, offset, burst.stays);
    carried->bytes += bytes;
    carried->packets += static_cast<std::uint32_t>(slots_of(parcel));
}

bool UcxLink::carry_packet(const MessageView& message, std::uint8_t tag, std::uint32_t piggyback,
                           bool granted, bool) {
    if (!granted && accepted(1) == 0) return false;
    Parcel parcel{};
    parcel.kind = static_cast<std::uint8_t>(wire::PacketKind::kData);
    parcel.flags = wire::kFirst | wire::kLast;
    parcel.value = piggyback;
    parcel.tag = tag;
    parcel.run_packets = 1;
    parcel.bytes = static_cast<std::uint32_t>(message.total());
    ++remote_.sent_packets;
    network_.send(remote_, parcel, message, 0, false);
    return true;
}

void UcxLink::carry_control(wire::PacketKind kind, std::uint32_t value) {
    Parcel parcel{};
    parcel.kind = static_cast<std::uint8_t>(kind);
    parcel.value = value;
    parcel.run_packets = 1;
    network_.send(remote_, parcel, MessageView{}, 0, false);
}

}  // namespace velo::fabric::ucx
