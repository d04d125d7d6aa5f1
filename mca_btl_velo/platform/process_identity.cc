#include "platform/process_identity.h"

#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <functional>
#include <string>
#include <string_view>
#include <system_error>

#include "platform/small_file.h"

namespace velo::platform {

namespace {

std::uint64_t inode_of(const char* path) {
    struct stat status {};
    return stat(path, &status) == 0 ? status.st_ino : 0;
}

std::atomic<std::uint32_t> own_job{0};

}  // namespace

Namespaces own_namespaces() {
    static const Namespaces own = [] {
        constexpr int kDumpable = 1;
        if (prctl(PR_GET_DUMPABLE) != kDumpable) return Namespaces{0, 0};
        return Namespaces{inode_of("/proc/self/ns/pid"), inode_of("/proc/self/ns/user")};
    }();
    return own;
}

bool see_each_other(const Namespaces& a, const Namespaces& b) {
    return a.pid != 0 && a.pid == b.pid && a.user != 0 && a.user == b.user;
}

std::uint64_t machine_identity() {
    static const std::uint64_t identity = [] {
        const SmallFile boot("/proc/sys/kernel/random/boot_id");
        return boot.text().empty() ? 0 : std::hash<std::string_view>()(boot.text());
    }();
    return identity;
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

std::string host_name() {
    char name[256] = "";
    (void)gethostname(name, sizeof name - 1);
    return name;
}

void know_own_job(std::uint64_t process_name) noexcept {
    own_job.store(static_cast<std::uint32_t>(process_name >> 32), std::memory_order_relaxed);
}

std::array<char, 40> process_array(std::uint64_t process_name) noexcept {
    std::array<char, 40> text;
    const auto job = static_cast<std::uint32_t>(process_name >> 32), rank = static_cast<std::uint32_t>(process_name);
    if (job == own_job.load(std::memory_order_relaxed))
        (void)std::snprintf(text.data(), text.size(), "rank %" PRIu32, rank);
    else
        (void)std::snprintf(text.data(), text.size(), "rank %" PRIu32 " of job %" PRIu32, rank, job);
    return text;
}

std::string process_text(std::uint64_t process_name) {
    return process_array(process_name).data();
}

std::string process_here(std::uint64_t process_name) {
    return process_text(process_name) + " on " + host_name();
}

std::array<char, 128> here_array(std::uint64_t process_name) noexcept {
    std::array<char, 128> text;
    char host[65] = "";
    (void)gethostname(host, sizeof host - 1);
    (void)std::snprintf(text.data(), text.size(), "%s on %s", process_array(process_name).data(), host);
    return text;
}

std::array<char, 240> death_array(std::uint64_t process_name) noexcept {
    std::array<char, 240> text;
    (void)std::snprintf(
        text.data(), text.size(),
        "%s has ended without MPI_Finalize, as if killed: operations with it fail or do not return",
        here_array(process_name).data());
    return text;
}

}  // namespace velo::platform
