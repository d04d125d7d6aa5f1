// Stands in for libxpmem and its kernel module, in all programs that link it: as if Velo were built without
// XPMEM until a FakeXpmem exists.
//
// Memory from an Arena is mapped a second time by an attachment, as the module does it: stores show on both
// sides. Of all other memory an attachment holds a copy, made through process_vm_readv when it was attached;
// pages that its owner has not mapped stay inaccessible.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "singlecopy/xpmem/library.h"

namespace velo::test {

// Memory that a FakeXpmem can map a second time. Create it before fork for use between processes.
class Arena {
 public:
    // Its address is a multiple of `alignment`, a multiple of the page.
    Arena(std::size_t bytes, std::size_t alignment);
    ~Arena();
    Arena(const Arena&) = delete;
    Arena& operator=(const Arena&) = delete;

    std::byte* data() const { return data_; }
    std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(data_); }
    std::size_t bytes() const { return bytes_; }
    int file() const { return file_; }

 private:
    std::byte* data_ = nullptr;
    std::size_t bytes_;
    int file_;
};

class FakeXpmem final : public singlecopy::XpmemLibrary {
 public:
    FakeXpmem();
    ~FakeXpmem() override;

    void know(const Arena& arena) { arenas_.push_back(&arena); }

    // The errno that a call is to fail with; 0: it works.
    int refuse_make = 0;
    int refuse_get = 0;
    int refuse_attach = 0;
    // Attachments that end beyond it are refused, as those beyond the end of an address space.
    std::uint64_t limit = UINT64_MAX;

    int made = 0, removed = 0, got = 0, released = 0, attached = 0, detached = 0;
    std::size_t live() const { return attachments_.size(); }

    std::int64_t make() override;
    void remove(std::int64_t segment) override;
    std::int64_t get(std::int64_t segment) override;
    void release(std::int64_t permit) override;
    void* attach(std::int64_t permit, std::uint64_t address, std::size_t bytes) override;
    void detach(void* attached) override;

    static FakeXpmem* current;

 private:
    struct Attachment {
        std::int64_t permit;
        std::size_t bytes;
    };

    bool in_arena(std::uint64_t address) const;
    void map_copies(pid_t owner, std::uint64_t address, std::byte* here, std::size_t bytes) const;
    void map_arenas(std::uint64_t address, std::byte* here, std::size_t bytes) const;

    std::vector<const Arena*> arenas_;
    std::map<std::int64_t, std::int64_t> permits_;  // and the segments that they belong to
    std::map<void*, Attachment> attachments_;
    std::int64_t last_ = 0;
    std::mutex mutex_;
};

}  // namespace velo::test
