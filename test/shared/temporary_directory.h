// A directory in shared memory for one test. One whose test was killed is removed by the next test that asks
// for one: whoever lives has a lock on its own.
#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <stdexcept>
#include <string>
#include <system_error>

namespace velo::test {

inline std::size_t entries_of(const std::string& directory) {
    const std::filesystem::directory_iterator entries(directory);
    return static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
}

class TemporaryDirectory {
 public:
    TemporaryDirectory() {
        remove_those_of_the_killed();
        do {
            std::string name = kParent + kPrefix + "XXXXXX";
            if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no directory in " + kParent);
            path_ = name;
            lock_ = lock(path_);
        } while (lock_ < 0);  // another test has just taken it for one of the killed
    }
    TemporaryDirectory(const TemporaryDirectory&) = delete;
    ~TemporaryDirectory() {
        std::filesystem::remove_all(path_);
        ::close(lock_);
    }

    const std::string& path() const { return path_; }

 private:
    static inline const std::string kParent = "/dev/shm/", kPrefix = "velo-test-";

    // A descriptor that has the directory locked; -1: somebody else has it, or it is gone.
    static int lock(const std::string& path) {
        const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 && std::filesystem::exists(path)) return fd;
        if (fd >= 0) ::close(fd);
        return -1;
    }
    static void remove_those_of_the_killed() {
        std::error_code ignored;
        for (const auto& entry : std::filesystem::directory_iterator(kParent, ignored)) {
            if (entry.path().filename().string().rfind(kPrefix, 0) != 0) continue;
            const int fd = lock(entry.path());
            if (fd < 0) continue;
            std::filesystem::remove_all(entry.path(), ignored);
            ::close(fd);
        }
    }

    std::string path_;
    int lock_ = -1;
};

}  // namespace velo::test
