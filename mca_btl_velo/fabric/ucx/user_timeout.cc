#include "fabric/ucx/user_timeout.h"

#include <dirent.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cstdlib>

namespace velo::fabric::ucx {
namespace {

int option(int fd, int level, int name) {
    int value = -1;
    socklen_t bytes = sizeof value;
    return getsockopt(fd, level, name, &value, &bytes) == 0 ? value : -1;
}

bool marked(int fd) {
    int domain = option(fd, SOL_SOCKET, SO_DOMAIN);
    return (domain == AF_INET || domain == AF_INET6) && option(fd, SOL_SOCKET, SO_TYPE) == SOCK_STREAM &&
           option(fd, SOL_SOCKET, SO_KEEPALIVE) == 1 &&
           option(fd, IPPROTO_TCP, TCP_KEEPIDLE) == kKeepIdleSeconds &&
           option(fd, IPPROTO_TCP, TCP_KEEPINTVL) == kKeepIntervalSeconds;
}

}  // namespace

int limit_unacknowledged(unsigned timeout_ms) {
    DIR* directory = opendir("/proc/self/fd");
    if (directory == nullptr) return 0;
    int count = 0;
    while (const dirent* entry = readdir(directory)) {
        int fd = std::atoi(entry->d_name);
        if (entry->d_name[0] == '.' || !marked(fd)) continue;
        if (setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof timeout_ms) == 0) ++count;
    }
    closedir(directory);
    return count;
}

}  // namespace velo::fabric::ucx
