#include "messaging/shares.h"

#include <limits>

#include "platform/failure.h"

namespace velo::messaging {
namespace {

constexpr std::size_t kMostCells = std::numeric_limits<std::int32_t>::max();
// So many always, whatever the size of the job: one is enough for progress.
constexpr std::size_t kLeastHeaders = 4;

std::uint32_t part_of(std::size_t bytes, std::uint32_t sharers, std::size_t least) {
    return static_cast<std::uint32_t>(
        std::clamp(bytes / kCellBytes / std::max(sharers, 1U), least, kMostCells));
}

}  // namespace

Shares::Shares(const velo_messenger_config& config)
    : address_{Address::kMagic, part_of(config.unexpected_pool, config.sharers, 0),
               part_of(config.header_pool, config.sharers, kLeastHeaders)},
      due_from_(std::max(address_.share / 2, 1U)) {
    own_.there = address_.share;
}

void Shares::connect(const Peer& peer, const Address& address) {
    if (address.share > kMostCells)
        throw Failure(VELO_ERR_PROTOCOL, "the address of a peer's messages is damaged");
    Share& share = of(peer);
    if (share.connected) return;
    share.connected = share.reached = true;
    share.is_gone = false;
    share.there += address.share;
    share.headers = address.headers;
}

}  // namespace velo::messaging
