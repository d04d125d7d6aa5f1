#include "platform/shared_file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <limits>
#include <mutex>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "platform/failure.h"
#include "platform/locality.h"
#include "platform/monotonic.h"
#include "platform/process_identity.h"
#include "platform/small_file.h"

namespace velo::platform {
namespace {

// Of all names of a user.
std::string name_prefix(const FileAddress& address) {
    return "velo-" + std::to_string(address.user) + "-";
}

std::string published_path(const FileAddress& address) {
    char nonce[17];
    std::snprintf(nonce, sizeof nonce, "%016" PRIx64, address.nonce);
    return address.directory + ("/" + name_prefix(address)) + nonce;
}

// Of what is looked at again and again, so that it takes no memory from the heap.
using ProcPath = std::array<char, 40>;

ProcPath owner_path(const FileAddress& address) {
    ProcPath path;
    std::snprintf(path.data(), path.size(), "/proc/%" PRId32 "/fd/%" PRId32, address.pid, address.fd);
    return path;
}

// What peers' files are opened with, which may be long after MPI_Init: /proc, as the program may have another
// root by then, and a descriptor to give up for a moment, as it may have taken all others. Either may be the
// program's by then, who closes what it has not opened.
class Reserve {
 public:
    static Reserve& of_process() {
        static Reserve only;
        return only;
    }
    ~Reserve() {
        for (const int fd : {proc_, spare_})
            if (is_own(fd)) ::close(fd);
    }

    // A file of /proc, for reading and writing.
    int open(const ProcPath& path) {
        std::lock_guard lock(mutex_);
        int fd = try_open(path);
        if (fd >= 0 || (errno != EMFILE && errno != ENFILE) || !is_own(spare_)) return fd;
        ::close(std::exchange(spare_, -1));
        return try_open(path);
    }
    void close(int fd) {
        std::lock_guard lock(mutex_);
        ::close(fd);
        if (spare_ < 0 && is_own(proc_)) spare_ = ::fcntl(proc_, F_DUPFD_CLOEXEC, 0);
    }

 private:
    static constexpr const char* kProc = "/proc/";

    Reserve() : proc_(::open(kProc, O_PATH | O_DIRECTORY | O_CLOEXEC)) {
        if (proc_ < 0 || ::fstat(proc_, &identity_) != 0) return;
        spare_ = ::fcntl(proc_, F_DUPFD_CLOEXEC, 0);
    }
    bool is_own(int fd) const {
        struct stat status {};
        return fd >= 0 && ::fstat(fd, &status) == 0 && status.st_dev == identity_.st_dev &&
               status.st_ino == identity_.st_ino;
    }
    int try_open(const ProcPath& path) const {
        constexpr int kFlags = O_RDWR | O_CLOEXEC;
        if (!is_own(proc_)) return ::open(path.data(), kFlags);
        return ::openat(proc_, path.data() + std::strlen(kProc), kFlags);
    }

