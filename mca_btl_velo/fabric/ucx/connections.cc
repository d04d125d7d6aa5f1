#include "fabric/ucx/connections.h"

#include <dirent.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

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

template <typename Value>
bool ask(int fd, int level, int option, Value* value) {
    socklen_t bytes = sizeof *value;
    return getsockopt(fd, level, option, value, &bytes) == 0;
}

bool is_tcp(int fd) {
    int protocol;
    return ask(fd, SOL_SOCKET, SO_PROTOCOL, &protocol) && protocol == IPPROTO_TCP;
}

}  // namespace

void Connections::find(WorkerAddress own,
                       const std::function<bool(const std::function<bool(WorkerAddress)>&)>& any_peer) {
    DIR* directory = opendir("/proc/self/fd");
    if (directory == nullptr) return;
    while (const dirent* entry = readdir(directory)) {
        if (entry->d_name[0] == '.') continue;
        int fd = std::atoi(entry->d_name);
        sockaddr_storage here{}, there{};
        socklen_t here_bytes = sizeof here, there_bytes = sizeof there;
        std::uint64_t cookie;
        if (!is_tcp(fd) || !ask(fd, SOL_SOCKET, SO_COOKIE, &cookie) ||
            std::any_of(all_.begin(), all_.end(), [&](const Connection& c) { return c.cookie == cookie; }) ||
            getsockname(fd, reinterpret_cast<sockaddr*>(&here), &here_bytes) != 0 ||
            getpeername(fd, reinterpret_cast<sockaddr*>(&there), &there_bytes) != 0)
            continue;
        if (names(own, here) || any_peer([&](WorkerAddress peer) { return names(peer, there); }))
            all_.push_back({fd, cookie, {}});
    }
    closedir(directory);
}

bool Connections::end_silent(Silence::Time now) {
    const Silence::Time gap = now - std::exchange(last_look_, now);
    bool any = false;
    std::erase_if(all_, [&](Connection& connection) {
        std::uint64_t cookie;
        tcp_info info{};
        if (!ask(connection.fd, SOL_SOCKET, SO_COOKIE, &cookie) || cookie != connection.cookie ||
            !ask(connection.fd, IPPROTO_TCP, TCP_INFO, &info))
            return true;
        connection.silence.look(info.tcpi_unacked > 0 || info.tcpi_probes > 0,
                                Silence::Time(info.tcpi_last_ack_recv), gap);
        const bool silent = connection.silence.lasted() > patience_;
        if (silent) shutdown(connection.fd, SHUT_RDWR);
        any |= silent;
        return silent;
    });
    return any;
}

}  // namespace velo::fabric::ucx
