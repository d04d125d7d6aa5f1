#include "fabric/shm/directory.h"

#include <cstring>
#include <string>

#include "platform/failure.h"

namespace velo::fabric::shm {
namespace {

// Of a home. A process that dies while it writes leaves one that nobody uses.
enum : std::uint32_t { kEmpty, kBeingWritten, kComplete };

bool is_home_of(const Directory::Home& home, const platform::FileAddress& file) {
    return home.user == file.user && home.machine == file.machine &&
           home.namespaces.pid == file.namespaces.pid && home.namespaces.user == file.namespaces.user &&
           std::strncmp(home.directory, file.directory, sizeof home.directory) == 0;
}

}  // namespace

// Two senders that come at the same time may write the same home twice: both are good.
std::uint32_t Directory::home_of(const platform::FileAddress& file) const {
    for (std::uint32_t i = 0; i < home_count_; ++i) {
        Home& home = homes_[i];
        // acquire: with kComplete comes what was written before.
        std::uint32_t state = home.state.load(std::memory_order_acquire);
        if (state == kComplete && is_home_of(home, file)) return i;
        if (state != kEmpty || !home.state.compare_exchange_strong(state, kBeingWritten)) continue;
        home.user = file.user;
        home.machine = file.machine;
        home.namespaces = file.namespaces;
        std::memcpy(home.directory, file.directory, sizeof home.directory);
        home.state.store(kComplete, std::memory_order_release);
        return i;
    }
    throw Failure(VELO_ERR_RESOURCE,
                  "a mailbox has senders in " + std::to_string(home_count_) +
                      " different containers or btl_velo_backing_directory settings, and no room for more: "
                      "let them share these, or use another btl_velo_flow_control than lazy");
}

void Directory::introduce(std::uint32_t index, const Address& sender) const {
    Entry& entry = entries_[index];
    if (entry.home.load(std::memory_order_acquire) != 0) return;
    const std::uint32_t home = home_of(sender.file);
    entry.file_pages = static_cast<std::uint32_t>(sender.file.bytes / kPageBytes);
    entry.pid = sender.file.pid;
    entry.fd = sender.file.fd;
    entry.nonce = sender.file.nonce;
    entry.inode = sender.file.inode;
    entry.probe = sender.probe;
    entry.xpmem_segment = sender.xpmem_segment;
    std::uint32_t nothing = 0;  // or the other has been here, and kReads may be set
    entry.home.compare_exchange_strong(nothing, home + 1, std::memory_order_release);
}

// release: whoever claims the entry finds it empty.
void Directory::clear(std::uint32_t index) const {
    Entry& entry = entries_[index];
    entry.home.store(0, std::memory_order_relaxed);
    entry.retrieved.store(0, std::memory_order_relaxed);
    entry.references_read.store(0, std::memory_order_relaxed);
    entry.name.store(kFree, std::memory_order_release);
}

std::optional<Address> Directory::introduced(std::uint32_t index, std::uint64_t agreement) const {
    const Entry& entry = entries_[index];
    const std::uint32_t home = entry.home.load(std::memory_order_acquire) & ~kReads;
    if (home == 0 || home > home_count_) return {};
    const Home& where = homes_[home - 1];
    Address address{};
    address.magic = Address::kMagic;
    address.process_name = entry.name.load(std::memory_order_relaxed);
    address.agreement = agreement;
    address.probe = entry.probe;
    address.xpmem_segment = entry.xpmem_segment;
    address.file.bytes = std::uint64_t{entry.file_pages} * kPageBytes;
    address.file.nonce = entry.nonce;
    address.file.inode = entry.inode;
    address.file.machine = where.machine;
    address.file.namespaces = where.namespaces;
    address.file.pid = entry.pid;
    address.file.fd = entry.fd;
    address.file.user = where.user;
    std::memcpy(address.file.directory, where.directory, sizeof where.directory);
    address.file.directory[sizeof where.directory - 1] = '\0';
    return address;
}

}  // namespace velo::fabric::shm
