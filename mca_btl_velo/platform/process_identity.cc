#include "platform/process_identity.h"

#include <sys/random.h>
#include <sys/stat.h>

#include <cerrno>
#include <system_error>

namespace velo::platform {

std::uint64_t pid_namespace() {
    struct stat status {};
    return stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

std::uint64_t random_nonce() {
    std::uint64_t nonce = 0;
    while (nonce == 0) {
        ssize_t got = getrandom(&nonce, sizeof nonce, 0);
        if (got < 0 && errno != EINTR) throw std::system_error(errno, std::generic_category(), "getrandom");
        if (got != sizeof nonce) nonce = 0;
    }
    return nonce;
}

}  // namespace velo::platform
