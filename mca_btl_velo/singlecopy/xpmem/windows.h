// The parts of one peer's memory that are attached here. Attaching is a system call, and each page of an
// attachment costs a fault on first use, so they are kept: as windows of fixed size and alignment, at most
// kMostWindows of them, the least recently used one giving way.
//
// A window that is kept stays right when its owner unmaps memory and maps other memory at the same address:
// the kernel module takes the pages out of the attachment (MMU notifier) and brings in the new ones at the
// next fault.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "singlecopy/xpmem/library.h"

namespace velo::singlecopy {

std::uint64_t page_bytes();

class Windows {
 public:
    // Large enough that the attachments of a long transfer cost little beside its page faults. The page
    // tables of a window take 16 KiB.
    static constexpr std::uint64_t kWindowBytes = 8U << 20;
    // 256 MiB for each peer: the module pins the pages that were touched through an attachment.
    static constexpr std::size_t kMostWindows = 32;

    Windows(XpmemLibrary& library, std::int64_t permit) : library_(library), permit_(permit) {}
    ~Windows();
    Windows(const Windows&) = delete;
    Windows& operator=(const Windows&) = delete;

    // A part of the peer's memory, in place until `unpin`.
    struct Pin {
        std::byte* data = nullptr;  // nullptr: refused
        std::size_t bytes = 0;      // up to the end of the window
        int error = 0;              // errno of the refusal
        std::uint64_t window = 0;
        void* passing = nullptr;  // an attachment for this use only
    };
    Pin pin(std::uint64_t address, std::size_t bytes);
    void unpin(const Pin& pin);

 private:
    struct Window {
        std::uint64_t number;  // owner's address / kWindowBytes
        std::byte* data;
        unsigned pins;  // threads that are copying; not to be detached
        std::uint64_t used;
    };

    Window* find(std::uint64_t number);
    Window* keep(std::uint64_t number);
    bool make_room();
    Pin attach_in_passing(std::uint64_t address, std::size_t bytes);

    XpmemLibrary& library_;
    std::int64_t permit_;
    std::mutex mutex_;
    std::vector<Window> windows_;
    std::uint64_t uses_ = 0;
};

}  // namespace velo::singlecopy
