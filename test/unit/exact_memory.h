// Memory of exactly so many bytes: whoever touches the next one ends the program, with or without
// AddressSanitizer. Zero at first.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>

namespace velo::test {

class ExactMemory {
 public:
    explicit ExactMemory(std::size_t bytes) : bytes_(bytes) {
        const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
        const std::size_t pages = (bytes + page - 1) / page * page;
        mapped_ = pages + page;
        place_ = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        guard_ = static_cast<std::byte*>(place_) + pages;
        mprotect(guard_, page, PROT_NONE);
    }
    ExactMemory(const void* contents, std::size_t bytes) : ExactMemory(bytes) {
        if (bytes > 0) std::memcpy(data(), contents, bytes);
    }
    ~ExactMemory() { munmap(place_, mapped_); }
    ExactMemory(const ExactMemory&) = delete;

    std::byte* data() const { return guard_ - bytes_; }
    std::size_t size() const { return bytes_; }
    std::byte& operator[](std::size_t index) const { return data()[index]; }

 private:
    std::size_t bytes_, mapped_;
    void* place_;
    std::byte* guard_;
};

}  // namespace velo::test
