#include "fabric/ucx/parcel.h"

namespace velo::fabric::ucx {
namespace {

constexpr std::uint8_t kFlags = wire::kFirst | wire::kLast | wire::kInternal;
constexpr std::uint32_t kMostPiggyback = 0xffff;

const char* data_fault(const Parcel& parcel, std::uint32_t capacity) {
    if ((parcel.flags & ~kFlags) != 0) return "unknown flags";
    if (parcel.run_packets == 0 || parcel.run_packets > capacity) return "runs that do not fit";
    if (parcel.value == 0) return nullptr;
    if (parcel.value > kMostPiggyback) return "too many piggybacked credits";
    if ((parcel.flags & wire::kLast) == 0) return "credits in the middle of a message";
    std::size_t full = wire::run_capacity(parcel.run_packets);
    std::size_t last = parcel.bytes - wire::runs_before_last(parcel.bytes, full) * full;
    bool room = last + wire::kPiggybackBytes <= wire::run_capacity(wire::packets_in_run(last));
    return room ? nullptr : "credits without room for them";
}

}  // namespace

const char* fault_of(const Parcel& parcel, std::size_t payload_bytes, std::uint32_t capacity) {
    if (parcel.bytes != payload_bytes) return "another length than announced";
    switch (static_cast<wire::PacketKind>(parcel.kind)) {
        case wire::PacketKind::kData:
        case wire::PacketKind::kBackloggedData:
            return data_fault(parcel, capacity);
        case wire::PacketKind::kCredit:
        case wire::PacketKind::kRequest:
        case wire::PacketKind::kResponse:
        case wire::PacketKind::kHello:
        case wire::PacketKind::kBye:
        case wire::PacketKind::kRelease:
        case wire::PacketKind::kLeave:
            return parcel.bytes == 0 ? nullptr : "a control packet with data";
        default:
            return "an unknown kind";
    }
}

}  // namespace velo::fabric::ucx
