// What a process may leave behind: files in a directory, descriptors, mappings.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace velo::test {

inline std::size_t entries_of(const std::string& directory) {
    const std::filesystem::directory_iterator entries(directory);
    return static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
}

// Mapped files of the directory.
inline std::size_t mapped_of(const std::string& directory) {
    std::ifstream maps("/proc/self/maps");
    std::size_t count = 0;
    for (std::string line; std::getline(maps, line);)
        count += line.find(directory) != std::string::npos ? 1 : 0;
    return count;
}

struct Directory {
    Directory() { path = mkdtemp(path.data()); }
    ~Directory() { std::filesystem::remove_all(path); }
    std::string path = "/dev/shm/velo-test-XXXXXX";
};

}  // namespace velo::test
