// Set-up under a timer whose signals interrupt what takes long.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>

#include "faults.h"
#include "platform/shared_file.h"

namespace velo::test {
namespace {

TEST(InterruptionTest, a_large_shared_file_gets_all_its_memory_between_signals) {
    constexpr std::size_t kBytes = (4 << 20) + 4096 * 3;
    faults.interrupted = 0;
    for (const std::size_t beyond : {std::size_t{4096}, std::size_t{200'000}, std::size_t{3} << 20}) {
        faults.interrupted_beyond = beyond;
        const platform::SharedFile file = platform::SharedFile::create("/dev/shm", kBytes);
        faults.interrupted_beyond = 0;
        EXPECT_GT(faults.interrupted, 0U);
        struct stat status {};
        ASSERT_EQ(fstat(file.address().fd, &status), 0);
        EXPECT_EQ(status.st_blocks * 512, static_cast<std::int64_t>(kBytes));
        EXPECT_EQ(std::count(file.data(), file.data() + kBytes, std::byte{0}),
                  static_cast<std::ptrdiff_t>(kBytes));
    }
}

}  // namespace
}  // namespace velo::test
