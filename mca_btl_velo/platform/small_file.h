// Small files of /proc and /sys, read without allocations: an iostream takes a failed one for an empty file.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <string_view>

namespace velo::platform {

class SmallFile {
 public:
    explicit SmallFile(const char* path) {
        const int file = ::open(path, O_RDONLY | O_CLOEXEC);
        if (file < 0) return;
        bytes_ = ::read(file, text_.data(), text_.size());
        ::close(file);
    }

    // Its beginning; empty if it cannot be read.
    std::string_view text() const {
        return {text_.data(), static_cast<std::size_t>(bytes_ > 0 ? bytes_ : 0)};
    }

 private:
    std::array<char, 512> text_;
    ssize_t bytes_ = 0;
};

}  // namespace velo::platform
