#include "fake_xpmem.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace velo::singlecopy {

XpmemLibrary* xpmem_library() {
    return test::FakeXpmem::current;
}

}  // namespace velo::singlecopy

namespace velo::test {
namespace {

constexpr std::size_t kPage = 4096;
// A segment's identity holds its owner, as the module's does.
constexpr int kOwnerShift = 32;

int refuse(int error) {
    errno = error;
    return -1;
}

}  // namespace

FakeXpmem* FakeXpmem::current = nullptr;

Arena::Arena(std::size_t bytes, std::size_t alignment) : bytes_(bytes), file_(memfd_create("arena", 0)) {
    void* place =
        mmap(nullptr, bytes + alignment, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (ftruncate(file_, static_cast<off_t>(bytes)) != 0 || place == MAP_FAILED) return;
    auto start = (reinterpret_cast<std::uint64_t>(place) + alignment - 1) / alignment * alignment;
    void* data =
        mmap(reinterpret_cast<void*>(start), bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file_, 0);
    if (data != MAP_FAILED) data_ = static_cast<std::byte*>(data);
}

Arena::~Arena() {
    munmap(data_, bytes_);
    close(file_);
}

FakeXpmem::FakeXpmem() {
    current = this;
}

FakeXpmem::~FakeXpmem() {
    EXPECT_EQ(made, removed);
    EXPECT_EQ(got, released);
    EXPECT_EQ(live(), 0U) << "attachments were left";
    current = nullptr;
}

std::int64_t FakeXpmem::make() {
    if (refuse_make != 0) return refuse(refuse_make);
    ++made;
    return std::int64_t{getpid()} << kOwnerShift | ++last_;
}

void FakeXpmem::remove(std::int64_t) {
    ++removed;
}

std::int64_t FakeXpmem::get(std::int64_t segment) {
    if (refuse_get != 0) return refuse(refuse_get);
    ++got;
    permits_[++last_] = segment;
    return last_;
}

void FakeXpmem::release(std::int64_t permit) {
    ++released;
    EXPECT_EQ(permits_.erase(permit), 1U);
    for (const auto& [here, attachment] : attachments_)
        EXPECT_NE(attachment.permit, permit) << "a permit is released after its attachments";
}

void* FakeXpmem::attach(std::int64_t permit, std::uint64_t address, std::size_t bytes) {
    std::lock_guard lock(mutex_);
    bool sane = permits_.count(permit) == 1 && address % kPage == 0 && bytes % kPage == 0 && bytes > 0;
    if (refuse_attach != 0 || !sane || address + bytes > limit) {
        refuse(refuse_attach != 0 ? refuse_attach : EINVAL);
        return nullptr;
    }
    void* here = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (here == MAP_FAILED) return nullptr;
    map_copies(static_cast<pid_t>(permits_[permit] >> kOwnerShift), address, static_cast<std::byte*>(here),
               bytes);
    map_arenas(address, static_cast<std::byte*>(here), bytes);
    attachments_[here] = {permit, bytes};
    ++attached;
    return here;
}

bool FakeXpmem::in_arena(std::uint64_t address) const {
    return std::any_of(arenas_.begin(), arenas_.end(),
                       [=](const Arena* arena) { return address - arena->address() < arena->bytes(); });
}

void FakeXpmem::map_copies(pid_t owner, std::uint64_t address, std::byte* here, std::size_t bytes) const {
    std::byte page[kPage];
    for (std::size_t offset = 0; offset < bytes; offset += kPage) {
        if (in_arena(address + offset)) continue;
        iovec to{page, kPage}, from{reinterpret_cast<void*>(address + offset), kPage};
        if (process_vm_readv(owner, &to, 1, &from, 1, 0) != static_cast<ssize_t>(kPage)) continue;
        mprotect(here + offset, kPage, PROT_READ | PROT_WRITE);
        std::copy(page, page + kPage, here + offset);
    }
}

void FakeXpmem::map_arenas(std::uint64_t address, std::byte* here, std::size_t bytes) const {
    for (const Arena* arena : arenas_) {
        std::uint64_t start = std::max(address, arena->address());
        std::uint64_t end = std::min(address + bytes, arena->address() + arena->bytes());
        if (start >= end) continue;
        void* mapped =
            mmap(here + (start - address), end - start, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                 arena->file(), static_cast<off_t>(start - arena->address()));
        EXPECT_NE(mapped, MAP_FAILED);
    }
}

void FakeXpmem::detach(void* here) {
    std::lock_guard lock(mutex_);
    auto found = attachments_.find(here);
    ASSERT_NE(found, attachments_.end()) << "detached twice, or never attached";
    munmap(here, found->second.bytes);
    attachments_.erase(found);
    ++detached;
}

}  // namespace velo::test