    std::mutex mutex_;
    int proc_, spare_ = -1;
    struct stat identity_ {};
};

[[noreturn]] void fail_create(const std::string& directory, std::size_t bytes, int error) {
    std::string what = "cannot create a shared memory segment of " + std::to_string(bytes) + " bytes in \"" +
                       directory + "\": " + std::strerror(error) + ". ";
    if (error == ENOSPC || error == EDQUOT || error == ENOMEM) {
        what += "Each process on this node needs that much there: enlarge it (mount -o remount,size=... " +
                directory +
                "), lower btl_velo_outbox or btl_velo_slots_per_peer, or set btl_velo_backing_directory to a "
                "larger local file "
                "system.";
    } else if (error == EFBIG) {
        what += "Raise ulimit -f, or lower btl_velo_outbox or btl_velo_slots_per_peer.";
    } else {
        what += "Set btl_velo_backing_directory to a writable directory on a local file system.";
    }
    throw Failure(VELO_ERR_RESOURCE, what);
}

// A process that shares its memory with this one is on the same host.
std::string text_of(const FileAddress& address, std::optional<std::uint64_t> owner) {
    return owner ? process_here(*owner) : "process " + std::to_string(address.pid) + " on " + host_name();
}

[[noreturn]] void fail_open(const FileAddress& address, std::optional<std::uint64_t> owner,
                            const std::string& path, int error) {
    std::string what =
        "cannot open the mailbox of " + text_of(address, owner) + " (" + path + "): " + std::strerror(error);
    if (!reachable_by_pid(address)) {
        what += ". Containers of one job must share " + std::string(address.directory) + ".";
    } else if (!openable_by_pid(address)) {
        what +=
            ". The kernel lets the other process look into this one but not the reverse, as if it had more "
            "capabilities or had become not dumpable (PR_SET_DUMPABLE) after MPI_Init.";
    } else if (closed_by_owner(address)) {
        what += ". It has ended.";
    }
    throw Failure(VELO_ERR_UNREACHABLE, what);
}

// A file without a name. Where the file system has no O_TMPFILE, a name that exists for a moment only.
int open_nameless(const std::string& directory, const FileAddress& address) {
    int fd = ::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR)) return fd;
    std::string path = published_path(address);
    fd = ::open(path.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0) ::unlink(path.c_str());
    return fd;
}

constexpr std::size_t kPageBytes = 4096;

// Returns an errno. Older kernels give back all of a piece when a signal comes (EINTR): under a timer, such
// as a profiler's, the pieces become smaller until one is there before the next signal.
int allocate_in(int fd, std::size_t offset, std::size_t bytes) {
    std::size_t most = bytes;
    for (std::size_t at = 0; at < bytes;) {
        const std::size_t piece = std::min(most, bytes - at);
        const int error = ::posix_fallocate(fd, static_cast<off_t>(offset + at), static_cast<off_t>(piece));
        if (error == 0) {
            at += piece;
        } else if (error == EINTR) {
            most = std::max(piece / 2, kPageBytes);
        } else {
            return error;
        }
    }
    return 0;
}

// Takes the page faults now and not in the first messages. Others may be using the memory. After the system
// call each page is stored into, too: a hypervisor without nested page tables learns of a page with its first
// access, which then takes as long as twenty messages. Returns the nanoseconds of such an access.
std::uint64_t touch(std::byte* data, std::size_t bytes) {
#if defined(MADV_POPULATE_WRITE)
    const std::size_t before = reinterpret_cast<std::uintptr_t>(data) % kPageBytes;
    (void)::madvise(data - before, before + bytes, MADV_POPULATE_WRITE);  // Linux 5.14
#endif
#if defined(__SANITIZE_ADDRESS__)  // tests, which make thousands of engines of a few messages
    return 0;
#else
    const std::uint64_t began_ns = monotonic_ns();
    for (std::size_t at = 0; at < bytes; at += kPageBytes)
        (void)std::atomic_ref(reinterpret_cast<unsigned char&>(data[at]))
            .fetch_or(0, std::memory_order_relaxed);
    return (monotonic_ns() - began_ns) * kPageBytes / std::max(bytes, kPageBytes);
#endif
}

std::byte* map(int fd, std::size_t bytes) {
    void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (data == MAP_FAILED) {
        throw Failure(VELO_ERR_RESOURCE, "cannot map a shared memory segment of " + std::to_string(bytes) +
                                             " bytes: " + std::strerror(errno) + ". Check ulimit -v.");
    }
    return static_cast<std::byte*>(data);
}

