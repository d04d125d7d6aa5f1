#include "fabric/ucx/user_timeout.h"

#include <dirent.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>

namespace velo::fabric::ucx {
namespace {

bool contains(WorkerAddress address, const void* bytes, std::size_t count) {
    auto* first = static_cast<const std::byte*>(bytes);
    return std::search(address.begin(), address.end(), first, first + count) != address.end();
}

// UCX packs IP address and port as they are, in network order.
bool names(WorkerAddress address, const sockaddr_storage& end) {
    if (end.ss_family == AF_INET) {
        auto& in = reinterpret_cast<const sockaddr_in&>(end);
        return contains(address, &in.sin_addr, sizeof in.sin_addr) &&
               contains(address, &in.sin_port, sizeof in.sin_port);
    }
    auto& in6 = reinterpret_cast<const sockaddr_in6&>(end);
    return end.ss_family == AF_INET6 && contains(address, &in6.sin6_addr, sizeof in6.sin6_addr) &&
           contains(address, &in6.sin6_port, sizeof in6.sin6_port);
}

bool is_tcp(int fd) {
    int protocol = -1;
    socklen_t bytes = sizeof protocol;
    return getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &bytes) == 0 && protocol == IPPROTO_TCP;
}

}  // namespace

void limit_unacknowledged(unsigned timeout_ms, WorkerAddress own,
                          const std::function<bool(const std::function<bool(WorkerAddress)>&)>& any_peer) {
    DIR* directory = opendir("/proc/self/fd");
    if (directory == nullptr) return;
    while (const dirent* entry = readdir(directory)) {
        if (entry->d_name[0] == '.') continue;
        int fd = std::atoi(entry->d_name);
        sockaddr_storage here{}, there{};
        socklen_t here_bytes = sizeof here, there_bytes = sizeof there;
        if (!is_tcp(fd) || getsockname(fd, reinterpret_cast<sockaddr*>(&here), &here_bytes) != 0 ||
            getpeername(fd, reinterpret_cast<sockaddr*>(&there), &there_bytes) != 0)
            continue;
        if (names(own, here) || any_peer([&](WorkerAddress peer) { return names(peer, there); }))
            setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof timeout_ms);
    }
    closedir(directory);
}

}  // namespace velo::fabric::ucx
