#include "flow/policy.h"

#include <utility>

namespace velo::flow {
namespace {

// No count comes near this: one below zero has wrapped around and is above it.
constexpr std::uint32_t kMostSlots = 0x7fffffff;

}  // namespace

Policy::Policy(const PolicyConfig& config, const Traits& traits, std::uint32_t data_slots,
               std::uint32_t flows)
    : limited_(traits.limited), peers_(flows), config_(config), data_slots_(data_slots), traits_(traits) {}

void Policy::due(FlowIndex from, Emitter& out) {
    out.emit(from, wire::PacketKind::kCredit, return_retrieved(from));
}

std::uint32_t Policy::attach(FlowIndex to, Emitter&) {
    return return_retrieved(to);
}

std::uint32_t Policy::return_retrieved(FlowIndex from) {
    const std::uint32_t count = std::exchange(peers_[from].retrieved, 0);
    grant(from, count);
    return count;
}

void Policy::start_again(FlowIndex from, std::uint32_t current) {
    available_ += peers_[from].current - current;
    peers_[from].credit = peers_[from].retrieved = 0;
    peers_[from].current = current;
}

bool Policy::departed(PeerIndex peer, Emitter&) {
    start_again(peer, peers_[peer].current + peers_[peer].retrieved);
    return true;
}

std::string Policy::slot_violation() const {
    std::uint64_t granted = 0;
    for (PeerIndex q = 0; q < peers_.size(); ++q) {
        const PeerFlow& peer = peers_[q];
        // A count below zero has wrapped around.
        if (peer.credit > kMostSlots || peer.retrieved > kMostSlots || peer.current > kMostSlots)
            return "I1: a count of peer " + std::to_string(q) + " is below zero: credit " +
                   std::to_string(static_cast<std::int32_t>(peer.credit)) + ", retrieved " +
                   std::to_string(static_cast<std::int32_t>(peer.retrieved)) + ", current " +
                   std::to_string(static_cast<std::int32_t>(peer.current));
        granted += peer.current;
    }
    if (available_ > kMostSlots)
        return "I1: available is " + std::to_string(static_cast<std::int32_t>(available_));
    if (available_ + granted != data_slots_)
        return "I2: available " + std::to_string(available_) + " + granted " + std::to_string(granted) +
               " != " + std::to_string(data_slots_) + " data slots";
    return {};
}

}  // namespace velo::flow
