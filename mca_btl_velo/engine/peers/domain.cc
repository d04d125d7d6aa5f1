#include "engine/peers/domain.h"

#include "engine/peers/peer.h"

namespace velo::engine {

bool Domain::send_queued(flow::Account& to) {
    return host.send_queued(static_cast<Peer&>(to));
}

flow::Account& Domain::account(flow::PeerIndex peer) {
    return host.peer_at(first_peer + peer);
}

void Domain::carry(flow::Account& to, wire::PacketKind kind, std::uint32_t value) {
    host.carry_control(static_cast<Peer&>(to), kind, value);
}

void Domain::entered(flow::Account& from, wire::PacketKind kind, std::uint32_t value) {
    host.control_entered(static_cast<Peer&>(from), kind, value);
}

}  // namespace velo::engine
