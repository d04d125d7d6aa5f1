#include <sys/uio.h>

#include <cerrno>

#include "singlecopy/singlecopy.h"

namespace velo::singlecopy {
namespace {

using Transfer = ssize_t (*)(pid_t, const iovec*, unsigned long, const iovec*, unsigned long, unsigned long);

// The kernel copies at most MAX_RW_COUNT (2 GiB - 4 KiB) a call and may stop short at a page boundary.
int transfer_all(Transfer transfer, pid_t pid, std::byte* local, std::uint64_t remote, std::size_t bytes) {
    while (bytes > 0) {
        iovec here{local, bytes};
        iovec there{reinterpret_cast<void*>(remote), bytes};
        ssize_t done = transfer(pid, &here, 1, &there, 1, 0);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return errno;
        if (done == 0) return EFAULT;
        local += done;
        remote += static_cast<std::uint64_t>(done);
        bytes -= static_cast<std::size_t>(done);
    }
    return 0;
}

class Cma final : public Mechanism {
 public:
    std::string_view name() const override { return "cma"; }

    int read(const RemoteProcess& from, void* local, std::uint64_t remote, std::size_t bytes) const override {
        return transfer_all(&process_vm_readv, from.pid, static_cast<std::byte*>(local), remote, bytes);
    }

    int write(const RemoteProcess& to, const void* local, std::uint64_t remote,
              std::size_t bytes) const override {
        auto* source =
            const_cast<std::byte*>(static_cast<const std::byte*>(local));  // iovec has no const form
        return transfer_all(&process_vm_writev, to.pid, source, remote, bytes);
    }
};

}  // namespace

int Mechanism::probe(const RemoteProcess& process) const {
    std::uint64_t value = 0;
    if (int error = read(process, &value, process.probe, sizeof value); error != 0) return error;
    return value == process.cookie ? 0 : ESRCH;
}

const Mechanism& cma() {
    static const Cma mechanism;
    return mechanism;
}

}  // namespace velo::singlecopy
