// Memory shared between processes of one user on one machine, in a file that has no name.
//
// The owner creates the file with O_TMPFILE, so that nothing can stay behind however the processes die; a
// peer opens it through /proc/<pid>/fd/<fd>. Only where the two live in different PID or user namespaces, or
// may not look into each other, does the owner give the file a name (`publish`), for as long as that peer
// needs to attach. If it is killed in that time the name stays, until the next process of the user publishes
// there. design/shared-memory.md has the reasons.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "platform/process_identity.h"

namespace velo::platform {

// Where a shared file is; trivially copyable, travels between processes. Validated on open.
struct FileAddress {
    static constexpr std::size_t kDirectoryBytes = 128;

    std::uint64_t bytes;
    std::uint64_t nonce;              // random; part of the published name
    std::uint64_t inode;              // of the file: the check that the right one was opened
    std::uint64_t machine;            // of the owner; see machine_identity
    Namespaces namespaces;            // of the owner
    std::int32_t pid;                 // of the owner, in its namespace
    std::int32_t fd;                  // in the owner
    std::uint32_t user;               // effective uid of the owner
    char directory[kDirectoryBytes];  // NUL-terminated
};

class SharedFile {
 public:
    // Creates and maps a file of `bytes` zero bytes, readable by this user only, the first `backed` of them
    // backed by memory (a full file system is an error here and never a SIGBUS later): nobody touches the
    // others before `provide` has backed them. Throws Failure naming the directory and the size.
    static SharedFile create(const std::string& directory, std::size_t bytes, std::size_t backed);
    static SharedFile create(const std::string& directory, std::size_t bytes) {
        return create(directory, bytes, bytes);
    }
    // By its owner or a process that can open it without a name. Others may be using that memory. allocate:
    // its pages are not mapped.
    void provide(std::size_t offset, std::size_t bytes);
    void allocate(std::size_t offset, std::size_t bytes);
    // Bytes that are free there; the most there are where that is not limited or not known.
    static std::uint64_t room_in(const char* directory);
    // Maps the file of another process, or its first `most` bytes. Throws Failure, which names that process,
    // by its number if `owner` has no name for it; VELO_ERR_RESOURCE where it cannot be mapped. Waits up to
    // `patience_ms` for a file that must be published.
    static SharedFile open(const FileAddress& address, int patience_ms, std::size_t most = SIZE_MAX,
                           std::optional<std::uint64_t> owner = {});
    // So many bytes, which have memory, are mapped with their pages; else each comes with its first use.
    void fault_in(std::size_t offset, std::size_t bytes) const;
    // By its owner: what the first access to a page took when it was created, nanoseconds.
    std::uint64_t page_ns() const { return page_ns_; }

    SharedFile() = default;
    SharedFile(SharedFile&& other) noexcept { swap(other); }
    SharedFile& operator=(SharedFile&& other) noexcept {
        swap(other);
        return *this;
    }
    ~SharedFile();

    std::byte* data() const { return data_; }
    std::size_t bytes() const { return bytes_; }  // that are mapped
    std::uint64_t used_bytes() const;             // that have memory, by its owner
    const FileAddress& address() const { return address_; }

    // Gives the file a name in its directory, for peers in other namespaces, and removes names there whose
    // owners have ended. Owner only; may be called again.
    void publish();
    // Takes the name away. Attached peers keep their mapping.
    void unpublish();

 private:
    void swap(SharedFile& other) noexcept;

    FileAddress address_{};
    std::byte* data_ = nullptr;
    std::size_t bytes_ = 0;
    std::uint64_t page_ns_ = 0;
    int fd_ = -1;
    bool published_ = false;
};

// True if the owner is visible from this process.
bool reachable_by_pid(const FileAddress& address);
// True if `address` can be opened without a name, or its owner has ended. Where not, it is mostly the same
// the other way round, as with processes of different groups or sandboxes, so that the owner publishes its
// file, too.
bool openable_by_pid(const FileAddress& address);
// The owner of a file that is reachable so has closed it, or has ended.
bool closed_by_owner(const FileAddress& address);

}  // namespace velo::platform
