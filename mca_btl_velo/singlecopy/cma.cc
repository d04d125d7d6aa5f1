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

class CmaMemory final : public RemoteMemory {
 public:
    explicit CmaMemory(pid_t pid) : pid_(pid) {}

    int read(void* local, std::uint64_t remote, std::size_t bytes) override {
        return transfer_all(&process_vm_readv, pid_, static_cast<std::byte*>(local), remote, bytes);
    }

    int write(const void* local, std::uint64_t remote, std::size_t bytes) override {
        auto* source =
            const_cast<std::byte*>(static_cast<const std::byte*>(local));  // iovec has no const form
        return transfer_all(&process_vm_writev, pid_, source, remote, bytes);
    }

 private:
    pid_t pid_;
};

class Cma final : public Mechanism {
 public:
    std::string_view name() const override { return "cma"; }
    std::string_view obstacles() const override {
        return "process_vm_readv: ptrace rights, another container or a seccomp filter";
    }

 private:
    std::unique_ptr<RemoteMemory> open(const RemoteProcess& process, int*) const override {
        return std::make_unique<CmaMemory>(process.pid);
    }
};

}  // namespace

std::unique_ptr<Mechanism> make_cma() {
    return std::make_unique<Cma>();
}

}  // namespace velo::singlecopy
