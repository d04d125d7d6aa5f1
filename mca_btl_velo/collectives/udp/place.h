// Where a group of a job is on the network, and which interface leads there.
#pragma once

#include <netinet/in.h>

#include <cstdint>
#include <string>

#include "collectives/udp/siphash.h"

namespace velo::fabric::udp {

// Addresses are in the order of the network, ports in that of the machine.
struct Place {
    in_addr_t group = 0;
    std::uint16_t port = 0;
};

// Of a job: worked out from its key, which itself goes nowhere. The address is one of 239.64.0.0/10: its
// low bits are no link-local group's, which switches flood; the port is none that systems lend.
Place place_of(const Key& key);

struct Interface {
    in_addr_t address = 0;  // 0: there is none
    std::uint32_t mtu = 0;
};

// By name; without one: the first that UCX_NET_DEVICES names, or without that any. It is up, has an IPv4
// address and multicasts.
Interface interface_named(const std::string& name, const char* ucx_net_devices);

}  // namespace velo::fabric::udp
