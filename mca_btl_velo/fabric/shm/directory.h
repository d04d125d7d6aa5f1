// The senders of a mailbox: an entry of one cache line for each process that may ever send, so that those
// which never do cost little. What is the same for most of them, where their shared memory lives, is a home:
// one for all senders that see the same files.
//
//   Home[homes] | Entry[entries]
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "fabric/shm/address.h"

namespace velo::fabric::shm {

// Where `name` is among `count` names that ascend from `first` on, or nothing: a process meets each of its
// peers in the directory of that peer.
template <typename NameAt>
std::optional<std::uint32_t> find_ascending(std::uint32_t first, std::uint32_t count, std::uint64_t name,
                                            NameAt name_at) {
    std::uint32_t low = first, high = first + count;
    while (low < high) {
        const std::uint32_t middle = low + (high - low) / 2;
        const std::uint64_t found = name_at(middle);
        if (found == name) return middle;
        if (found < name)
            low = middle + 1;
        else
            high = middle;
    }
    return {};
}

class Directory {
 public:
    static constexpr std::uint64_t kFree = ~std::uint64_t{0};  // the name of a place that is nobody's

    struct Home {
        std::atomic<std::uint32_t> state;  // Home states; set once each
        std::uint32_t user;
        std::uint64_t machine;
        platform::Namespaces namespaces;
        char directory[platform::FileAddress::kDirectoryBytes];
    };
    struct alignas(64) Entry {
        std::atomic<std::uint64_t> name;  // kFree, or the sender's process name
        // Modulo 2^32, stored by the owner: packets of this sender that have left the mailbox, where its
        // policy refuses by sender (rnr), and references of this sender to its outbox that have been read.
        std::atomic<std::uint32_t> retrieved, references_read;
        // 0, or 1 + the sender's home: what follows is complete (release by whoever wrote it). And kReads.
        std::atomic<std::uint32_t> home;
        std::uint32_t file_pages;
        std::int32_t pid, fd;
        std::uint64_t nonce, inode, probe;
        std::int64_t xpmem_segment;
    };
    static_assert(sizeof(Entry) == 64);

    // Of Entry::home: the sender has mapped the owner's outbox, too.
    static constexpr std::uint32_t kReads = 1U << 31;
    static constexpr std::size_t kPageBytes = 4096;  // files are whole pages
    static std::size_t bytes_for(std::uint32_t homes, std::uint32_t entries) {
        return entries_offset(homes) + entries * sizeof(Entry);
    }

    // In a segment at `start`, zeroed by its creator.
    Directory(std::byte* start, std::uint32_t homes)
        : homes_(reinterpret_cast<Home*>(start)),
          entries_(reinterpret_cast<Entry*>(start + entries_offset(homes))),
          home_count_(homes) {}

    Entry& entry(std::uint32_t index) const { return entries_[index]; }
    // Owner: nobody's again.
    void clear(std::uint32_t index) const;

    // Leaves the sender's address for the owner, who needs it to return credits to a peer that it never
    // connected to. The owner may do the same for itself. Throws Failure if there is no home left.
    void introduce(std::uint32_t index, const Address& sender) const;
    bool is_introduced(std::uint32_t index) const {
        return entries_[index].home.load(std::memory_order_acquire) != 0;
    }
    // Sender, once introduced.
    void will_read(std::uint32_t index) const { entries_[index].home.fetch_or(kReads); }
    bool reads(std::uint32_t index) const { return (entries_[index].home.load() & kReads) != 0; }
    // That address, if there is one. `agreement`: of the owner; connecting compares the real ones.
    std::optional<Address> introduced(std::uint32_t index, std::uint64_t agreement) const;

 private:
    static std::size_t entries_offset(std::uint32_t homes) {
        return (homes * sizeof(Home) + alignof(Entry) - 1) / alignof(Entry) * alignof(Entry);
    }
    std::uint32_t home_of(const platform::FileAddress& file) const;

    Home* homes_;
    Entry* entries_;
    std::uint32_t home_count_;
};

}  // namespace velo::fabric::shm
