// Single copy between two processes of one node: one of them moves bytes from one address space to the other.
// A mechanism only copies; which one a peer pair uses mechanisms.h decides, and what happens where none works
// rma/.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

namespace velo::singlecopy {

// What is needed to reach another process's memory, and to make sure that it is that process.
struct RemoteProcess {
    pid_t pid;
    std::uint64_t probe;         // address of an 8-byte value in its private memory ...
    std::uint64_t cookie;        // ... which is this random number
    std::int64_t xpmem_segment;  // its address space, announced by itself; 0: it has announced none
};

// Access to the memory of one process. Several threads may use it at once.
class RemoteMemory {
 public:
    virtual ~RemoteMemory() = default;
    // Any number of bytes. 0, or the errno of the refusal; part of the bytes may then have been copied.
    virtual int read(void* local, std::uint64_t remote, std::size_t bytes) = 0;
    virtual int write(const void* local, std::uint64_t remote, std::size_t bytes) = 0;
};

class Mechanism {
 public:
    virtual ~Mechanism() = default;
    virtual std::string_view name() const = 0;
    // What may stand in the way of it, for an error message.
    virtual std::string_view obstacles() const = 0;

    // Access to the memory of a live process of this machine, tried for real: its probe was read and is the
    // right one. nullptr with *error set if not. No parsing of Yama, capabilities or namespaces: only the
    // kernel knows.
    std::unique_ptr<RemoteMemory> reach(const RemoteProcess& process, int* error) const;

 private:
    virtual std::unique_ptr<RemoteMemory> open(const RemoteProcess& process, int* error) const = 0;
};

// Cross memory attach: process_vm_readv and process_vm_writev.
std::unique_ptr<Mechanism> make_cma();
// Whether a seccomp filter kills who calls these, as it may do instead of refusing them.
bool cma_is_deadly();

}  // namespace velo::singlecopy
