#include "wire/packet.h"

namespace velo::wire {
namespace {

std::string kind_name(PacketKind kind) {
    switch (kind) {
        case PacketKind::kData:
            return "DATA";
        case PacketKind::kCredit:
            return "CREDIT";
        case PacketKind::kRequest:
            return "REQ";
        case PacketKind::kResponse:
            return "RESP";
        case PacketKind::kHello:
            return "HELLO";
        case PacketKind::kBye:
            return "BYE";
        case PacketKind::kRelease:
            return "RELEASE";
        case PacketKind::kLeave:
            return "LEAVE";
        case PacketKind::kBackloggedData:
            return "DATA backlogged";
    }
    return "kind " + std::to_string(static_cast<unsigned>(kind));
}

}  // namespace

std::string to_string(const Header& header) {
    std::string text = kind_name(header.kind) + " src " + std::to_string(header.source) + " tag " +
                       std::to_string(header.tag) + " len " + std::to_string(header.length);
    if (header.flags & kFirst) text += " first";
    if (header.flags & kLast) text += " last";
    if (header.flags & kPiggyback) text += " piggyback";
    if (header.flags & kInternal) text += " internal";
    return text + " lap " + std::to_string(header.lap);
}

}  // namespace velo::wire
