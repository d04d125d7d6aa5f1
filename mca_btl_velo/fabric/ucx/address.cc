#include "fabric/ucx/address.h"

#include <cstring>

#include "flow/policies.h"

namespace velo::fabric::ucx {
namespace {

constexpr std::uint32_t kMostPeers = 1U << 16;
constexpr std::uint32_t kMostSlots = 1U << 24;
constexpr std::uint32_t kMostWorkerBytes = 1U << 16;

bool sane(const AddressHeader& header) {
    const shm::Agreement& agreement = header.agreement;
    return header.magic == AddressHeader::kMagic && header.key != 0 && header.peers < kMostPeers &&
           header.spare_peers < kMostPeers && header.data_slots < kMostSlots && agreement.credit_slots >= 1 &&
           agreement.credit_slots <= 255 && header.worker_bytes > 0 &&
           header.worker_bytes <= kMostWorkerBytes &&
           memchr(header.host, 0, sizeof header.host) != nullptr &&
           memchr(agreement.flow_control, 0, sizeof agreement.flow_control) != nullptr;
}

}  // namespace

std::uint64_t mailbox_slots(const Address& address) {
    return flow::mailbox_plan(address.agreement.flow_control, address.flow).total();
}

std::vector<std::byte> pack(const Address& address) {
    AddressHeader header{};
    header.magic = AddressHeader::kMagic;
    header.name = address.name;
    header.key = address.key;
    header.agreement = address.agreement;
    header.peers = address.flow.peers;
    header.spare_peers = address.flow.spare_peers;
    header.data_slots = address.flow.data_slots;
    header.worker_bytes = static_cast<std::uint32_t>(address.worker.size());
    address.host.copy(header.host, sizeof header.host - 1);
    std::vector<std::byte> bytes(sizeof header + address.worker.size());
    std::memcpy(bytes.data(), &header, sizeof header);
    std::memcpy(bytes.data() + sizeof header, address.worker.data(), address.worker.size());
    return bytes;
}

bool parse(std::span<const std::byte> bytes, Address* address) {
    AddressHeader header;
    if (bytes.size() < sizeof header) return false;
    std::memcpy(&header, bytes.data(), sizeof header);
    if (!sane(header) || bytes.size() != sizeof header + header.worker_bytes) return false;
    address->name = header.name;
    address->key = header.key;
    address->agreement = header.agreement;
    address->flow = parameters::agreed_flow(header.agreement);
    address->flow.lazy_doorbell = false;
    address->flow.peers = header.peers;
    address->flow.spare_peers = header.spare_peers;
    address->flow.data_slots = header.data_slots;
    const std::uint64_t slots = mailbox_slots(*address);
    if (slots == 0 || slots > kMostSlots) return false;
    auto worker = bytes.subspan(sizeof header);
    address->worker.assign(worker.begin(), worker.end());
    address->host = header.host;
    return true;
}

}  // namespace velo::fabric::ucx
