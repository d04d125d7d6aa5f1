// What a process may leave behind: files in a directory, descriptors, mappings.
#pragma once

#include <cstddef>
#include <fstream>
#include <string>

#include "../shared/temporary_directory.h"

namespace velo::test {

// Mapped files of the directory.
inline std::size_t mapped_of(const std::string& directory) {
    std::ifstream maps("/proc/self/maps");
    std::size_t count = 0;
    for (std::string line; std::getline(maps, line);)
        count += line.find(directory) != std::string::npos ? 1 : 0;
    return count;
}

}  // namespace velo::test
