// What a process may leave behind: files in a directory, descriptors, mappings, lines on stderr.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "../shared/temporary_directory.h"
#include "faults.h"

namespace velo::test {

// Mapped files of the directory.
inline std::size_t mapped_of(const std::string& directory) {
    std::ifstream maps("/proc/self/maps");
    std::size_t count = 0;
    for (std::string line; std::getline(maps, line);)
        count += line.find(directory) != std::string::npos ? 1 : 0;
    return count;
}

// The next look at a page of them is slow: it has to be mapped again.
inline void unmap_pages_of(const std::string& directory) {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        if (line.find(directory) == std::string::npos) continue;
        char* after = nullptr;
        const std::uintptr_t begin = std::strtoull(line.c_str(), &after, 16);
        const std::uintptr_t end = std::strtoull(after + 1, nullptr, 16);
        void* const pages = reinterpret_cast<void*>(begin);  // NOLINT(performance-no-int-to-ptr)
        EXPECT_EQ(madvise(pages, end - begin, MADV_DONTNEED), 0);
    }
}

// While it lives, what goes to stderr, as a report does, is seen only if the process aborts.
class Silence {
 public:
    Silence() {
        ::testing::internal::CaptureStderr();
        std::signal(SIGABRT, [](int) {
            faults.counting = false;
            std::fputs(::testing::internal::GetCapturedStderr().c_str(), stdout);
            std::fflush(stdout);
        });
    }
    Silence(const Silence&) = delete;
    ~Silence() {
        std::signal(SIGABRT, SIG_DFL);
        ::testing::internal::GetCapturedStderr();
    }
};

}  // namespace velo::test
