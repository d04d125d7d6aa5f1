#include "faults.h"

#include <fcntl.h>

#include <cerrno>
#include <cstdlib>
#include <new>

namespace velo::test {
namespace {

bool allocation_fails() {
    if (!faults.counting) return false;
    ++faults.asked_for;
    if (faults.allocations_left > 0) return --faults.allocations_left, false;
    if (faults.failed > 0 && !faults.all_later_fail) return false;
    ++faults.failed;
    return true;
}

void* given(void* memory) {
    if (memory == nullptr) throw std::bad_alloc();
    live_blocks.fetch_add(1, std::memory_order_relaxed);
    return memory;
}

void give_back(void* memory) {
    if (memory == nullptr) return;
    live_blocks.fetch_sub(1, std::memory_order_relaxed);
    std::free(memory);
}

}  // namespace
}  // namespace velo::test

void* operator new(std::size_t bytes) {
    return velo::test::given(velo::test::allocation_fails() ? nullptr : std::malloc(bytes > 0 ? bytes : 1));
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
    const auto unit = static_cast<std::size_t>(alignment);
    return velo::test::given(velo::test::allocation_fails()
                                 ? nullptr
                                 : std::aligned_alloc(unit, (bytes + unit - 1) / unit * unit));
}
// AddressSanitizer has some of its own for arrays, which would not come here.
void* operator new[](std::size_t bytes) {
    return operator new(bytes);
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
    return operator new(bytes, alignment);
}

void operator delete(void* memory) noexcept {
    velo::test::give_back(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
    velo::test::give_back(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
    velo::test::give_back(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
    velo::test::give_back(memory);
}
void operator delete[](void* memory) noexcept {
    velo::test::give_back(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
    velo::test::give_back(memory);
}
void operator delete[](void* memory, std::align_val_t) noexcept {
    velo::test::give_back(memory);
}
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept {
    velo::test::give_back(memory);
}

// As older kernels on tmpfs: what has been allocated when the signal comes is given back.
int posix_fallocate(int file, off_t offset, off_t bytes) {
    velo::test::Faults& faults = velo::test::faults;
    if (faults.interrupted_beyond != 0 && static_cast<std::size_t>(bytes) > faults.interrupted_beyond) {
        ++faults.interrupted;
        return EINTR;
    }
    if (faults.no_room) return ENOSPC;
    return fallocate(file, 0, offset, bytes) == 0 ? 0 : errno;
}
