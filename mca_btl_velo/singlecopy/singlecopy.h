// Single copy between two processes of one node: the kernel moves bytes from one address space to the other.
// A mechanism only copies; which one a peer pair uses, and what happens where none works, rma/ decides.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace velo::singlecopy {

// What is needed to reach another process's memory, and to make sure that it is that process.
struct RemoteProcess {
    pid_t pid;
    std::uint64_t probe;   // address of an 8-byte value in its private memory ...
    std::uint64_t cookie;  // ... which is this random number
};

class Mechanism {
 public:
    virtual ~Mechanism() = default;
    virtual std::string_view name() const = 0;
    // Any number of bytes. 0, or the errno of the kernel's refusal; part of the bytes may then have been
    // copied.
    virtual int read(const RemoteProcess& from, void* local, std::uint64_t remote,
                     std::size_t bytes) const = 0;
    virtual int write(const RemoteProcess& to, const void* local, std::uint64_t remote,
                      std::size_t bytes) const = 0;

    // Tries it for real: 0 if this peer's memory can be read and is the right one. No
    // parsing of Yama, capabilities or namespaces: only the kernel knows.
    int probe(const RemoteProcess& process) const;
};

// Cross memory attach: process_vm_readv and process_vm_writev.
const Mechanism& cma();

}  // namespace velo::singlecopy
