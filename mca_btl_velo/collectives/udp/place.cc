#include "collectives/udp/place.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

namespace velo::fabric::udp {
namespace {

std::uint64_t hash_of(const Key& key, std::string_view text) {
    return SipHash(key)({std::as_bytes(std::span(text))});
}

std::uint32_t mtu_of(const char* name) {
    ifreq request{};
    std::strncpy(request.ifr_name, name, sizeof request.ifr_name - 1);
    const int any = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (any < 0) return 0;
    const bool told = ioctl(any, SIOCGIFMTU, &request) == 0;
    close(any);
    return told && request.ifr_mtu > 0 ? static_cast<std::uint32_t>(request.ifr_mtu) : 0;
}

// "mlx5_0:1" is an adapter's port: its network interfaces are below it.
std::vector<std::string> network_names(std::string_view device) {
    const std::string adapter(device.substr(0, device.find(':')));
    std::vector<std::string> names{std::string(device)};
    std::error_code error;
    for (const auto& entry :
         std::filesystem::directory_iterator("/sys/class/infiniband/" + adapter + "/device/net", error))
        names.push_back(entry.path().filename());
    return names;
}

std::vector<std::string> wanted(const std::string& name, const char* ucx_net_devices) {
    if (!name.empty()) return {name};
    std::vector<std::string> all;
    std::string_view rest = ucx_net_devices == nullptr ? "" : ucx_net_devices;
    while (!rest.empty()) {
        const std::string_view device = rest.substr(0, rest.find(','));
        rest.remove_prefix(std::min(rest.size(), device.size() + 1));
        if (device == "all") return {};
        for (std::string& found : network_names(device)) all.push_back(std::move(found));
    }
    return all;
}

}  // namespace

Place place_of(const Key& key) {
    const auto low = static_cast<std::uint32_t>(hash_of(key, "group") & 0x3fffff);
    constexpr std::uint16_t kFirstPort = 61000, kPorts = 4000;
    return {htonl(239U << 24 | 64U << 16 | low),
            static_cast<std::uint16_t>(kFirstPort + hash_of(key, "port") % kPorts)};
}

Interface interface_named(const std::string& name, const char* ucx_net_devices) {
    ifaddrs* first = nullptr;
    if (getifaddrs(&first) != 0) return {};
    const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> all(first, freeifaddrs);
    const auto serves = [](const ifaddrs* i) {
        return i->ifa_addr != nullptr && i->ifa_addr->sa_family == AF_INET && (i->ifa_flags & IFF_UP) != 0 &&
               (i->ifa_flags & IFF_MULTICAST) != 0;
    };
    const auto of = [](const ifaddrs* i) -> Interface {
        return {reinterpret_cast<const sockaddr_in*>(i->ifa_addr)->sin_addr.s_addr, mtu_of(i->ifa_name)};
    };
    const std::vector<std::string> names = wanted(name, ucx_net_devices);
    for (const std::string& asked : names)
        for (const ifaddrs* i = first; i != nullptr; i = i->ifa_next)
            if (serves(i) && asked == i->ifa_name) return of(i);
    if (!names.empty()) return {};
    for (const ifaddrs* i = first; i != nullptr; i = i->ifa_next)
        if (serves(i) && (i->ifa_flags & IFF_LOOPBACK) == 0) return of(i);
    return {};
}

}  // namespace velo::fabric::udp