int open_by_name(const FileAddress& address, int patience_ms) {
    auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(patience_ms);
    for (;;) {
        int fd = ::open(published_path(address).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
        if (fd >= 0 || errno != ENOENT || std::chrono::steady_clock::now() >= deadline) return fd;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

// Removes the names of processes of this user that were killed before they could: nobody holds their lock.
void remove_orphans(const FileAddress& address) {
    std::error_code error;
    for (std::filesystem::directory_iterator entry(address.directory, error), end; !error && entry != end;
         entry.increment(error)) {
        if (!entry->path().filename().string().starts_with(name_prefix(address))) continue;
        const int fd = ::open(entry->path().c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (fd < 0) continue;
        if (::flock(fd, LOCK_EX | LOCK_NB) == 0) ::unlink(entry->path().c_str());
        ::close(fd);
    }
}

struct Sight {
    bool shown;  // by /proc, and not concealed by hidepid
    bool ended;
};

// Until its parent has waited for it, a process that has ended is there, without memory.
Sight look_at(std::int32_t pid) {
    ProcPath path;
    std::snprintf(path.data(), path.size(), "/proc/%" PRId32 "/statm", pid);
    const SmallFile memory(path.data());
    if (!memory.text().empty()) return {true, memory.text().starts_with("0 ")};
    return {false, ::kill(pid, 0) != 0 && errno == ESRCH};
}

void check_identity(int fd, const FileAddress& address, std::optional<std::uint64_t> owner) {
    struct stat status {};
    bool same = ::fstat(fd, &status) == 0 && status.st_ino == address.inode &&
                status.st_uid == address.user && static_cast<std::uint64_t>(status.st_size) == address.bytes;
    if (!same) {
        throw Failure(
            VELO_ERR_UNREACHABLE,
            "the shared memory segment of " + text_of(address, owner) +
                " is not the one that it announced; is it in another container without a shared /dev/shm?");
    }
}

}  // namespace

std::uint64_t SharedFile::used_bytes() const {
    constexpr std::uint64_t kBlock = 512;
    struct stat status {};
    return ::fstat(fd_, &status) == 0 ? static_cast<std::uint64_t>(status.st_blocks) * kBlock : 0;
}

std::uint64_t SharedFile::room_in(const char* directory) {
    struct statvfs status {};
    if (::statvfs(directory, &status) != 0 || status.f_blocks == 0)
        return std::numeric_limits<std::uint64_t>::max();
    return std::uint64_t{status.f_bavail} * status.f_frsize;
}

SharedFile SharedFile::create(const std::string& directory, std::size_t bytes, std::size_t backed) {
    SharedFile file;
    (void)Reserve::of_process();
    if (directory.size() >= FileAddress::kDirectoryBytes) {
        throw Failure(VELO_ERR_PARAMETER, "btl_velo_backing_directory is longer than " +
                                              std::to_string(FileAddress::kDirectoryBytes - 1) +
                                              " bytes: " + directory);
    }
    file.address_.bytes = bytes;
    file.address_.nonce = random_nonce();
    file.address_.machine = machine_identity();
    file.address_.namespaces = own_namespaces();
    file.address_.pid = ::getpid();
    file.address_.user = ::geteuid();
    std::memcpy(file.address_.directory, directory.c_str(), directory.size() + 1);

    file.fd_ = open_nameless(directory, file.address_);
    if (file.fd_ < 0) fail_create(directory, bytes, errno);
    file.address_.fd = file.fd_;
    rlimit limit{};  // going beyond it would be a signal
    if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && bytes > limit.rlim_cur)
        fail_create(directory, bytes, EFBIG);
    if (::ftruncate(file.fd_, static_cast<off_t>(bytes)) != 0) fail_create(directory, bytes, errno);
    file.data_ = map(file.fd_, bytes);
    file.bytes_ = bytes;
    // The pages are allocated near to the owner.
    place_nearby(file.data_, bytes);
    struct stat status {};
    if (::fstat(file.fd_, &status) != 0) fail_create(directory, bytes, errno);
    file.address_.inode = status.st_ino;
    if (backed > 0) file.provide(0, backed);
    return file;
}

void SharedFile::provide(std::size_t offset, std::size_t bytes) {
    allocate(offset, bytes);
    page_ns_ = touch(data_ + offset, bytes);
}

void SharedFile::allocate(std::size_t offset, std::size_t bytes) {
    const auto path = owner_path(address_);
    const int fd = fd_ >= 0 ? fd_ : Reserve::of_process().open(path);
    if (fd < 0) fail_open(address_, {}, path.data(), errno);
    const int error = allocate_in(fd, offset, bytes);
    if (fd != fd_) Reserve::of_process().close(fd);
    if (error != 0) fail_create(address_.directory, bytes, error);
}

SharedFile SharedFile::open(const FileAddress& address, int patience_ms, std::size_t most,
                            std::optional<std::uint64_t> owner) {
    SharedFile file;
    file.address_ = address;
    file.address_.directory[FileAddress::kDirectoryBytes - 1] = '\0';
    bool by_pid = openable_by_pid(address);
    int fd =
        by_pid ? Reserve::of_process().open(owner_path(address)) : open_by_name(file.address_, patience_ms);
    if (fd < 0)
        fail_open(file.address_, owner, by_pid ? owner_path(address).data() : published_path(file.address_),
                  errno);
    file.fd_ = fd;
    check_identity(fd, file.address_, owner);
    const std::size_t bytes = std::min<std::size_t>(address.bytes, most);
    file.data_ = map(fd, bytes);
    file.bytes_ = bytes;
    Reserve::of_process().close(
        std::exchange(file.fd_, -1));  // the mapping is enough; the owner keeps its own descriptor
    return file;
}

void SharedFile::fault_in(std::size_t offset, std::size_t bytes) const {
    if (offset <= bytes_) touch(data_ + offset, std::min(bytes, bytes_ - offset));
}

SharedFile::~SharedFile() {
    unpublish();
    if (data_ != nullptr) ::munmap(data_, bytes_);
    if (fd_ >= 0) ::close(fd_);
}

void SharedFile::publish() {
    if (published_) return;
    std::string self = "/proc/self/fd/" + std::to_string(fd_);
    std::string path = published_path(address_);
    // Ends with the process, however it ends: whoever gets it finds a name that nobody will take away.
    (void)::flock(fd_, LOCK_SH);
    remove_orphans(address_);
    if (::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) != 0) {
        const int error = errno;
        if (::access(self.c_str(), F_OK) != 0)
            throw Failure(VELO_ERR_UNREACHABLE,
                          "there is no /proc, through which the processes of a node find each other's shared "
                          "memory. Mount it (mount -t proc proc /proc), in a container or chroot as well.");
        throw Failure(VELO_ERR_UNREACHABLE,
                      "cannot give the mailbox the name " + path +
                          " for a process in another PID or user namespace: " + std::strerror(error) +
                          ". Let the containers of one job share these namespaces, or set " +
                          "btl_velo_backing_directory to a tmpfs that they share.");
    }
    published_ = true;
}

void SharedFile::unpublish() {
    if (std::exchange(published_, false)) ::unlink(published_path(address_).c_str());
}

void SharedFile::swap(SharedFile& other) noexcept {
    std::swap(address_, other.address_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(page_ns_, other.page_ns_);
    std::swap(fd_, other.fd_);
    std::swap(published_, other.published_);
}

bool closed_by_owner(const FileAddress& address) {
    if (!reachable_by_pid(address)) return false;
    struct stat status {};
    // The number of the descriptor may stand for another file by now.
    if (::stat(owner_path(address).data(), &status) == 0) return status.st_ino != address.inode;
    const bool absent = errno == ENOENT;
    // The kernel denies the look to all but root if the owner has ended and its parent has not waited for it
    // yet, and also if it lives and is not dumpable. In the second case hidepid makes it appear absent.
    const Sight owner = look_at(address.pid);
    return owner.ended || (owner.shown && absent);
}

bool reachable_by_pid(const FileAddress& address) {
    return see_each_other(own_namespaces(), address.namespaces);
}

bool openable_by_pid(const FileAddress& address) {
    struct stat status {};
    if (!reachable_by_pid(address)) return false;
    if (::stat(owner_path(address).data(), &status) == 0 || (errno != EACCES && errno != EPERM)) return true;
    return look_at(address.pid).ended;
}

}  // namespace velo::platform
