// What a process tells others so that they can reach it through UCX.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fabric/shm/segment.h"
#include "flow/policy_config.h"

namespace velo::fabric::ucx {

// Followed by the address of the UCX worker. Little-endian, as all that Velo sends. Other builds know where
// the first two are.
struct AddressHeader {
    static constexpr std::uint64_t kMagic = 0x323078634f4c4556ULL;  // "VELOcx02": changes with the layout

    std::uint64_t magic;
    std::uint64_t name;
    std::uint64_t key;  // whoever sends to this process must know it
    shm::Agreement agreement;
    std::uint32_t peers, spare_peers, data_slots;
    std::uint32_t worker_bytes;
    char host[64];  // for messages
};

struct Address {
    std::uint64_t name = 0;
    std::uint64_t key = 0;
    shm::Agreement agreement{};
    flow::PolicyConfig flow;
    std::vector<std::byte> worker;
    std::string host;
};

std::uint64_t mailbox_slots(const Address& address);
std::vector<std::byte> pack(const Address& address);
// False if the bytes are no address of this version of Velo; nothing in it is out of range otherwise.
bool parse(std::span<const std::byte> bytes, Address* address);

}  // namespace velo::fabric::ucx
